"""Experts: a gate chooses some for each token, and only their weights are read.

Few tokens take the weights of their experts one by one. Many are sorted by expert into blocks of
equal size, and each block is a product with the weights of one expert.
"""

from __future__ import annotations

from typing import Final

from weft.llm.model.config import Activation, Experts
from weft.llm.model.mlp import activated, mlp
from weft.llm.weights.layer import LayerWeights
from weft.tensor.tensor import Tensor

# So many choices are read one by one; of more, those of an expert are taken together.
FEW: Final = 16
BLOCK: Final = 16


def mixture_of_experts(
    x: Tensor, layer: LayerWeights, experts: Experts, kind: Activation
) -> Tensor:
    """What the chosen experts make of tokens (tokens, width), and the shared ones if there are."""
    chosen, weights = choice(x, layer, experts)
    run = _one_by_one if chosen.numel() <= FEW else _by_blocks
    mixed = (run(x, chosen, layer, experts, kind) * weights.unsqueeze(-1)).sum(1)
    if "ffn_up_shexp.weight" in layer:
        shared = mlp(x, layer, kind, "_shexp")
        gate = layer.get("ffn_gate_inp_shexp.weight")
        if gate is not None:
            shared = shared * (x * gate.flatten()).sum(-1, keepdim=True).sigmoid()
        mixed = mixed + shared
    return mixed


def choice(x: Tensor, layer: LayerWeights, experts: Experts) -> tuple[Tensor, Tensor]:
    """The experts (tokens, used) of each token, and the weight of each."""
    logits = x @ layer["ffn_gate_inp.weight"].T
    bias = layer.get("ffn_gate_inp.bias")
    if bias is not None:
        logits = logits + bias
    if experts.gate == "softmax_chosen":
        best, chosen = logits.topk(experts.used)
        return chosen, best.softmax(-1) * experts.scale
    scores = logits.sigmoid() if experts.gate == "sigmoid" else logits.softmax(-1)
    preferred = scores
    bias = layer.get("exp_probs_b.bias")
    if bias is not None:
        preferred = preferred + bias
    if experts.groups > 1:
        preferred = _best_groups(preferred, experts, has_bias=bias is not None)
    chosen = preferred.topk(experts.used)[1]
    weights = scores.gather(1, chosen)
    if experts.is_normalized:
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return chosen, weights * experts.scale


def _best_groups(scores: Tensor, experts: Experts, has_bias: bool) -> Tensor:
    """Scores, with those outside of the best groups at minus infinity."""
    groups = scores.unflatten(1, (experts.groups, -1))  # (tokens, groups, experts of a group)
    best = groups.topk(2)[0].sum(-1) if has_bias else groups.max(-1)
    least = best.topk(experts.groups_used)[0][:, -1:]
    return (best >= least).unsqueeze(-1).where(groups, float("-inf")).flatten(1)


def _one_by_one(
    x: Tensor, chosen: Tensor, layer: LayerWeights, experts: Experts, kind: Activation
) -> Tensor:
    """(tokens, used, width): each choice reads its expert's weights."""
    rows = x.unsqueeze(1).expand(-1, int(chosen.shape[1]), -1).flatten(0, 1).unsqueeze(1)
    made = _expert(rows, chosen.flatten(), layer, kind)
    return made.reshape(*chosen.shape, -1)


def _by_blocks(
    x: Tensor, chosen: Tensor, layer: LayerWeights, experts: Experts, kind: Activation
) -> Tensor:
    """(tokens, used, width): choices in blocks, each of one expert."""
    choices, used = chosen.numel(), int(chosen.shape[1])
    flat = chosen.flatten()
    is_chosen = (flat.unsqueeze(1) == Tensor.arange(experts.count)).cast("int32")
    rank = (is_chosen.cumsum(0) - 1).gather(1, flat.unsqueeze(1)).squeeze(1)
    blocks = (is_chosen.sum(0) + (BLOCK - 1)) // BLOCK  # of each expert
    ends = blocks.cumsum(0)
    slots = (((ends - blocks) * BLOCK)[flat] + rank).contiguous()
    most = -(-choices // BLOCK) + min(experts.count, choices)
    source = Tensor.zeros(most * BLOCK, dtype="int32").contiguous()
    source[slots] = (Tensor.arange(choices) // used).cast("int32")
    owner = (Tensor.arange(most).unsqueeze(1) >= ends).sum(1).clamp(max_=experts.count - 1)
    made = _expert(x[source].reshape(most, BLOCK, -1), owner, layer, kind)
    return made.flatten(0, 1)[slots].reshape(*chosen.shape, -1)


def _expert(rows: Tensor, owner: Tensor, layer: LayerWeights, kind: Activation) -> Tensor:
    """Blocks (blocks, rows, width), each through the expert that owns it."""

    def product(x: Tensor, name: str) -> Tensor:
        made: Tensor = x @ layer[f"{name}.weight"][owner].transpose(1, 2)
        bias = layer.get(f"{name}.bias")
        return made if bias is None else made + bias[owner].unsqueeze(1)

    if "ffn_gate_exps.weight" in layer:
        gate, up = product(rows, "ffn_gate_exps"), product(rows, "ffn_up_exps")
    else:
        gate, up = product(rows, "ffn_gate_up_exps").chunk(2, -1)
    return product(activated(kind, gate) * up, "ffn_down_exps")

"""The names of Hugging Face's weights, as those of GGUF."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

WHOLE: Final = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
# Names within a layer. Those of experts stand for all of them, which become one tensor.
LAYER: Final = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "post_self_attn_layernorm": "post_attention_norm",
    "post_mlp_layernorm": "post_ffw_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "mlp.experts.down_proj": "ffn_down_exps.weight",
    "block_sparse_moe.gate": "ffn_gate_inp",
    "block_sparse_moe.router.layer": "ffn_gate_inp",
    "block_sparse_moe.input_linear": "ffn_gate_up_exps",
    "block_sparse_moe.output_linear": "ffn_down_exps",
}
# Architectures that have norms after attention and after the inner part as well.
AROUND: Final = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
SHARED: Final = re.compile(r"mlp\.shared_experts?\.(gate|up|down)_proj")
EXPERT: Final = re.compile(r"(?:mlp|block_sparse_moe)\.experts\.(\d+)\.(\w+)")
_EXPERT_PARTS: Final = {
    "gate_proj": "ffn_gate_exps",
    "up_proj": "ffn_up_exps",
    "down_proj": "ffn_down_exps",
    "w1": "ffn_gate_exps",
    "w3": "ffn_up_exps",
    "w2": "ffn_down_exps",
}
_NUMBERED: Final = re.compile(r"model\.layers\.(\d+)\.(.*)")


def gguf_names(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of GGUF with the weights that they are made of: one, or one for each expert.

    >>> gguf_names(["model.norm.weight", "model.layers.0.self_attn.rotary_emb.inv_freq"])
    {'output_norm.weight': ['model.norm.weight']}
    """
    listed = list(names)
    around = any(".pre_feedforward_layernorm." in name for name in listed)
    found: dict[str, dict[int, str]] = {}
    for name in listed:
        target, number = _target(name.removeprefix("language_model."), around)
        if target:
            found.setdefault(target, {})[number] = name
    return {target: [parts[n] for n in sorted(parts)] for target, parts in found.items()}


def _target(name: str, around: bool) -> tuple[str, int]:
    """The name in GGUF and the number of the expert; '' for what no part asks for."""
    stem, _, kind = name.rpartition(".")
    if stem in WHOLE:
        return f"{WHOLE[stem]}.{kind}", 0
    numbered = _NUMBERED.fullmatch(name)
    if numbered is None:
        return "", 0
    block = f"blk.{numbered[1]}."
    inner, _, kind = numbered[2].rpartition(".")
    if numbered[2] in LAYER:  # a parameter without a kind
        return block + LAYER[numbered[2]], 0
    expert = EXPERT.fullmatch(inner)
    if expert is not None and expert[2] in _EXPERT_PARTS:
        return f"{block}{_EXPERT_PARTS[expert[2]]}.{kind}", int(expert[1])
    shared = SHARED.fullmatch(inner)
    if shared is not None:
        return f"{block}ffn_{shared[1]}_shexp.{kind}", 0
    table = {**LAYER, **AROUND} if around else LAYER
    return (f"{block}{table[inner]}.{kind}", 0) if inner in table else ("", 0)

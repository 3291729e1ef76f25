"""A `Config` from what a file states: a table of facts by their keys in GGUF and config.json.

`Facts` answers for a file: a number, a list, or nothing. A fact that is missing and has no
default is an error that names its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weft.llm.model.architectures import ARCHITECTURES, Architecture
from weft.llm.model.config import Config, Experts, Gate, Rope, Scaling
from weft.support.errors import FileFormatError

# fact: (keys in GGUF after the architecture's name, keys in config.json)
KEYS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "layers": (("block_count",), ("num_hidden_layers",)),
    "width": (("embedding_length",), ("hidden_size",)),
    "heads": (("attention.head_count",), ("num_attention_heads",)),
    "kv_heads": (("attention.head_count_kv",), ("num_key_value_heads",)),
    "head_size": (("attention.key_length",), ("head_dim",)),
    "context": (("context_length",), ("max_position_embeddings",)),
    "epsilon": (("attention.layer_norm_rms_epsilon",), ("rms_norm_eps",)),
    "window": (("attention.sliding_window",), ("sliding_window",)),
    "pattern": (("attention.sliding_window_pattern",), ("sliding_window_pattern",)),
    "attention_softcap": (("attn_logit_softcapping",), ("attn_logit_softcapping",)),
    "logit_softcap": (("final_logit_softcapping",), ("final_logit_softcapping",)),
    "attention_scale": (("attention.scale",), ("attention_multiplier",)),
    "embedding_scale": (("embedding_scale",), ("embedding_multiplier",)),
    "residual_scale": (("residual_scale",), ("residual_multiplier",)),
    "logit_divisor": (("logit_scale",), ("logits_scaling",)),
    "query_size": ((), ("query_pre_attn_scalar",)),
    "rope_base": (("rope.freq_base",), ("rope_theta",)),
    "rope_size": (("rope.dimension_count",), ()),
    "rope_share": ((), ("partial_rotary_factor",)),
    "window_base": (("rope.freq_base_swa",), ("rope_local_base_freq",)),
    "experts": (
        ("expert_count",),
        ("num_local_experts", "num_experts", "n_routed_experts"),
    ),
    "experts_used": (("expert_used_count",), ("num_experts_per_tok",)),
    "expert_scale": (("expert_weights_scale",), ("routed_scaling_factor",)),
    "expert_groups": (("expert_group_count",), ("n_group",)),
    "expert_groups_used": (("expert_group_used_count",), ("topk_group",)),
    "unused_layers": (("nextn_predict_layers",), ()),
}


class Facts:
    """What a file says of its model, whichever its format is."""

    def __init__(self, stated: Mapping[str, Any], architecture: str, is_hub: bool) -> None:
        if architecture not in ARCHITECTURES:
            raise FileFormatError(
                f"model: the file holds an architecture {architecture!r}",
                rule="those that are run are " + ", ".join(sorted(ARCHITECTURES)),
            )
        self.stated = stated
        self.architecture = architecture
        self.is_hub = is_hub

    @property
    def row(self) -> Architecture:
        return ARCHITECTURES[self.architecture]

    def get(self, *keys: str) -> Any:
        """The first of some keys that is there and not null."""
        prefix = "" if self.is_hub else f"{self.architecture}."
        return next((v for key in keys if (v := self.stated.get(prefix + key)) is not None), None)

    def number(self, fact: str, default: float | None = None) -> Any:
        """A number that is not negative; lists of one number for all layers count as it."""
        keys = KEYS[fact][self.is_hub]
        found = self.get(*keys)
        if isinstance(found, list) and len(set(found)) == 1:
            found = found[0]
        if found is None:
            found = default
        if isinstance(found, bool) or not isinstance(found, (int, float)) or found < 0:
            said = "missing" if found is None else repr(found)[:100]
            raise FileFormatError(f"model: expected a number for {keys[0]}, it is {said}")
        return found

    def size(self, fact: str, default: int | None = None) -> int:
        """A whole number above zero."""
        found = self.number(fact, default)
        if not isinstance(found, int) or found < 1:
            raise FileFormatError(f"model: expected a size for {KEYS[fact][self.is_hub][0]}")
        return found


def config_of(facts: Facts, context: int = 0, factors: Mapping[str, Any] | None = None) -> Config:
    """The facts as a `Config`; `factors` are those of long positions that stand in tensors."""
    row, layers = facts.row, facts.size("layers") - facts.number("unused_layers", 0)
    width, heads, longest = facts.size("width"), facts.size("heads"), facts.size("context")
    head_size = facts.size("head_size", width // heads)
    rope = _rope(facts, head_size, longest, factors or {})
    base = _window_base(facts)
    query_size = facts.number("query_size", width / heads if row.wide_queries == layers else 0)
    return Config(
        architecture=facts.architecture,
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=facts.size("kv_heads", heads),
        head_size=head_size,
        context=min(context or longest, longest),
        epsilon=facts.number("epsilon", 1e-5),
        rope=rope,
        windows=_windows(facts, layers),
        window_rope=Rope(base, rope.size, rope.interleaved) if base else None,
        unrotated=_unrotated(facts, layers),
        activation=row.activation,
        query_scale=facts.number("attention_scale", query_size**-0.5 if query_size else 0.0),
        attention_softcap=facts.number("attention_softcap", 0),
        logit_softcap=facts.number("logit_softcap", 0),
        embedding_scale=facts.number(
            "embedding_scale", width**0.5 if row.scales_embedding else 1.0
        ),
        residual_scale=facts.number("residual_scale", 1.0),
        logit_scale=1 / (facts.number("logit_divisor", 1.0) or 1.0),
        experts=_experts(facts),
    )


def _unrotated(facts: Facts, layers: int) -> frozenset[int]:
    """The layers without positions: those that a file lists, or each so many-th."""
    listed = facts.get("no_rope_layers") if facts.is_hub else None  # 1 is a layer with positions
    if isinstance(listed, list) and len(listed) >= layers:
        return frozenset(n for n in range(layers) if not listed[n])
    stated = facts.get("no_rope_layer_interval") if facts.is_hub else None
    every = stated if isinstance(stated, int) and stated > 0 else facts.row.unrotated_every
    return frozenset(n for n in range(layers) if facts.row.unrotated_every and not (n + 1) % every)


def _window_base(facts: Facts) -> float:
    """The base of rotary positions in layers with a window, 0 if it is that of all."""
    stated = facts.get("rope_parameters") if facts.is_hub else None
    local = stated.get("sliding_attention") if isinstance(stated, dict) else None
    if isinstance(local, dict) and isinstance(local.get("rope_theta"), (int, float)):
        return float(local["rope_theta"])
    return float(facts.number("window_base", facts.row.window_base))


def _windows(facts: Facts, layers: int) -> tuple[int, ...]:
    """The window of each layer, 0 where it attends to everything."""
    window = int(facts.number("window", 0)) if facts.row.has_window else 0
    if not window or facts.get("use_sliding_window") is False:
        return (0,) * layers
    kinds = facts.get("layer_types")
    if isinstance(kinds, list) and len(kinds) == layers:
        return tuple(window if kind == "sliding_attention" else 0 for kind in kinds)
    listed = facts.get(*KEYS["pattern"][facts.is_hub])
    if isinstance(listed, list) and len(listed) >= layers:
        return tuple(window if is_local else 0 for is_local in listed[:layers])
    pattern = listed if isinstance(listed, int) and listed else facts.row.pattern
    return tuple(window if not pattern or (n + 1) % pattern else 0 for n in range(layers))


def _experts(facts: Facts) -> Experts | None:
    count = facts.number("experts", 0)
    if not count:
        return None
    kinds: dict[Any, Gate] = {
        1: "softmax",
        2: "sigmoid",
        3: "softmax_chosen",
        "softmax": "softmax",
        "sigmoid": "sigmoid",
    }
    stated = facts.get("expert_gating_func", "scoring_func")
    normalized = facts.get("expert_weights_norm", "norm_topk_prob")
    return Experts(
        count=count,
        used=facts.size("experts_used"),
        gate=kinds.get(stated, facts.row.gate),
        is_normalized=facts.row.is_normalized if normalized is None else bool(normalized),
        scale=facts.number("expert_scale", 1.0) or 1.0,
        groups=facts.number("expert_groups", 1) or 1,
        groups_used=facts.number("expert_groups_used", 1) or 1,
    )


def _rope(facts: Facts, head_size: int, context: int, factors: Mapping[str, Any]) -> Rope:
    row, scaling = facts.row, _scaling(facts)
    base = scaling.get("rope_theta") or facts.number("rope_base", 10000.0)
    share = scaling.get("partial_rotary_factor") or facts.number("rope_share", 1.0)
    size = int(facts.number("rope_size", 0)) or int(head_size * share)
    size -= size % 2
    names: dict[Any, Scaling] = {"dynamic": "ntk", "su": "longrope", "default": "none"}
    name = scaling.get("rope_type") or scaling.get("type") or "none"
    kind: Any = names.get(name, name)
    if kind not in ("none", "linear", "ntk", "yarn", "llama3", "longrope"):
        raise FileFormatError(f"model: positions are scaled by {kind!r}, which is not known")
    original = scaling.get("original_max_position_embeddings") or facts.get(
        "original_max_position_embeddings"
    )
    short = tuple(scaling.get("short_factor") or factors.get("short") or ())
    long = tuple(scaling.get("long_factor") or factors.get("long") or ())
    original = int(original or context)
    factor = float(scaling.get("factor") or (context / original if long else 1.0))
    return Rope(
        base=float(base),
        size=size,
        interleaved=row.interleaved_in_hub if facts.is_hub else row.interleaved,
        scaling="longrope" if long or short else kind,
        factor=factor,
        original_context=original,
        low_factor=scaling.get("low_freq_factor") or 1.0,
        high_factor=scaling.get("high_freq_factor") or 4.0,
        fast=scaling.get("beta_fast") or 32.0,
        slow=scaling.get("beta_slow") or 1.0,
        magnitude=scaling.get("attention_factor") or factors.get("magnitude") or 0.0,
        short_factors=short,
        long_factors=long,
    )


def _scaling(facts: Facts) -> Mapping[str, Any]:
    """How positions reach past the first context, by the keys of config.json."""
    if facts.is_hub:
        found = facts.get("rope_parameters", "rope_scaling")
        if isinstance(found, dict) and isinstance(found.get("full_attention"), dict):
            found = found["full_attention"]
        return found if isinstance(found, dict) else {}
    return {
        "rope_type": facts.get("rope.scaling.type"),
        "factor": facts.get("rope.scaling.factor", "rope.scale_linear"),
        "original_max_position_embeddings": facts.get("rope.scaling.original_context_length"),
        "attention_factor": facts.get("rope.scaling.attn_factor"),
        "beta_fast": facts.get("rope.scaling.yarn_beta_fast"),
        "beta_slow": facts.get("rope.scaling.yarn_beta_slow"),
    }

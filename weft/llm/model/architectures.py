"""The architectures that are run: a row each. A new one is a row, if its parts exist.

A row says what no file says: how pairs of positions stand, which layers have a window, what is
scaled. Sizes come from the file (`facts.py`), and biases, norms of heads, experts, a head of its
own or weights that are one are found by the tensors that are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.llm.model.config import Activation, Gate


@dataclass(frozen=True)
class Architecture:
    """What an architecture does that files of it do not say."""

    interleaved: bool = False  # GGUF: the pairs of rotary positions are neighbors
    interleaved_in_hub: bool = False  # the same for files of Hugging Face
    activation: Activation = "silu"
    pattern: int = 0  # every so many layers one attends to everything; 0: all have a window
    scales_embedding: bool = False  # by the root of the width
    offset_norms: bool = False  # Hugging Face: weights of norms count from 1
    window_base: float = 0.0  # of rotary positions in layers with a window, if it is another
    has_window: bool = True  # a window that is stated is used
    gate: Gate = "softmax"
    is_normalized: bool = True  # the weights of chosen experts sum to 1, unless a file says
    unrotated_every: int = 0  # each so many layers one has no positions
    wide_queries: int = 0  # with so many layers, the scale is by width / heads


ARCHITECTURES: Final[dict[str, Architecture]] = {
    "llama": Architecture(interleaved=True),
    "mistral3": Architecture(interleaved=True),
    "smollm3": Architecture(interleaved=True, unrotated_every=4),
    "qwen2": Architecture(),
    "qwen2moe": Architecture(is_normalized=False),
    "qwen3": Architecture(),
    "qwen3moe": Architecture(),
    "gemma": Architecture(activation="gelu_tanh", scales_embedding=True, offset_norms=True),
    "gemma2": Architecture(
        activation="gelu_tanh",
        pattern=2,
        scales_embedding=True,
        offset_norms=True,
        wide_queries=46,
    ),
    "gemma3": Architecture(
        activation="gelu_tanh",
        pattern=6,
        scales_embedding=True,
        offset_norms=True,
        window_base=10000.0,
        wide_queries=62,
    ),
    "phi3": Architecture(),
    "glm4": Architecture(interleaved=True, interleaved_in_hub=True),
    "glm4moe": Architecture(gate="sigmoid"),
    "deepseek": Architecture(interleaved=True, is_normalized=False),
    "granite": Architecture(interleaved=True),
    "granitemoe": Architecture(interleaved=True, gate="softmax_chosen"),
    "olmoe": Architecture(is_normalized=False),
}

# The rows by the names that Hugging Face gives models.
HUB_NAMES: Final[dict[str, str]] = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "llama",
    "MixtralForCausalLM": "llama",
    "SmolLM3ForCausalLM": "smollm3",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen2MoeForCausalLM": "qwen2moe",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3moe",
    "GemmaForCausalLM": "gemma",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3",
    "Phi3ForCausalLM": "phi3",
    "GlmForCausalLM": "glm4",
    "Glm4ForCausalLM": "glm4",
    "Glm4MoeForCausalLM": "glm4moe",
    "DeepseekForCausalLM": "deepseek",
    "GraniteForCausalLM": "granite",
    "GraniteMoeForCausalLM": "granitemoe",
    "OlmoeForCausalLM": "olmoe",
}

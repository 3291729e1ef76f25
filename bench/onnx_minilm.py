"""all-MiniLM-L6-v2 as a module of PyTorch, to be exported: BERT of six layers.

Its weights come as safetensors; nothing of a library of models is needed to write its graph.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

WIDTH, HEADS, INNER, LAYERS = 384, 12, 1536, 6
WORDS, POSITIONS, SIDES = 30522, 512, 2
_NAMES = {
    "word": "embeddings.word_embeddings",
    "position": "embeddings.position_embeddings",
    "side": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
}
_LAYER_NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "out": "attention.output.dense",
    "first": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "second": "output.LayerNorm",
}


class Layer(nn.Module):
    """Attention and two linear layers, each with a residual and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.first, self.second = (nn.LayerNorm(WIDTH, 1e-12) for _ in range(2))
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x: Any, mask: Any) -> Any:
        batch, time, width = x.shape
        shape = (batch, time, HEADS, width // HEADS)
        q, k, v = (
            each(x).view(shape).transpose(1, 2) for each in (self.query, self.key, self.value)
        )
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(width // HEADS) + mask
        mixed = torch.matmul(scores.softmax(-1), v).transpose(1, 2).reshape(batch, time, width)
        x = self.first(self.out(mixed) + x)
        return self.second(self.down(nn.functional.gelu(self.up(x))) + x)


class MiniLM(nn.Module):
    """The hidden states of the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.position = nn.Embedding(WORDS, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.side, self.norm = nn.Embedding(SIDES, WIDTH), nn.LayerNorm(WIDTH, 1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, ids: Any, mask: Any, sides: Any) -> Any:
        positions = self.position(torch.arange(ids.shape[1]))[None]
        x = self.norm(self.word(ids) + positions + self.side(sides))
        hidden = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, hidden)
        return x


def network(content: bytes) -> MiniLM:
    """The module with the weights of a safetensors file."""
    from safetensors.torch import load

    weights = load(content)
    model = MiniLM()
    state = {}
    for name in model.state_dict():
        module, _, kind = name.rpartition(".")
        state[name] = weights[f"{_source(module)}.{kind}"]
    model.load_state_dict(state)
    return model.eval()


def _source(module: str) -> str:
    if module in _NAMES:
        return _NAMES[module]
    _, number, part = module.split(".")
    return f"encoder.layer.{number}.{_LAYER_NAMES[part]}"

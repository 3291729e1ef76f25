"""The models of `examples/` in plain NumPy: what their tests compare with."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.llm import Config

Array = Any


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class NumpyLlama:
    """Llama, one token at a time."""

    def __init__(self, config: Config, weights: dict[str, Array]) -> None:
        self.config = config
        self.weights = weights  # float32: in float64 a real model takes a gigabyte
        self.keys: list[list[Array]] = [[] for _ in range(config.layers)]
        self.values: list[list[Array]] = [[] for _ in range(config.layers)]

    def norm(self, x: Array, name: str) -> Array:
        return x / np.sqrt((x * x).mean() + self.config.epsilon) * self.weights[name]

    def rotated(self, x: Array, position: int) -> Array:
        size = self.config.head_size
        angle = position * self.config.rope.base ** (-np.arange(0, size, 2) / size)
        rotated = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angle)
        return np.stack([rotated.real, rotated.imag], -1).reshape(x.shape)

    def step(self, token: int, position: int) -> Array:
        c, w = self.config, self.weights
        x = w["token_embd.weight"][token]
        for n in range(c.layers):
            block = f"blk.{n}."
            h = self.norm(x, block + "attn_norm.weight")
            q, k, v = (
                (w[f"{block}attn_{part}.weight"] @ h).reshape(-1, c.head_size) for part in "qkv"
            )
            self.keys[n].append(self.rotated(k, position))
            self.values[n].append(v)
            shared = c.heads // c.kv_heads
            keys, values = (np.stack(x[n], 1).repeat(shared, 0) for x in (self.keys, self.values))
            scores = np.einsum("hd,htd->ht", self.rotated(q, position), keys)
            mixed = np.einsum("ht,htd->hd", softmax(scores * c.head_size**-0.5), values)
            x = x + w[block + "attn_output.weight"] @ mixed.reshape(-1)
            h = self.norm(x, block + "ffn_norm.weight")
            gate = w[block + "ffn_gate.weight"] @ h
            inner = gate / (1 + np.exp(-gate)) * (w[block + "ffn_up.weight"] @ h)
            x = x + w[block + "ffn_down.weight"] @ inner
        head = w.get("output.weight", w["token_embd.weight"])
        return head @ self.norm(x, "output_norm.weight")

    def generate(self, prompt: list[int], count: int) -> list[int]:
        found: list[int] = []
        for position, token in enumerate(prompt):
            logits = self.step(token, position)
        for position in range(len(prompt), len(prompt) + count):
            found.append(int(logits.argmax()))
            logits = self.step(found[-1], position)
        return found


def numpy_minilm(weights: dict[str, Array], heads: int, ids: Array, mask: Array) -> Array:
    """Sentence embeddings of BERT."""
    from math import erf

    w = {name: np.asarray(weight, np.float64) for name, weight in weights.items()}

    def dense(name: str, x: Array) -> Array:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(name: str, x: Array) -> Array:
        centered = x - x.mean(-1, keepdims=True)
        x = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-12)
        return x * w[f"{name}.weight"] + w[f"{name}.bias"]

    positions = w["embeddings.position_embeddings.weight"][: ids.shape[1]]
    kind = w["embeddings.token_type_embeddings.weight"][0]
    x = w["embeddings.word_embeddings.weight"][ids] + positions + kind
    x = norm("embeddings.LayerNorm", x)
    for n in range(sum(name.endswith("intermediate.dense.weight") for name in w)):
        block = f"encoder.layer.{n}."
        parts = [dense(f"{block}attention.self.{p}", x) for p in ("query", "key", "value")]
        q, k, v = (p.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) for p in parts)
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
        scores = np.where(mask[:, None, None] == 0, -np.inf, scores)
        mixed = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = norm(
            f"{block}attention.output.LayerNorm",
            x + dense(f"{block}attention.output.dense", mixed),
        )
        h = dense(f"{block}intermediate.dense", x)
        h = h * 0.5 * (1 + np.vectorize(erf)(h / np.sqrt(2)))
        x = norm(f"{block}output.LayerNorm", x + dense(f"{block}output.dense", h))
    mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return mean / np.linalg.norm(mean, axis=-1, keepdims=True)

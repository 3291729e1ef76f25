"""Models of random weights, in the shapes of the usual architectures, beside plain PyTorch."""

import json
from pathlib import Path

import numpy as np
import pytest

from weft.io import safe_save
from weft.llm import Batch, Model, load
from weft.tensor import Tensor

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers("torch")

WORDS = 64
BASE = {
    "vocab_size": WORDS,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
}
SHAPES = {
    "mixtral": {
        "architectures": ["MixtralForCausalLM"],
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": None,
    },
    "qwen": {"architectures": ["Qwen3ForCausalLM"], "tie_word_embeddings": True},
    "gemma": {
        "architectures": ["Gemma2ForCausalLM"],
        "sliding_window": 8,
        "attn_logit_softcapping": 2.0,
        "final_logit_softcapping": 3.0,
        "query_pre_attn_scalar": 24,
        "tie_word_embeddings": True,
    },
    "phi": {"architectures": ["Phi3ForCausalLM"], "partial_rotary_factor": 0.5},
}


def shapes_of(name: str) -> dict[str, tuple[int, ...]]:
    """The weights of a model of Hugging Face."""
    width, inner, q, kv = 32, 48, 4 * 16, 2 * 16
    found: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (WORDS, width),
        "model.norm.weight": (width,),
    }
    if not SHAPES[name].get("tie_word_embeddings"):
        found["lm_head.weight"] = (WORDS, width)
    for n in range(3):
        b = f"model.layers.{n}."
        found |= {b + "input_layernorm.weight": (width,)}
        found |= {b + "post_attention_layernorm.weight": (width,)}
        found |= {b + "self_attn.o_proj.weight": (width, q)}
        if name == "phi":
            found |= {b + "self_attn.qkv_proj.weight": (q + 2 * kv, width)}
            found |= {b + "mlp.gate_up_proj.weight": (2 * inner, width)}
        else:
            found |= {
                b + f"self_attn.{p}_proj.weight": (q if p == "q" else kv, width) for p in "qkv"
            }
        if name == "qwen":
            found |= {b + f"self_attn.{p}_norm.weight": (16,) for p in "qk"}
        if name == "gemma":
            found |= {b + f"{p}_feedforward_layernorm.weight": (width,) for p in ("pre", "post")}
        if name == "mixtral":
            found |= {b + "block_sparse_moe.gate.weight": (4, width)}
            for e in range(4):
                m = b + f"block_sparse_moe.experts.{e}."
                found |= {m + f"{p}.weight": (inner, width) for p in ("w1", "w3")}
                found |= {m + "w2.weight": (width, inner)}
        else:
            found |= {b + "mlp.down_proj.weight": (width, inner)}
        if name in ("qwen", "gemma"):
            found |= {b + f"mlp.{p}_proj.weight": (inner, width) for p in ("gate", "up")}
    return found


def random_weights(name: str) -> dict[str, np.ndarray]:
    source = np.random.default_rng(1)
    return {
        key: (source.standard_normal(shape) * 0.3).astype(np.float32)
        for key, shape in shapes_of(name).items()
    }


class Reference:
    """All tokens of one sequence at once, in float64, from the names of Hugging Face."""

    def __init__(self, name: str, weights: dict[str, np.ndarray]) -> None:
        self.name, self.facts = name, {**BASE, **SHAPES[name]}
        self.w = {key: torch.tensor(value).double() for key, value in weights.items()}
        self.is_gemma = name == "gemma"

    def norm(self, x, key):
        scale = self.w[key + ".weight"] + (1 if self.is_gemma else 0)
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * scale

    def rotate(self, x):  # (time, heads, 16): halves of the rotated part are the pairs
        size = int(16 * self.facts.get("partial_rotary_factor", 1))
        rates = 10000.0 ** -(torch.arange(0, size, 2).double() / size)
        angle = torch.arange(len(x)).double()[:, None, None] * rates
        a, b, rest = x[..., : size // 2], x[..., size // 2 : size], x[..., size:]
        cos, sin = angle.cos(), angle.sin()
        return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)

    def attend(self, x, n):
        b = f"model.layers.{n}.self_attn."
        if self.name == "phi":
            q, k, v = (x @ self.w[b + "qkv_proj.weight"].T).split([64, 32, 32], -1)
        else:
            q, k, v = (x @ self.w[b + f"{p}_proj.weight"].T for p in "qkv")
        q, k, v = (each.unflatten(-1, (-1, 16)) for each in (q, k, v))
        if self.name == "qwen":
            q, k = self.norm(q, b + "q_norm"), self.norm(k, b + "k_norm")
        q, k = self.rotate(q), self.rotate(k).repeat_interleave(2, 1)
        v = v.repeat_interleave(2, 1)
        scores = torch.einsum("qhd,khd->hqk", q, k)
        scores = scores * self.facts.get("query_pre_attn_scalar", 16) ** -0.5
        if self.is_gemma:
            scores = 2 * torch.tanh(scores / 2)
        own, other = torch.arange(len(x))[:, None], torch.arange(len(x))
        allowed = other <= own
        if self.is_gemma and n % 2 == 0:
            allowed &= other > own - 8
        scores = scores.masked_fill(~allowed, -torch.inf).softmax(-1)
        return torch.einsum("hqk,khd->qhd", scores, v).flatten(1) @ self.w[b + "o_proj.weight"].T

    def inner(self, x, n):
        if self.name == "mixtral":
            return self.experts(x, f"model.layers.{n}.block_sparse_moe.")
        b = f"model.layers.{n}.mlp."
        if self.name == "phi":
            gate, up = (x @ self.w[b + "gate_up_proj.weight"].T).chunk(2, -1)
        else:
            gate, up = (x @ self.w[b + f"{p}_proj.weight"].T for p in ("gate", "up"))
        act = torch.nn.functional
        gate = act.gelu(gate, approximate="tanh") if self.is_gemma else act.silu(gate)
        return (gate * up) @ self.w[b + "down_proj.weight"].T

    def experts(self, x, b):
        best, chosen = (x @ self.w[b + "gate.weight"].T).topk(2)
        shares = best.softmax(-1)
        rows = []
        for row, numbers, weights in zip(x, chosen.tolist(), shares, strict=True):
            made = torch.zeros(32).double()
            for e, weight in zip(numbers, weights, strict=True):
                w1, w2, w3 = (self.w[f"{b}experts.{e}.w{i}.weight"] for i in (1, 2, 3))
                made += weight * (w2 @ (torch.nn.functional.silu(w1 @ row) * (w3 @ row)))
            rows.append(made)
        return torch.stack(rows)

    def logits(self, tokens: list[int]) -> np.ndarray:
        x = self.w["model.embed_tokens.weight"][tokens]
        if self.is_gemma:
            x = x * 32**0.5
        for n in range(3):
            b = f"model.layers.{n}."
            h = self.attend(self.norm(x, b + "input_layernorm"), n)
            if self.is_gemma:
                x = x + self.norm(h, b + "post_attention_layernorm")
                h = self.inner(self.norm(x, b + "pre_feedforward_layernorm"), n)
                x = x + self.norm(h, b + "post_feedforward_layernorm")
            else:
                x = x + h
                x = x + self.inner(self.norm(x, b + "post_attention_layernorm"), n)
        head = self.w.get("lm_head.weight", self.w["model.embed_tokens.weight"])
        found = self.norm(x, "model.norm") @ head.T
        return (3 * torch.tanh(found / 3) if self.is_gemma else found).numpy()


def saved_model(name: str, folder: Path) -> tuple[Model, Reference]:
    weights = random_weights(name)
    safe_save({key: Tensor(value) for key, value in weights.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({**BASE, **SHAPES[name]}), encoding="utf-8")
    return load(folder), Reference(name, weights)


def tokens_of(seed: int, count: int) -> list[int]:
    return np.random.default_rng(seed).integers(0, WORDS, count).tolist()


def close(got: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", SHAPES)
def test_logits_are_those_of_pytorch(name: str, tmp_path: Path):
    model, reference = saved_model(name, tmp_path)
    cache = model.new_cache(256)
    first, second, whole = tokens_of(2, 40), tokens_of(3, 23), cache.allocate()
    wanted = reference.logits(first)
    every = model.forward(Batch.of(cache, [(whole, first)], "every")).numpy()
    close(every[0], wanted)

    # In pieces, beside another sequence, with windows that give pages back.
    a, b = cache.allocate(), cache.allocate()
    found = model.forward(Batch.of(cache, [(a, first[:20]), (b, second[:-1])])).numpy()
    close(found[0], wanted[19])
    cache.trim(a)
    found = model.forward(Batch.of(cache, [(a, first[20:-1])])).numpy()
    close(found[0], wanted[38])
    found = model.forward(Batch.of(cache, [(a, first[-1:]), (b, second[-1:])])).numpy()
    close(found, np.stack([wanted[39], reference.logits(second)[-1]]))

    # A fork goes on by itself.
    fork = cache.fork(whole, 21)
    found = model.forward(Batch.of(cache, [(fork, second)])).numpy()
    close(found[0], reference.logits(first[:21] + second)[-1])
    again = model.forward(Batch.of(cache, [(whole, [5])])).numpy()
    close(again[0], reference.logits([*first, 5])[-1])


def test_one_program_serves_every_length(tmp_path: Path):
    model, _ = saved_model("qwen", tmp_path)
    cache = model.new_cache(128)
    sequence = cache.allocate()
    model.forward(Batch.of(cache, [(sequence, [1])])).numpy()
    (step,) = model._steps.values()
    traces = step.step.traces
    for token in range(40):
        model.forward(Batch.of(cache, [(sequence, [token])])).numpy()
    assert step.step.traces == traces

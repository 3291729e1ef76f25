"""A model of random weights with a tokenizer of bytes, as a GGUF file: what tests talk to."""

from pathlib import Path

import numpy as np

from weft.io.gguf_write import PackedTensor, gguf_save
from weft.llm.text.tokenizer import _byte_alphabet

WIDTH, INNER, HEADS, KV_HEADS, LAYERS = 32, 48, 4, 2, 2
MARKS = ["<|end|>", "<|im_start|>", "<|im_end|>"]


def metadata(context: int = 512, window: int = 0) -> dict:
    alphabet = sorted(_byte_alphabet(), key=_byte_alphabet().get)
    name = "gemma3" if window else "llama"
    facts = {
        "general.architecture": name,
        "general.name": "tiny",
        f"{name}.block_count": LAYERS,
        f"{name}.embedding_length": WIDTH,
        f"{name}.feed_forward_length": INNER,
        f"{name}.attention.head_count": HEADS,
        f"{name}.attention.head_count_kv": KV_HEADS,
        f"{name}.attention.key_length": WIDTH // HEADS,
        f"{name}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{name}.context_length": context,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": alphabet + MARKS,
        "tokenizer.ggml.token_type": [1] * 256 + [3] * 3,
        "tokenizer.ggml.merges": ["Ġ t"],
        "tokenizer.ggml.eos_token_id": 256 + 2,
    }
    facts["tokenizer.ggml.tokens"].append("Ġt")
    facts["tokenizer.ggml.token_type"].append(1)
    if window:
        facts[f"{name}.attention.sliding_window"] = window
    return facts


def shapes() -> dict[str, tuple[int, ...]]:
    kv = KV_HEADS * (WIDTH // HEADS)
    found: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (260, WIDTH),
        "output_norm.weight": (WIDTH,),
    }
    for n in range(LAYERS):
        found |= {
            f"blk.{n}.attn_norm.weight": (WIDTH,),
            f"blk.{n}.attn_q.weight": (WIDTH, WIDTH),
            f"blk.{n}.attn_k.weight": (kv, WIDTH),
            f"blk.{n}.attn_v.weight": (kv, WIDTH),
            f"blk.{n}.attn_output.weight": (WIDTH, WIDTH),
            f"blk.{n}.ffn_norm.weight": (WIDTH,),
            f"blk.{n}.ffn_gate.weight": (INNER, WIDTH),
            f"blk.{n}.ffn_up.weight": (INNER, WIDTH),
            f"blk.{n}.ffn_down.weight": (WIDTH, INNER),
        }
    return found


def write_tiny(path: Path, *, context: int = 512, window: int = 0, seed: int = 0) -> Path:
    source = np.random.default_rng(seed)
    tensors = {}
    for name, shape in shapes().items():
        weight = (source.standard_normal(shape) * 0.4).astype(np.float32)
        data = weight.tobytes()
        tensors[name] = PackedTensor(shape, 0, len(data), lambda data=data: data)
    gguf_save(path, metadata(context, window), tensors)
    return path

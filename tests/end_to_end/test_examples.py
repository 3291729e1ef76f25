"""The models of `examples/`, reduced with random weights, and whole where their weights are."""

from pathlib import Path

import numpy as np
import pytest
from minilm import MiniLM, model_file, tokens
from package_file import NotAvailable, package_file
from smollm2 import chat, weights_path

from fuzz.file_samples import gguf
from weft.io import gguf_load, safe_load
from weft.llm import Batch, Config, Model, generate, load
from weft.llm.model.config import Rope
from weft.llm.text import tokenizer_of
from weft.llm.weights.layer import resident
from weft.tensor import Tensor

from .model_oracles import NumpyLlama, numpy_minilm

SENTENCES = ["A cat sits on the mat.", "The stock market fell sharply today.", "Hello"]
SMALL = Config(
    architecture="llama",
    layers=2,
    width=64,
    heads=4,
    kv_heads=2,
    head_size=16,
    context=16,
    epsilon=1e-5,
    rope=Rope(size=16, interleaved=True),
    windows=(0, 0),
)


def or_skip(path):
    try:
        return path()
    except NotAvailable as reason:
        pytest.skip(str(reason))


def quantized(weight: np.ndarray) -> bytes:
    """Rows packed as Q8_0."""
    blocks = weight.reshape(-1, 32)
    scale = (np.abs(blocks).max(1, keepdims=True) / 127).astype(np.float16)
    codes = np.round(blocks / scale.astype(np.float32)).astype(np.int8)
    return np.hstack([scale.view(np.uint8), codes.view(np.uint8)]).tobytes()


def small_llama(path: Path) -> None:
    source = np.random.default_rng(0)
    c, inner, words = SMALL, 96, 50
    shapes = {"token_embd.weight": (words, c.width), "output_norm.weight": (c.width,)}
    for n in range(c.layers):
        shapes |= {
            f"blk.{n}.attn_norm.weight": (c.width,),
            f"blk.{n}.attn_q.weight": (c.heads * c.head_size, c.width),
            f"blk.{n}.attn_k.weight": (c.kv_heads * c.head_size, c.width),
            f"blk.{n}.attn_v.weight": (c.kv_heads * c.head_size, c.width),
            f"blk.{n}.attn_output.weight": (c.width, c.heads * c.head_size),
            f"blk.{n}.ffn_norm.weight": (c.width,),
            f"blk.{n}.ffn_gate.weight": (inner, c.width),
            f"blk.{n}.ffn_up.weight": (inner, c.width),
            f"blk.{n}.ffn_down.weight": (c.width, inner),
        }
    tensors = {}
    for name, shape in shapes.items():
        weight = source.standard_normal(shape).astype(np.float32) * (0.15 if len(shape) > 1 else 1)
        packed = (shape, 8, quantized(weight)) if len(shape) > 1 else (shape, 0, weight.tobytes())
        tensors[name] = packed
    path.write_bytes(gguf(tensors))


def small_model(path: Path) -> Model:
    small_llama(path)
    return Model(SMALL, resident(gguf_load(path)[1]))


def test_a_small_llama_like_numpy(tmp_path: Path):
    model = small_model(tmp_path / "x.gguf")
    weights = gguf_load(tmp_path / "x.gguf")[1]
    oracle = NumpyLlama(SMALL, {name: weight.numpy() for name, weight in weights.items()})
    cache = model.new_cache()
    first = model.forward(Batch.of(cache, [(cache.allocate(), [3])])).numpy()[0]
    np.testing.assert_allclose(first, oracle.step(3, 0), rtol=1e-4, atol=1e-4)
    oracle = NumpyLlama(SMALL, oracle.weights)
    prompt = [3, 14, 15, 9]
    assert generate(model, prompt, most=8).tokens == oracle.generate(prompt, 8)


def test_an_answer_ends_at_a_stop(tmp_path: Path):
    model = small_model(tmp_path / "x.gguf")
    whole = generate(model, [1, 2], most=4).tokens
    cut = generate(model, [1, 2], most=4, ends=frozenset(whole[2:3]))
    assert cut.tokens == whole[: whole.index(whole[2])] and cut.ending == "stop"


def test_a_small_minilm_like_numpy():
    source = np.random.default_rng(1)
    width, inner = 24, 40

    def tensor(*shape: int) -> np.ndarray:
        return (source.standard_normal(shape) * 0.3).astype(np.float32)

    weights = {
        f"embeddings.{name}_embeddings.weight": tensor(rows, width)
        for name, rows in (("word", 30), ("position", 12), ("token_type", 2))
    }
    dense = {"embeddings.LayerNorm": (width,)}
    for n in range(2):
        block = f"encoder.layer.{n}."
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            dense[f"{block}attention.{part}"] = (width, width)
        dense[f"{block}attention.output.LayerNorm"] = dense[f"{block}output.LayerNorm"] = (width,)
        dense[f"{block}intermediate.dense"] = (inner, width)
        dense[f"{block}output.dense"] = (width, inner)
    for name, shape in dense.items():
        weights |= {f"{name}.weight": tensor(*shape), f"{name}.bias": tensor(shape[0])}
    ids = source.integers(0, 30, (3, 7)).astype(np.int32)
    mask = (np.arange(7) < np.array([[7], [4], [1]])).astype(np.int32)
    model = MiniLM({name: Tensor(weight) for name, weight in weights.items()}, heads=4)
    got = model(Tensor(ids), Tensor(mask)).numpy()
    np.testing.assert_allclose(got, numpy_minilm(weights, 4, ids, mask), atol=1e-5)


def test_minilm():
    tokenizers = pytest.importorskip("tokenizers")
    weights = safe_load(or_skip(lambda: model_file("model.safetensors")))
    tokenizer = tokenizers.Tokenizer.from_file(str(model_file("tokenizer.json")))
    ids, mask = tokens(tokenizer, SENTENCES)
    got = MiniLM(weights)(ids, mask).numpy()
    plain = {name: weight.numpy() for name, weight in weights.items()}
    wanted = numpy_minilm(plain, 12, ids.numpy(), mask.numpy())
    np.testing.assert_allclose(got, wanted, atol=1e-4)


def test_smollm2():
    pytest.importorskip("tokenizers")
    path = or_skip(weights_path)
    model = load(path, context=64)
    tokenizer = tokenizer_of(model)
    text = chat("Why is the sky blue?")
    ids = tokenizer.encode(text)
    assert ids[:8] == [1, 9690, 198, 2683, 359, 253, 5356, 5646]
    assert tokenizer.decode(ids, special=True) == text
    weights = gguf_load(path)[1]
    oracle = NumpyLlama(model.config, {name: each.numpy() for name, each in weights.items()})
    prompt = ids[-4:]
    assert generate(model, prompt, most=3).tokens == oracle.generate(prompt, 3)


def test_a_package_that_is_not_there_is_a_reason(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(NotAvailable, match="cannot download weft-no-such-package"):
        package_file("weft-no-such-package", "1.0", "0" * 64, "x")

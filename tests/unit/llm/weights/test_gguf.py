"""Models of GGUF files: facts, rotary factors in tensors, and files in parts."""

import gc

import numpy as np
import pytest

from weft.io.gguf_blocks import QUANTIZED
from weft.io.gguf_write import PackedTensor, gguf_save
from weft.llm import Batch, load
from weft.llm.model.facts import Facts, config_of
from weft.llm.weights.convert import convert
from weft.llm.weights.gguf import _other_files, config_from_gguf, gguf_parts
from weft.support.errors import FileFormatError
from weft.tensor import Tensor


def metadata(name: str, **more: object) -> dict[str, object]:
    sizes = {"block_count": 12, "embedding_length": 64, "context_length": 256}
    sizes |= {"attention.head_count": 4, "attention.head_count_kv": 2}
    sizes |= {key.replace("__", "."): value for key, value in more.items()}
    return {"general.architecture": name} | {f"{name}.{k}": v for k, v in sizes.items()}


def test_a_row_says_what_the_file_does_not():
    facts = metadata("gemma3", attention__sliding_window=128, rope__freq_base=1e6)
    config = config_from_gguf(facts, {}, context=100)
    assert config.windows == ((128,) * 5 + (0,)) * 2 and config.context == 100
    assert (config.rope_of(0).base, config.rope_of(5).base) == (1e4, 1e6)
    assert config.embedding_scale == 8 and config.activation == "gelu_tanh"
    assert not config.rope.interleaved and config_from_gguf(metadata("llama"), {}).rope.interleaved


def test_layers_without_positions_are_listed_or_every_so_many():
    assert config_from_gguf(metadata("smollm3"), {}).unrotated == {3, 7, 11}
    assert config_from_gguf(metadata("llama"), {}).unrotated == frozenset()
    sizes = {"num_hidden_layers": 4, "hidden_size": 8, "num_attention_heads": 2}
    sizes["max_position_embeddings"] = 64

    def unrotated(name: str, **more: object) -> frozenset[int]:
        return config_of(Facts({**sizes, **more}, name, is_hub=True)).unrotated

    assert unrotated("smollm3", no_rope_layers=[1, 0, 1, 0]) == {1, 3}
    assert unrotated("smollm3", no_rope_layer_interval=2) == {1, 3}
    assert unrotated("smollm3") == {3} and unrotated("llama") == frozenset()


def test_frequencies_are_divided_by_factors_of_a_tensor():
    factors = np.arange(1, 9, dtype=np.float32)
    config = config_from_gguf(metadata("llama"), {"rope_freqs.weight": Tensor(factors)})
    assert config.rope.short_factors == config.rope.long_factors == tuple(factors.tolist())
    assert config.rope.magnitude == 1


def test_an_architecture_that_is_not_run_is_named():
    with pytest.raises(FileFormatError, match="'mamba'"):
        config_from_gguf(metadata("mamba"), {})


def test_the_first_of_several_files_finds_the_others(tmp_path):
    first = tmp_path / "model-00001-of-00003.gguf"
    for n in (2, 3):
        (tmp_path / f"model-0000{n}-of-00003.gguf").touch()
    found = [each.name for each in _other_files(first, {"split.count": 3})]
    assert found == ["model-00002-of-00003.gguf", "model-00003-of-00003.gguf"]
    with pytest.raises(FileFormatError, match="one of 3 files"):
        _other_files(tmp_path / "model-00002-of-00003.gguf", {"split.count": 3})
    (tmp_path / found[1]).unlink()
    with pytest.raises(FileFormatError, match=r"00003-of-00003\.gguf is missing"):
        _other_files(first, {"split.count": 3})


def test_nobody_collects_garbage_while_a_model_is_loaded(tiny_path, monkeypatch):
    """What is read stays, and walking it is a part of the time to the first token."""
    states = []

    def read(*args):
        states.append(gc.isenabled())
        return gguf_parts(*args)

    monkeypatch.setattr("weft.llm.weights.load.gguf_parts", read)
    load(tiny_path)
    assert states == [False] and gc.isenabled()


def write_grids(path, seed):
    """The tiny model with weights whose codes name groups of a grid, and the same as floats."""
    source = np.random.default_rng(seed)
    width, kinds = 256, {16: "IQ2_XXS", 19: "IQ1_S", 29: "IQ1_M"}
    numbers = {"block_count": 1, "embedding_length": width, "context_length": 64}
    facts = {f"llama.{key}": number for key, number in numbers.items()}
    facts |= {"general.architecture": "llama", "llama.attention.head_count": 4}
    words = source.standard_normal((16, width)).astype(np.float32)
    arrays = {"token_embd.weight": words, "output_norm.weight": np.ones(width, np.float32)}
    arrays |= {f"blk.0.{part}_norm.weight": np.ones(width, np.float32) for part in ("attn", "ffn")}
    tensors = {n: PackedTensor(a.shape, 0, a.nbytes, a.tobytes) for n, a in arrays.items()}
    parts = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    for number, part in enumerate(parts):
        kind = list(kinds)[number % len(kinds)]
        blocks = source.integers(0, 64, (width, QUANTIZED[kind].bytes), np.uint8)
        tensors[f"blk.0.{part}.weight"] = PackedTensor(
            (width, width), kind, blocks.nbytes, blocks.tobytes
        )
    gguf_save(path, facts, tensors)
    return path


def test_models_with_grids_do_not_share_a_trace(tmp_path):
    for seed in range(2):  # the grids of the first are known when the second is traced
        path = write_grids(tmp_path / f"{seed}.gguf", seed)
        plain = tmp_path / f"plain{seed}.gguf"
        convert(path, plain, "F32")
        found = []
        for model in (load(path), load(plain)):
            cache = model.new_cache()
            sequence = cache.allocate()
            batches = [Batch.of(cache, [(sequence, tokens)]) for tokens in ([1, 2], [3])]
            found.append(np.concatenate([model.forward(each).numpy() for each in batches]))
        np.testing.assert_allclose(found[0], found[1], rtol=1e-3, atol=1e-3)

"""Models of GGUF files: facts, rotary factors in tensors, and files in parts."""

import gc

import numpy as np
import pytest

from weft.llm import load
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

"""Folders of Hugging Face: names, 8-bit weights with their scales, and what is missing."""

import json

import numpy as np
import pytest

from weft.io import safe_save
from weft.ir.dtypes import dtypes
from weft.llm import load
from weft.llm.weights.hugging_face import _weights, scaled
from weft.llm.weights.names import gguf_names
from weft.support.errors import FileFormatError
from weft.tensor import Tensor


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", [dtypes.fp8e4m3, dtypes.int8])
@pytest.mark.parametrize("shape", [(1,), (160, 1), (2, 2)])
def test_a_scale_is_of_all_of_rows_or_of_blocks(dtype, shape):
    weight = Tensor(random(160, 192) * 20).cast(dtype)
    scale = np.abs(random(*shape)) + 0.5
    wide = scale if len(shape) == 1 else np.repeat(scale, 128 if shape == (2, 2) else 1, 0)
    wide = np.repeat(wide, 128, 1)[:, :192] if shape == (2, 2) else wide
    wanted = weight.cast(dtypes.float32).numpy() * wide[:160]
    np.testing.assert_array_equal(scaled(weight, Tensor(scale)).numpy(), wanted)


def test_weights_of_experts_become_one_and_keep_their_bits():
    parts = [Tensor(random(4, 8) * (n + 1)).cast(dtypes.fp8e4m3).realize() for n in range(11)]
    names = [f"model.layers.0.mlp.experts.{n}.up_proj.weight" for n in range(11)]
    stored = dict(zip(names, parts, strict=True))
    stored |= {f"{name}_scale_inv": Tensor([[float(n)]]) for n, name in enumerate(names)}
    (found,) = _weights(stored, False, None).values()
    wanted = np.stack([part.cast(dtypes.float32).numpy() * n for n, part in enumerate(parts)])
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_norms_after_a_part_change_what_a_name_means():
    norm = "model.layers.1.post_attention_layernorm.weight"
    assert list(gguf_names([norm])) == ["blk.1.ffn_norm.weight"]
    around = gguf_names([norm, "model.layers.1.pre_feedforward_layernorm.weight"])
    assert list(around) == ["blk.1.post_attention_norm.weight", "blk.1.ffn_norm.weight"]


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(FileFormatError, match=r"no config\.json"):
        load(tmp_path)
    (tmp_path / "config.json").write_text('{"architectures": ["SomethingElse"]}')
    with pytest.raises(FileFormatError, match="'SomethingElse'"):
        load(tmp_path)
    stated = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1}
    (tmp_path / "config.json").write_text(json.dumps(stated))
    with pytest.raises(FileFormatError, match="hidden_size, it is missing"):
        load(tmp_path)
    stated |= {"hidden_size": 8, "num_attention_heads": 2, "max_position_embeddings": 8}
    (tmp_path / "config.json").write_text(json.dumps(stated))
    with pytest.raises(FileFormatError, match="no safetensors"):
        load(tmp_path)
    safe_save({"model.norm.weight": Tensor(random(8))}, tmp_path / "model.safetensors")
    with pytest.raises(FileFormatError, match=r"no tensor 'token_embd\.weight'"):
        load(tmp_path)

"""Models in other files: other types, the same metadata, the same words."""

import numpy as np
import pytest

from weft import ArgumentError
from weft.io import gguf_load, safe_load
from weft.io.gguf import gguf_typed_metadata
from weft.llm import generate, load
from weft.llm.weights.convert import convert


@pytest.mark.parametrize("kind", ["F32", "BF16", "Q8_0", "Q4_0"])
def test_a_file_with_other_weights_is_the_same_model(tiny_path, tmp_path, kind):
    seen = []
    target = tmp_path / "other.gguf"
    convert(tiny_path, target, kind, lambda *told: seen.append(told))
    before, after = gguf_typed_metadata(tiny_path), gguf_typed_metadata(target)
    assert {key: after[key] for key in before} == before
    old, new = gguf_load(tiny_path)[1], gguf_load(target)[1]
    assert len(seen) == len(old) == len(new)
    for name, weight in old.items():
        loss = np.abs(new[name].numpy() - weight.numpy()).max()
        limit = {"F32": 0, "BF16": 0.01, "Q8_0": 0.02, "Q4_0": 0.3}[kind]
        assert loss <= (limit if weight.ndim > 1 else 0)
    assert target.stat().st_size <= tiny_path.stat().st_size + 64


def test_float32_answers_alike(tiny_path, tmp_path):
    convert(tiny_path, tmp_path / "same.gguf", "f32")
    options = {"most": 3, "ends": frozenset()}
    wanted = generate(load(tiny_path), [1, 2, 3], **options).tokens
    assert generate(load(tmp_path / "same.gguf"), [1, 2, 3], **options).tokens == wanted


def test_safetensors(tiny_path, tmp_path):
    convert(tiny_path, tmp_path / "x.safetensors", "F16")
    found = safe_load(tmp_path / "x.safetensors")
    old = gguf_load(tiny_path)[1]
    assert found.keys() == old.keys()
    weight = "blk.0.attn_q.weight"
    np.testing.assert_array_equal(found[weight].numpy(), old[weight].numpy().astype(np.float16))


@pytest.mark.parametrize(
    ("target", "kind"), [("x.gguf", "Q9"), ("x.bin", "Q8_0"), ("x.safetensors", "Q8_0")]
)
def test_what_cannot_be_written(tiny_path, tmp_path, target, kind):
    with pytest.raises(ArgumentError, match="convert:"):
        convert(tiny_path, tmp_path / target, kind)
    assert not list(tmp_path.iterdir())


def test_the_gguf_package_reads_it(tiny_path, tmp_path):
    gguf = pytest.importorskip("gguf", reason="needs the extra `files`")
    convert(tiny_path, tmp_path / "x.gguf", "Q8_0")
    reader = gguf.GGUFReader(tmp_path / "x.gguf")
    named = {tensor.name: tensor for tensor in reader.tensors}
    assert named["token_embd.weight"].tensor_type == gguf.GGMLQuantizationType.Q8_0
    assert reader.get_field("llama.block_count").contents() == 2

"""Safetensors: round trips, laziness, the reference implementation, damaged headers."""

import json
from pathlib import Path

import numpy as np
import pytest

from weft import ArgumentTypeError, FileFormatError, GlobalCounters, dtypes
from weft.io import safe_load, safe_load_metadata, safe_save
from weft.tensor import Tensor

DTYPES = [
    *("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
    *("float16", "bfloat16", "float32", "float64"),
    *("fp8e4m3", "fp8e5m2", "fp8e4m3fnuz", "fp8e5m2fnuz"),
]


def some_tensors() -> dict[str, Tensor]:
    data = np.random.default_rng(0).integers(0, 5, (3, 4)).astype(np.float32)
    made = {name: Tensor(data).cast(name) for name in DTYPES}
    lazy = Tensor([1.0, 2.0]) + 1
    views = {"view": Tensor(data)[1:, ::2], "turned": Tensor(data).T}
    return {**made, **views, "lazy": lazy, "scalar": Tensor(2.5), "none": Tensor.zeros(0, 3)}


def assert_same(got: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    assert list(got) == list(wanted)
    for name, tensor in wanted.items():
        assert (got[name].dtype, got[name].shape) == (tensor.dtype, tensor.shape)
        np.testing.assert_array_equal(got[name].to("CPU").numpy(), tensor.numpy())


def test_round_trip(tmp_path: Path):
    tensors = some_tensors()
    safe_save(tensors, tmp_path / "x.safetensors", {"made": "here"})
    assert_same(safe_load(str(tmp_path / "x.safetensors")), tensors)
    bytes_, start, header = safe_load_metadata(Tensor(tmp_path / "x.safetensors"))
    assert header["__metadata__"] == {"made": "here"}
    assert start % 8 == 0
    assert bytes_.shape == ((tmp_path / "x.safetensors").stat().st_size,)


def test_loading_reads_no_tensor(tmp_path: Path):
    safe_save({"big": Tensor.ones(1000), "small": Tensor.ones(3)}, tmp_path / "x")
    before = GlobalCounters.mem_used
    loaded = safe_load(tmp_path / "x")
    assert GlobalCounters.mem_used == before
    small = loaded["small"].to("CPU").realize()
    assert GlobalCounters.mem_used == before + 12
    assert small.tolist() == [1, 1, 1]


def test_a_file_can_be_replaced_by_what_was_loaded_from_it(tmp_path: Path):
    safe_save({"a": Tensor([1, 2]), "b": Tensor([3])}, tmp_path / "x")
    loaded = safe_load(tmp_path / "x")
    safe_save({"b": loaded["b"], "a2": loaded["a"].to("CPU") * 2}, tmp_path / "x")
    again = safe_load(tmp_path / "x")
    assert (again["b"].tolist(), again["a2"].tolist()) == ([3], [2, 4])
    assert loaded["a"].tolist() == [1, 2]
    assert list(tmp_path.iterdir()) == [tmp_path / "x"]


def test_bytes_in_memory_are_a_file_too(tmp_path: Path):
    tensors = {"a": Tensor([1.5, 2.5]), "b": Tensor([True, False])}
    safe_save(tensors, tmp_path / "x")
    assert_same(safe_load(Tensor((tmp_path / "x").read_bytes())), tensors)


def test_shards(tmp_path: Path):
    safe_save({"a": Tensor([1])}, tmp_path / "1.safetensors")
    safe_save({"b": Tensor([2])}, tmp_path / "2.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    table = {"a": "1.safetensors", "b": "2.safetensors"}
    index.write_text(json.dumps({"metadata": {}, "weight_map": table}))
    assert {name: t.tolist() for name, t in safe_load(index).items()} == {"a": [1], "b": [2]}


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"a": "../1.safetensors"}, "expected the name of a file"),
        ({"a": "/etc/passwd"}, "expected the name of a file"),
        ({"a": 3}, "expected the name of a file"),
        ({"b": "1.safetensors"}, "'b' is not in 1.safetensors"),
        ([], "no weight_map"),
    ],
)
def test_a_wrong_index(table, text, tmp_path: Path):
    safe_save({"a": Tensor([1])}, tmp_path / "1.safetensors")
    index = tmp_path / "x.index.json"
    index.write_text(json.dumps({"weight_map": table}))
    with pytest.raises(FileFormatError, match=text):
        safe_load(index)


def file_with(header: object, data: bytes = b"", size: int | None = None) -> Tensor:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return Tensor((len(text) if size is None else size).to_bytes(8, "little") + text + data)


def entry(dtype="F32", shape=(1,), first=0, last=4):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [first, last]}


WRONG = {
    "empty": (Tensor(b"", dtype="uint8"), "length of the header lies outside"),
    "short": (Tensor(b"123"), "length of the header lies outside"),
    "long header": (file_with({}, size=1000), "the header lies outside"),
    "absurd header": (file_with({}, size=2**63), "would have"),
    "no JSON": (file_with(b"{nope}"), "not valid JSON"),
    "deep JSON": (file_with(b"[" * 100_000), "nested too deeply"),
    "a name twice": (file_with(b'{"a": 1, "a": 2}'), "twice"),
    "no table": (file_with([1]), "that is a table"),
    "metadata": (file_with({"__metadata__": 1}), "expected metadata that is a table"),
    "no entry": (file_with({"a": 1}), "incomplete"),
    "no dtype": (file_with({"a": entry("F99")}, b"1234"), "unknown dtype"),
    "no size": (file_with({"a": entry(shape=(-1,))}, b"1234"), "size of -1"),
    "a bool": (file_with({"a": entry(shape=(True,))}, b"1234"), "size of True"),
    "absurd size": (file_with({"a": entry(shape=(2**60, 0))}, b"1234"), "size of"),
    "axes": (file_with({"a": entry(shape=(1,) * 100)}, b"1234"), "100 axes"),
    "other size": (file_with({"a": entry(shape=(2,))}, b"1234"), "has 4 bytes and needs 8"),
    "past the end": (file_with({"a": entry(first=4, last=8)}, b"1234"), "leave a gap"),
    "cut": (file_with({"a": entry()}, b"123"), "need"),
    "more": (file_with({"a": entry()}, b"12345"), "need"),
    "overlap": (file_with({"a": entry(), "b": entry()}, b"1234"), "overlap"),
    "endless": (file_with({"a": entry(last=10**4299)}, b"1234"), "entry of 'a' is wrong"),
    "endless, twice": (
        file_with({"a": entry(last=9 * 10**4298), "b": entry(first=9 * 10**4298)}, b"1234"),
        "is wrong",
    ),
    "backwards": (file_with({"a": entry(first=4, last=0)}, b"1234"), "entry of 'a' is wrong"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files(name: str):
    tensor, text = WRONG[name]
    with pytest.raises(FileFormatError, match=text):
        safe_load(tensor)


def test_wrong_arguments(tmp_path: Path):
    with pytest.raises(ArgumentTypeError, match="'a' is a int"):
        safe_save({"a": 1}, tmp_path / "x")
    with pytest.raises(ArgumentTypeError, match="a list was given"):
        safe_save([], tmp_path / "x")
    with pytest.raises(ArgumentTypeError, match="__metadata__"):
        safe_save({"__metadata__": Tensor([1])}, tmp_path / "x")
    with pytest.raises(ArgumentTypeError, match="cannot be read from int"):
        safe_load(3)
    assert not list(tmp_path.iterdir())


def test_the_reference_implementation_reads_and_writes_the_same(tmp_path: Path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    native = {name: t for name, t in some_tensors().items() if t.dtype.name not in DTYPES[-5:]}
    native = {name: t for name, t in native.items() if t.dtype is not dtypes.bfloat16}
    safe_save(native, tmp_path / "x", {"k": "v"})
    loaded = numpy_files.load_file(tmp_path / "x")
    for name, tensor in native.items():
        np.testing.assert_array_equal(loaded[name], tensor.numpy())
    numpy_files.save_file(loaded, tmp_path / "y")
    again = safe_load(tmp_path / "y")
    assert_same({name: again[name] for name in native}, native)

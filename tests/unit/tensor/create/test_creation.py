"""New tensors: data of the host, constants, counting; and values back to the host."""

import array

import numpy as np
import pytest

from tests.unit.tensor.compare import assert_same
from weft.ir.dtypes import SCALARS, dtypes
from weft.support.settings import Context
from weft.tensor import Tensor

DTYPES = [dtype for dtype in SCALARS.values() if dtype.name not in ("void", "index")]


@pytest.mark.parametrize(
    "data,dtype",
    [
        *((3, "int32"), (3.0, "float32"), (True, "bool"), ([1, 2], "int32"), ([], "float32")),
        *(
            ([1, 2.5], "float32"),
            ([True, False], "bool"),
            ([[1], [2]], "int32"),
            ((1, 2), "int32"),
        ),
        *(
            (np.float64(2), "float64"),
            (np.int8(2), "int8"),
            (b"ab", "uint8"),
            ([True, 2], "int32"),
        ),
        *((np.arange(3), "int64"), (np.zeros((2, 0), np.float16), "float16")),
        *(
            (array.array("f", [1.0]), "float32"),
            (memoryview(b"abc"), "uint8"),
            ([np.nan], "float32"),
        ),
    ],
)
def test_data_and_its_dtype(data: object, dtype: str):
    x = Tensor(data)
    assert x.dtype.name == dtype
    expected = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else np.asarray(data)
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_dtype_comes_back(dtype: object):
    x = Tensor([0, 1, 2, 3], dtype=dtype)
    assert x.dtype is dtype
    assert x.tolist() == ([False, True, True, True] if dtype is dtypes.bool else [0, 1, 2, 3])
    assert (x.cast("float32") + 0).cast(dtype).tolist() == x.tolist()


def test_default_dtypes():
    with Context(DEFAULT_FLOAT="float64", DEFAULT_INT="int64"):
        assert Tensor(1.0).dtype is dtypes.float64
        assert Tensor([1]).dtype is dtypes.int64
        assert Tensor.zeros(2).dtype is dtypes.float64


def test_bytes_and_other_arrays():
    assert Tensor(b"\x01\x00\x02\x00", dtype="int16").tolist() == [1, 2]
    assert Tensor(np.arange(4, dtype=">i4")[::2]).tolist() == [0, 2]
    assert Tensor(np.arange(6).reshape(2, 3).T).tolist() == [[0, 3], [1, 4], [2, 5]]
    source = np.zeros(2)
    x = Tensor(source)
    source[0] = 5
    assert x.tolist() == [0.0, 0.0]


def test_small_floats_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = Tensor(np.array([1.5, -2.0]).astype(ml_dtypes.bfloat16))
    assert x.dtype is dtypes.bfloat16
    assert x.tolist() == [1.5, -2.0]
    assert x.numpy().dtype == np.float32


@pytest.mark.peers("torch")
def test_tensors_of_torch():
    import torch

    assert Tensor(torch.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_of_a_tensor_or_a_node():
    x = Tensor([1, 2])
    assert Tensor(x, dtype="float32").tolist() == [1.0, 2.0]
    assert Tensor((x + 1).uop).tolist() == [2, 3]
    same = Tensor(x.uop)
    same += 1
    assert x.tolist() == [2, 3]


def test_constants():
    assert_same(Tensor.zeros(2, 3), np.zeros((2, 3), "f"))
    assert_same(Tensor.ones((2,), dtype="int8"), np.ones(2, "int8"))
    assert_same(Tensor.full((2, 1), 5), np.full((2, 1), 5, np.int32))
    assert_same(Tensor.full((), 2.5), np.float32(2.5))
    assert_same(Tensor.eye(2, 3), np.eye(2, 3, dtype="f"))
    assert Tensor.empty(2, 3, dtype="int16").numpy().shape == (2, 3)
    x = Tensor([[1, 2]])
    assert x.zeros_like().tolist() == [[0, 0]]
    assert x.ones_like(dtype="float32").tolist() == [[1.0, 1.0]]
    assert x.full_like(7).tolist() == [[7, 7]]
    assert x.empty_like().shape == (1, 2)


@pytest.mark.peers("torch")
@pytest.mark.parametrize(
    "arguments", [(5,), (2, 7), (2, 8, 3), (5, 0, -2), (0,), (3, 3), (0, 1, 0.25), (1.5, 4.0)]
)
def test_arange(arguments: tuple[float, ...]):
    import torch

    x = Tensor.arange(*arguments)
    expected = torch.arange(*arguments).numpy()
    assert x.dtype is (dtypes.int32 if expected.dtype == np.int64 else dtypes.float32)
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)


@pytest.mark.peers("torch")
@pytest.mark.parametrize("steps", (0, 1, 2, 7))
def test_linspace(steps: int):
    import torch

    expected = torch.linspace(-1, 3, steps).numpy()
    np.testing.assert_allclose(Tensor.linspace(-1, 3, steps).numpy(), expected, rtol=1e-6)


def test_values_to_the_host():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.sum().item() == 10.0
    assert isinstance(Tensor(3).item(), int)
    assert x.data().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert float(Tensor([2.5])) == 2.5
    assert int(Tensor(2.5)) == 2
    assert [10, 20][Tensor(1)] == 20
    assert bool(Tensor([0.0])) is False
    assert len(x) == 2
    np.testing.assert_array_equal(np.asarray(x), x.numpy())
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    values = np.array(x)
    values[:] = 0
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_facts():
    x = Tensor.zeros(2, 3, dtype="float16")
    assert (x.numel(), x.nbytes(), x.element_size(), x.ndim) == (6, 12, 2, 2)
    assert x.size() == (2, 3)
    assert x.size(-1) == 3
    assert x.is_floating_point()
    assert repr(x).endswith("lazy>")
    assert "realized" in repr(x.realize())


def test_casts():
    x = Tensor([-1.5, 300.0, float("nan")])
    assert x.int().tolist() == [-1, 300, 0]
    assert x.bool().tolist() == [True, True, True]
    assert x.cast("uint8").tolist() == [255, 44, 0]
    assert Tensor([1.0]).bitcast(dtypes.uint32).tolist() == [0x3F800000]
    casts = ("half", "float", "double", "bfloat16", "short", "int", "long", "bool")
    names = [getattr(x, cast)().dtype.name for cast in casts]
    assert names == [
        "float16",
        "float32",
        "float64",
        "bfloat16",
        "int16",
        "int32",
        "int64",
        "bool",
    ]

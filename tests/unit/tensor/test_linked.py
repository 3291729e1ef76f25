"""Writes through `bitcast` are seen by what it shows, and the other way, as by views in NumPy."""

import gc
import weakref

import numpy as np
import pytest

from weft.tensor import Tensor
from weft.tensor.jit.jit import jit


@pytest.mark.parametrize("is_realized", [False, True])
@pytest.mark.parametrize(
    ("dtype", "other"),
    [
        ("float32", "int32"),
        ("float32", "uint8"),
        ("uint8", "float32"),
        ("int16", "float16"),
        ("int64", "uint16"),
        ("float64", "int64"),
    ],
)
def test_writes_as_in_numpy(dtype: str, other: str, is_realized: bool, seed: int):
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 90, (4, 16)).astype(dtype)
    part, whole = array[1:3].view(other), array.view(other)
    x = Tensor(array.copy())
    if is_realized:
        x = (x + 0).realize()
    ours = [x, x[1:3].bitcast(other), x.bitcast(other)]
    theirs = [array, part, whole]
    for step in range(8):
        which = int(rng.integers(3))
        row = int(rng.integers(len(theirs[which])))
        start = int(rng.integers(theirs[which].shape[1]))
        value = rng.integers(0, 90, theirs[which].shape[1] - start).astype(theirs[which].dtype)
        theirs[which][row, start:] = value
        if step % 3 == 0:
            ours[which][row, start:] = Tensor(value)
        elif step % 3 == 1:
            ours[which][row][start:].assign(Tensor(value))
        else:
            ours[which][row, np.arange(start, theirs[which].shape[1])] = Tensor(value)
        if step % 4 == 3:
            for mine, wanted in zip(ours, theirs, strict=True):
                assert mine.numpy().tobytes() == wanted.tobytes()
    for mine, wanted in zip(ours, theirs, strict=True):
        assert mine.numpy().tobytes() == wanted.tobytes()


def test_a_chain_of_bitcasts():
    x = Tensor([1.0, 2.0])
    first = x.bitcast("int32")
    second = first.bitcast("uint8")
    second[:4] = 0
    assert x.tolist() == [0.0, 2.0]
    assert first.tolist() == [0, 1073741824]
    x.assign(Tensor([2.0, 1.0]))
    assert second.bitcast("float32").tolist() == [2.0, 1.0]


def test_values_from_before_stay():
    x = Tensor([1.0, 2.0])
    before = x * 1
    x.bitcast("int32").assign(Tensor([0, 0]))
    assert before.tolist() == [1.0, 2.0]
    assert x.tolist() == [0.0, 0.0]


def test_inside_of_a_jitted_function():
    x = Tensor([1.0, 2.0]).realize()

    @jit
    def clear(n: Tensor) -> Tensor:
        x.bitcast("int32")[0] = n
        return x + 0

    for number in (0, 1065353216, 0):
        wanted = np.array([number], np.int32).view(np.float32).tolist()
        assert clear(Tensor([number], dtype="int32").sum()).tolist() == [*wanted, 2.0]
        assert x.tolist() == [*wanted, 2.0]


def test_neither_keeps_the_other():
    x = Tensor(np.ones(4, np.float32))
    shown = x.bitcast("int32").realize()
    gone = weakref.ref(x._storage)
    del x
    gc.collect()
    assert gone() is None
    shown[0] = 7
    assert shown.tolist()[0] == 7

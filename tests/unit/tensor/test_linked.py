"""Writes through `bitcast` and parts of complex numbers are seen by what they show, and the other
way, as by views in NumPy."""

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


# How a view of complex numbers is made, here and in NumPy.
PARTS = {
    "real": (lambda z: z.real, lambda z: z.real),
    "imag": (lambda z: z.imag, lambda z: z.imag),
    "rows": (lambda z: z[1:3], lambda z: z[1:3]),
    "columns": (lambda z: z.T[::2], lambda z: z.T[::2]),
    "pairs": (lambda z: z.view_as_real(), lambda z: z.view(np.float32).reshape(*z.shape, 2)),
    "bits": (lambda z: z.bitcast("int64"), lambda z: z.view(np.int64)),
    "of rows": (lambda z: z[:2].T.imag, lambda z: z[:2].T.imag),
    "of columns": (lambda z: z[:, 1::2].real[1:], lambda z: z[:, 1::2].real[1:]),
}


@pytest.mark.parametrize("is_realized", [False, True])
def test_parts_of_complex_numbers_as_in_numpy(is_realized: bool, seed: int):
    rng = np.random.default_rng(seed)
    array = (rng.integers(-9, 9, (4, 5)) + 1j * rng.integers(-9, 9, (4, 5))).astype(np.complex64)
    z = Tensor(array.copy())
    if is_realized:
        z = (z + 0).realize()
    views = [(z, array), *((ours(z), theirs(array)) for ours, theirs in PARTS.values())]
    for step in range(12):
        mine, wanted = views[int(rng.integers(len(views)))]
        row = int(rng.integers(len(wanted)))
        value = rng.integers(-9, 9, wanted.shape[1:]).astype(wanted.dtype)
        wanted[row] = value
        mine[row] = Tensor(value)
        if step % 4 == 3:
            for mine, wanted in views:
                np.testing.assert_array_equal(mine.numpy(), wanted)


def test_a_conjugate_is_a_view():
    z = Tensor([1 + 2j, 3 - 1j])
    mirrored = z.conj()
    z[0] = 5j
    mirrored[1] = 2 + 3j
    assert z.tolist() == [5j, 2 - 3j]
    assert mirrored.tolist() == [-5j, 2 + 3j]


def test_pairs_are_complex_numbers():
    pairs = Tensor([[1.0, 2.0], [3.0, 4.0]])
    z = pairs.view_as_complex()
    z[0] = 7j
    pairs[1, 0] = -1
    assert pairs.tolist() == [[0, 7], [-1, 4]]
    assert z.tolist() == [7j, -1 + 4j]


def test_a_view_of_a_view_that_nobody_holds():
    z = Tensor([1 + 2j, 3 - 1j, 4 + 0j])
    z[1:].conj().imag[0] = 9
    assert z.tolist() == [1 + 2j, 3 - 9j, 4]
    x = Tensor([1.0, 2.0])
    bits = x.bitcast("int32")[1:].bitcast("uint8")
    x[1] = 1.0
    assert bits.tolist() == [0, 0, 128, 63]
    bits[3] = 191
    assert x.tolist() == [1.0, -1.0]


def test_a_jitted_function_writes_what_others_show():
    x = Tensor([1.0, 2.0]).realize()
    lazy, realized = x.bitcast("int32"), x.bitcast("int32").realize()
    z = Tensor([1 + 2j, 3j]).realize()
    real = z.real

    @jit
    def write(n: Tensor) -> Tensor:
        x.assign(n)
        z.imag[0] = n[1]
        real[1] = n[0]
        return lazy + realized

    for number in range(3):
        values = np.array([number, 0.5 * number], np.float32)
        bits = values.view(np.int32)
        assert write(Tensor(values)).tolist() == (2 * bits).tolist()
        assert lazy.tolist() == realized.tolist() == bits.tolist()
        assert z.tolist() == [1 + 0.5j * number, number + 3j]
        assert real.tolist() == [1, number]


def test_arguments_of_a_jitted_function_that_others_show():
    @jit
    def add(x: Tensor) -> Tensor:
        x += 1
        return x * 2

    @jit
    def swap(x: Tensor, bits: Tensor) -> Tensor:
        bits[0] = 0
        return x + 0

    for _ in range(2):
        x = Tensor([1.0, 2.0]).realize()
        add(x)
        bits = x.bitcast("int32")
        for number in range(3):
            add(x)
            assert x.tolist() == [3 + number, 4 + number]
            assert bits.bitcast("float32").tolist() == x.tolist()
        assert swap(x, bits).tolist() == [0, 6]
        x += 3
        assert swap(x, bits).tolist() == [0, 9]
        assert swap(Tensor([1.0, 2.0]), Tensor([3, 4])).tolist() == [1, 2]
    assert add.traces <= 3 and swap.traces <= 4


def test_what_is_only_read_is_traced_once():
    total = Tensor([0.0]).realize()

    @jit
    def add(x: Tensor) -> Tensor:
        total.assign(total + x.sum())
        return total

    for number in range(4):
        raw = Tensor(np.full(2, number, np.float32).view(np.uint8))
        add(raw.bitcast("float32"))
    assert total.tolist() == [12.0]
    assert add.traces == 1

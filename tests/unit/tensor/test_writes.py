"""Writes: versions, views, memory of one's own. Random programs are in test_writes_fuzz.py."""

import numpy as np
import pytest

from weft.engine.counters import GlobalCounters
from weft.ir.ops import Op
from weft.ir.spec.spec import verify
from weft.ir.spec.tensor import TENSOR_SPEC
from weft.support.errors import DTypeError, NotSupported, ShapeError
from weft.tensor import Tensor


def test_earlier_expressions_keep_what_they_saw():
    x = Tensor([1, 2, 3])
    before = x + 0
    x += 10
    after = x + 0
    x[0] = 99
    assert before.tolist() == [1, 2, 3]
    assert after.tolist() == [11, 12, 13]
    assert x.tolist() == [99, 12, 13]


def test_views_see_later_writes_and_write_through():
    x = Tensor(np.arange(6).reshape(2, 3))
    row, flat, transposed = x[1], x.reshape(6), x.T
    transposed[2, 1] = 100
    assert x.tolist() == [[0, 1, 2], [3, 4, 100]]
    assert row.tolist() == [3, 4, 100]
    flat += 1
    assert x.tolist() == [[1, 2, 3], [4, 5, 101]]
    x.detach()[0] = 0
    assert flat.tolist() == [0, 0, 0, 4, 5, 101]


@pytest.mark.parametrize("is_realized", [False, True])
def test_diagonals_are_views(is_realized: bool):
    array = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    x = Tensor(array.copy())
    if is_realized:
        x.realize()
    for offset, dim1, dim2 in [(0, 0, 1), (1, 1, 2), (-2, 1, 2), (2, 2, 0), (3, 0, 1)]:
        shown = x.diagonal(offset, dim1, dim2)
        x += 1
        array += 1
        np.testing.assert_array_equal(shown.numpy(), array.diagonal(offset, dim1, dim2))
        shown *= 2
        axes = np.moveaxis(array, (dim1, dim2), (0, 1))
        count = shown.shape[-1]
        rows, columns = np.arange(count) + max(-offset, 0), np.arange(count) + max(offset, 0)
        axes[rows, columns] *= 2
        np.testing.assert_array_equal(x.numpy(), array)


def test_windows_are_views_that_cannot_be_written_where_they_overlap():
    x = Tensor(np.arange(7.0)).realize()
    windows, apart = x.unfold(0, 3, 2), x.unfold(0, 2, 2)
    x[2] = 20
    assert windows.tolist() == [[0, 1, 20], [20, 3, 4], [4, 5, 6]]
    apart[1] = -1
    assert x.tolist() == [0, 1, -1, -1, 4, 5, 6]
    with pytest.raises(ShapeError, match="a write through an expanded view"):
        windows[0] = 1


def test_a_value_may_read_what_it_overwrites():
    x = Tensor([1, 2, 3, 4])
    x[1:] = x[:-1]
    assert x.tolist() == [1, 1, 2, 3]
    y = Tensor(np.arange(4).reshape(2, 2))
    y += y.T
    assert y.tolist() == [[0, 3], [3, 6]]


def test_writes_to_a_lazy_value_stay_one_expression():
    x = Tensor.zeros(4)
    x[1:3] = 5
    x[::2] += 1
    assert not x.uop.ops & (1 << Op.STORE)
    assert x.tolist() == [1.0, 5.0, 6.0, 0.0]


def test_writes_to_memory_store_in_place():
    x = Tensor([1.0, 2.0, 3.0])
    x[1:] = 0
    assert x.uop.op == Op.AFTER
    verify(x.uop, TENSOR_SPEC)
    x.assign(x + 1)
    assert x.uop.op == Op.AFTER
    assert x.tolist() == [2.0, 1.0, 1.0]


def test_equal_values_get_memory_of_their_own():
    a, b = Tensor.zeros(3), Tensor.zeros(3)
    a.realize(b)
    assert a.uop is not b.uop
    a += 1
    assert b.tolist() == [0.0, 0.0, 0.0]
    x = Tensor([1, 2])
    c, d = x + 1, x + 1
    c.realize()
    c += 5
    assert d.tolist() == [2, 3]
    assert c.tolist() == [7, 8]


def test_assign_copies():
    x, y = Tensor.zeros(2, dtype="int32"), Tensor([1, 2])
    x.assign(y)
    y += 1
    assert x.tolist() == [1, 2]
    x += 10
    assert y.tolist() == [2, 3]


def test_assign_casts_and_broadcasts():
    x = Tensor([[1, 2], [3, 4]])
    x.assign(Tensor([1.9, -1.9]))
    assert x.tolist() == [[1, -1], [1, -1]]
    x.assign(0)
    assert x.tolist() == [[0, 0], [0, 0]]


def test_views_of_memory_cost_nothing():
    x = Tensor(np.arange(12).reshape(3, 4)).realize()
    GlobalCounters.reset()
    view = x[1:, ::2].T.realize()
    assert view.tolist() == [[4, 8], [6, 10]]
    assert GlobalCounters.kernel_count == 0


def test_a_view_alone_is_computed_alone():
    view = (Tensor(np.arange(6)) + 1)[2:4].realize()
    assert view.uop.op == Op.BUFFER
    assert view.uop.shape == (2,)
    whole = Tensor(np.arange(6)) + 1
    part = whole[2:4]
    part.realize()
    assert part._storage is whole._storage


def test_writes_that_wait_are_flushed():
    state = Tensor([0])
    other = Tensor([1]) + 1
    state += 1
    other.realize()
    assert state.uop.op == Op.BUFFER
    assert state.tolist() == [1]


def test_what_cannot_be_written():
    x = Tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match="write through an expanded view"):
        x.expand(3, 2).assign(0)
    with pytest.raises(ShapeError, match="does not fit shape"):
        x[0:1] = Tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match="cannot be written in place"):
        x += Tensor([[1.0], [2.0]])
    weight = Tensor([1.0], requires_grad=True)
    with pytest.raises(NotSupported, match="requires a gradient"):
        weight += 1
    with pytest.raises(NotSupported):
        weight[0] = 1
    assert weight.assign(weight - 0.5).tolist() == [0.5]
    with pytest.raises(DTypeError):
        Tensor([True]).__iadd__(1)


def test_replace_takes_the_storage_and_leaves_views_alone():
    x, y = Tensor([1, 2, 3]), Tensor([4, 5, 6])
    view = x[1:]
    assert x.replace(y) is x
    y += 1
    assert x.tolist() == [5, 6, 7]
    assert view.tolist() == [2, 3]


def test_a_replaced_initial_value_is_never_computed():
    x = Tensor.rand(100, requires_grad=True)
    x.replace(Tensor.zeros(100))
    GlobalCounters.reset()
    x.realize()
    assert GlobalCounters.global_mem <= 100 * 4 + 64
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0] * 100


def test_replace_keeps_the_shape():
    with pytest.raises(ShapeError, match=r"replace: shape \(3,\) for a tensor of shape \(2,\)"):
        Tensor([1, 2]).replace(Tensor([1, 2, 3]))


def test_indices_may_be_computed_from_what_is_written():
    """The indices are users of the value, which the scheduler comes to later."""
    numbers = Tensor([3, 1, 2, 0]).realize() + 1
    counted = Tensor.zeros(6).int().contiguous().realize()
    counted[numbers] = numbers
    assert counted.tolist() == [0, 1, 2, 3, 4, 0]
    greatest = Tensor([[2.0, 1.0], [0.0, 3.0]]).max(1)
    spread = Tensor.zeros(5).contiguous().realize()
    spread[greatest.int()] = greatest
    assert spread.tolist() == [0.0, 0.0, 2.0, 3.0, 0.0]

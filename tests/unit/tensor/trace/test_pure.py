"""Writes inside of functions and transforms: to values of their own, and to tensors of others."""

import numpy as np
import pytest

import weft
from weft import Tensor, checkpoint, function, grad, jit, jvp, vmap

X = (1.0, 2.0, 3.0)
DIRECTION = (1.0, 10.0, 100.0)


def by_tensor(x):
    y = x * 1
    y[Tensor([1])] = x[0:1] * 2
    return y


def by_list(x):
    y = x * 1
    y[[1, 2]] = x[0:2] * 2
    return y


def by_slice(x):
    y = x * 1
    y[1:2] = x[0:1] * 2
    return y


def in_a_matrix(x):
    y = x.reshape(3, 1).expand(3, 2) * 1
    y[1:, Tensor([0])] = x[0] * 2
    return y.sum(1)


def twice(x):
    y = by_tensor(x)
    y[Tensor([0])] = y[1:2] * x[2]
    return y


WRITES = {
    "tensor": by_tensor,
    "list": by_list,
    "slice": by_slice,
    "matrix": in_a_matrix,
    "twice": twice,
    "index_put": lambda x: (x * 1).index_put((Tensor([1]),), x[0:1] * 2),
    "index_copy": lambda x: (x * 1).index_copy(0, Tensor([1]), x[0:1] * 2),
    "index_fill": lambda x: (x * 1).index_fill(0, Tensor([1]), 5.0),
    "put": lambda x: (x * 1).put(Tensor([1]), x[0:1] * 2),
    "scatter then fill": lambda x: (
        (x * 1).scatter(0, Tensor([1]), x[0:1] * 2).index_fill(0, Tensor([0]), 5.0)
    ),
    "logcumsumexp": lambda x: x.logcumsumexp(0),
}


def slope(write, x):
    return grad(lambda y: (write(y) * Tensor(DIRECTION)).sum())(x).numpy()


@pytest.mark.parametrize("name", WRITES)
def test_every_transform_sees_writes(name):
    write, x = WRITES[name], Tensor(X)
    wanted = write(x).numpy()
    np.testing.assert_array_equal(function(write)(x).numpy(), wanted)
    np.testing.assert_array_equal(jit(write)(x).numpy(), wanted)
    batch = vmap(write)(Tensor.stack(x, x * 2)).numpy()
    np.testing.assert_allclose(batch, [wanted, write(x * 2).numpy()], rtol=1e-6)
    steps = [Tensor(np.eye(3, dtype=np.float32)[n]) for n in range(3)]
    columns = [jvp(write, (x,), (step,))[1].numpy() for step in steps]
    wanted_slope = np.stack(columns) @ np.array(DIRECTION, np.float32)
    assert np.any(wanted_slope != 0)
    for each in (write, function(write), checkpoint(write), vmap_of_one(write)):
        np.testing.assert_allclose(slope(each, x), wanted_slope, rtol=1e-5)


def test_the_last_value_for_a_address_stays():
    def repeated(x):
        y = x * 1
        y[Tensor([1, 1])] = x[0:2] * 10
        return y

    x = Tensor(X)
    for each in (repeated, function(repeated), jit(repeated), vmap_of_one(repeated)):
        assert each(x).tolist() == [1.0, 20.0, 3.0]
    assert jvp(repeated, (x,), (Tensor([1.0, 0.0, 0.0]),))[1].tolist() == [1.0, 0.0, 0.0]


def vmap_of_one(write):
    return lambda x: vmap(write)(x.unsqueeze(0)).squeeze(0)


def calls(kind, inner, x):
    """What comes out of a function under a transform."""
    return {
        "eager": lambda: inner(x),
        "function": lambda: function(inner)(x),
        "checkpoint": lambda: checkpoint(inner)(x),
        "grad": lambda: grad(lambda y: inner(y).sum())(x),
        "jvp": lambda: jvp(inner, (x,), (x,))[0],
        "vmap": lambda: vmap(inner)(Tensor.stack(x, x)),
    }[kind]()


def writing(state, how):
    def inner(x):
        if how == "slice":
            state[0:1] = x[0:1]
        elif how == "index":
            state[Tensor([1])] = x[0:1]
        elif how == "address":
            state[x.argmin().reshape(1)] = 5.0
        else:
            state.assign(state + x)
        if how == "raise":
            raise KeyError("own")
        return x * state

    return inner


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("how", ["assign", "slice", "index", "address", "raise"])
@pytest.mark.parametrize("kind", ["eager", "function", "checkpoint", "grad", "jvp"])
def test_writes_to_tensors_of_others_are_those_of_the_function(kind, how, is_lazy):
    x = Tensor([10.0, 20.0])
    states = [Tensor([1.0, 2.0]) + 0 for _ in range(2)]
    if not is_lazy:
        states[0].realize(states[1])
    for state, way in zip(states, ("eager", kind), strict=True):
        if how == "raise":
            with pytest.raises(KeyError, match="own"):
                calls(way, writing(state, how), x)
        else:
            calls(way, writing(state, how), x).realize()
        assert (Tensor([1.0]) + 1).tolist() == [2.0]
    assert states[0].tolist() == states[1].tolist() != [1.0, 2.0]


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("how", ["assign", "slice", "index", "raise"])
def test_vmap_refuses_them_and_leaves_everything_as_it_was(how, is_lazy):
    state = Tensor([1.0, 2.0]) + 0
    if not is_lazy:
        state.realize()
    with pytest.raises(KeyError if how == "raise" else weft.NotSupported):
        calls("vmap", writing(state, how), Tensor([10.0, 20.0]))
    assert state.tolist() == [1.0, 2.0]
    assert (Tensor([1.0]) + 1).tolist() == [2.0]


@pytest.mark.parametrize("kind", ["function", "checkpoint", "grad", "jvp", "vmap"])
def test_a_value_that_is_read_inside_is_refused(kind):
    x = Tensor([1.0, 2.0])
    with pytest.raises(weft.NotSupported, match="read: the function is being traced"):
        calls(kind, lambda y: y * y.max().item(), x)
    assert (x + 1).tolist() == [2.0, 3.0]

"""Symbolic sizes in jitted functions: one trace, and a value per call."""

import numpy as np
import pytest

import weft
from weft import Tensor, Variable, function, jit
from weft.engine.run import Prepared
from weft.ir.build import bind


def test_a_symbolic_size_stays_symbolic():
    n = Variable("n", 1, 10)
    x = Tensor.arange(10)

    @jit
    def head(x, n):
        return x[:n].sum()

    assert [head(x, bind(n, k)).item() for k in (3, 5, 10)] == [3, 10, 45]
    assert head.traces == 1


def test_a_new_value_schedules_and_launches_nothing_by_itself(monkeypatch):
    n = Variable("n", 0, 10)
    x, total = Tensor.arange(10).realize(), Tensor(0).realize()

    @jit
    def head(x, n):
        total.assign(total + n)
        return x[:n] * 2, x[n:].sum(), n + 1

    head(x, bind(n, 4))
    with monkeypatch.context() as scope:
        scope.setattr(Prepared, "run", None)
        results = [head(x, bind(n, k)) for k in (0, 3, 10, 3)]
    for k, (part, rest, after) in zip((0, 3, 10, 3), results, strict=True):
        assert part.tolist() == [2 * i for i in range(k)]
        assert rest.item() == sum(range(k, 10))
        assert int(after) == k + 1
    assert (total.item(), head.traces) == (4 + 16, 1)


def test_bound_sizes_from_outside_count_by_value():
    size = bind(Variable("n", 1, 10), 3)
    x = Tensor.arange(10).realize()

    @jit
    def head(x):
        return x[:size].sum()

    assert [head(x).item(), head(x).item()] == [3, 3]
    size = bind(Variable("n", 1, 10), 5)
    assert head(x).item() == 10
    assert head.traces == 2


def test_tensors_of_a_symbolic_size_are_one_signature():
    n = Variable("n", 1, 10)
    x = Tensor.arange(10)

    @jit
    def more(y, scale):
        return (y + y.sum()) * scale

    for k in (3, 5, 10):
        part = x[: bind(n, k)].contiguous()
        wanted = ((np.arange(k) + np.arange(k).sum()) * 2).tolist()
        assert more(part, 2).tolist() == wanted
    assert more.traces == 1
    assert [more(x[: bind(n, k)], 2).tolist()[0] for k in (2, 4)] == [2, 12]
    assert more.traces == 2  # a view


def test_a_written_tensor_of_a_symbolic_size():
    n = Variable("n", 1, 10)
    x = Tensor.arange(10)

    @jit
    def double(y):
        y += y

    for k in (3, 5):
        part = x[: bind(n, k)].contiguous().realize()
        double(part)
        assert part.tolist() == [2 * i for i in range(k)]
    assert double.traces == 1


def test_the_value_of_a_symbolic_size_cannot_be_read():
    n = Variable("n", 1, 10)
    x = Tensor.arange(10)

    @jit
    def scaled(x, n):
        return x * len(x[:n])

    with pytest.raises(weft.ArgumentError, match="'n' has no value"):
        scaled(x, bind(n, 3))


def test_a_variable_has_one_value_in_a_call():
    n = Variable("n", 1, 10)
    x = Tensor.arange(10)

    @jit
    def head(x, n):
        return x[:n].sum()

    with pytest.raises(weft.ArgumentError, match="bound to 3 and to 4"):
        head(x[: bind(n, 3)].contiguous(), bind(n, 4))


def test_views_of_a_symbolic_size_are_returned():
    n = Variable("n", 1, 10)
    kept = Tensor.arange(10).realize()

    @jit
    def parts(x, n):
        kept[n - 1] = 100
        return kept[:n], x[: n + 1]

    x = Tensor.zeros(12, dtype="int32").contiguous().realize()
    for k in (2, 5):
        mine, given = parts(x, bind(n, k))
        assert mine.tolist()[-1] == 100
        given += 1  # a view of the argument
        assert given.tolist()[-1] == 1
    assert x.tolist() == [2] * 3 + [1] * 3 + [0] * 6
    assert parts.traces == 1


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_a_size_that_only_a_called_function_uses(device):
    n = Variable("n", 1, 10)
    x = Tensor.arange(10, device=device)
    head = jit(function(lambda n: x[:n].sum() * n))
    assert [head(bind(n, k)).item() for k in (3, 5, 10)] == [9, 50, 450]
    assert head.traces == 1

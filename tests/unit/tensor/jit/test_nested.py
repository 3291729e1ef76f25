"""A jitted function that is called while another is traced becomes a part of that trace."""

import pytest

import weft
from weft import Context, Tensor, Variable, jit


def test_writes_of_the_inner_function_happen_in_order():
    state, log = Tensor([1]).realize(), Tensor.zeros(4, dtype="int32").contiguous().realize()

    @jit
    def inner(x, key):
        state.assign(state * 2 + x)
        log[key] = state[0]
        x += 1
        return state + 0

    @jit
    def outer(x):
        first = inner(x, 0)
        state[0] = 100
        second = inner(x, 1)
        return first, second, x

    given = Tensor([5]).realize()
    for _ in range(2):
        first, second, same = outer(given)
        assert same is given
        before = int(first.item())
    assert (before, int(second.item())) == (2 * 206 + 7, 208)
    assert (given.tolist(), state.tolist(), log.tolist()) == ([9], [208], [419, 208, 0, 0])
    assert (inner.traces, outer.traces) == (0, 1)
    state.assign(Tensor([206]))
    with Context(JIT=0):
        first, second, _ = outer(Tensor([7]).realize())
    assert (first.item(), second.item()) == (419, 208)


def test_random_numbers_go_on_through_all_levels():
    @jit
    def inner(n):
        return Tensor.randint(n, low=0, high=1000)

    @jit
    def middle(x):
        return x + inner(3), inner(2)

    @jit
    def outer(x):
        a, b = middle(x)
        return a, Tensor.randint(2, low=0, high=1000), inner(2) + b

    def draw(count):
        Tensor.manual_seed(7)
        inner(2).realize()
        return [[part.tolist() for part in outer(Tensor([0, 0, 0]))] for _ in range(count)]

    jitted = draw(3)
    with Context(JIT=0):
        assert draw(3) == jitted
    assert len({str(each) for each in jitted}) == 3
    assert (outer.traces, middle.traces, inner.traces) == (1, 0, 1)


def test_several_signatures_of_the_inner_function_in_one_trace():
    traced = []

    @jit
    def inner(x, how, *, scale=1):
        traced.append((x.shape, how, scale))
        return x.sum() * scale if how == "sum" else x * scale

    @jit
    def outer(x):
        rows = inner(x, "same", scale=3)
        return inner(rows, "sum") + inner(x[:1], "sum", scale=2) + inner(x, "sum")

    assert inner(Tensor([4]), "sum").item() == 4  # a trace of its own
    for n in range(3):
        assert outer(Tensor([n, 1])).item() == 3 * (n + 1) + 2 * n + n + 1
    assert len(traced) == 5
    assert inner(Tensor([5]), "sum").item() == 5
    assert (inner.traces, outer.traces) == (1, 1)


def test_one_variable_for_both_levels():
    size = Variable("size", 1, 8)
    total = Tensor(0).realize()

    @jit
    def head(x, n):
        total.assign(total + n)
        return x[:n].sum()

    @jit
    def both(x, n):
        return head(x, n) * 100 + head(x, n + 1) * 10 + head(x[:n], n)

    x = Tensor.arange(9).realize()
    for k in (1, 4, 8, 4):
        below = sum(range(k))
        assert both(x, size.bind(k)).item() == below * 100 + (below + k) * 10 + below
        assert head(x, size.bind(k)).item() == below
    assert total.item() == sum(4 * k + 1 for k in (1, 4, 8, 4))
    assert (both.traces, head.traces) == (1, 1)


def test_an_inner_size_may_be_bound_inside():
    x = Tensor.arange(8).realize()
    size = Variable("size", 1, 8)

    @jit
    def head(x, n):
        return x[:n].sum()

    @jit
    def fixed(x):
        return head(x, size.bind(3)) + 1

    assert [fixed(x).item(), head(x, size.bind(5)).item(), fixed(x).item()] == [4, 10, 4]


def test_donation_counts_for_the_outermost_call_alone():
    @jit(donate=(0,))
    def inner(x):
        return x + 1

    @jit
    def outer(x):
        y = inner(x)
        return y + x  # inside of a trace nothing is gone

    x = Tensor([1, 2]).realize()
    assert outer(x).tolist() == [3, 5]
    assert x.tolist() == [1, 2]
    inner(x)
    with pytest.raises(weft.NotSupported, match="was donated"):
        x.tolist()


def test_a_read_in_the_inner_function_names_its_line_and_the_outer_argument():
    @jit
    def inner(y):
        return y * y.sum().item()

    @jit
    def outer(given):
        return inner(given + 1)

    with pytest.raises(weft.NotSupported) as caught:
        outer(Tensor([1.0]))
    text = str(caught.value)
    assert "outer is being traced" in text
    assert "return y * y.sum().item()" in text and "depends on  given" in text
    assert outer.traces == 0 and Tensor([1.0]).item() == 1.0  # the trace is over


def test_methods_and_gradients_of_the_inner_function():
    class Layer:
        def __init__(self):
            self.weight = Tensor([2.0, 3.0], requires_grad=True)

        @jit
        def __call__(self, x):
            return (x * self.weight).sum()

    layer = Layer()

    @jit
    def step(x):
        layer.weight.grad = None
        loss = layer(x) ** 2
        loss.backward()
        layer.weight.assign(layer.weight.detach() - 0.5 * layer.weight.grad)
        return loss

    losses = [step(Tensor([1.0, 0.0])).item() for _ in range(2)]
    assert losses == [4.0, 0.0]
    assert layer.weight.tolist() == [0.0, 3.0]

"""Writes in jitted functions, aliases, and what is returned."""

import numpy as np
import pytest

import weft
from weft import GlobalCounters, Tensor, jit
from weft.tensor.jit import run as jit_run


def test_writes_to_tensors_from_outside():
    total, history = Tensor([0, 0]), Tensor.zeros(3, 2, dtype="int32")

    @jit
    def add(x, position):
        nonlocal total
        total += x
        history[position] = total
        return total.sum()

    seen = []
    for n in range(3):
        view = total[1:]
        seen.append((add(Tensor([n, 1]), n).item(), view.tolist()))
    assert seen == [(1, [1]), (3, [2]), (6, [3])]
    assert history.tolist() == [[0, 1], [1, 2], [3, 3]]


def test_a_write_leaves_lazy_readers_what_they_saw():
    state = Tensor([1.0, 2.0])

    @jit
    def step():
        state.assign(state * 2)

    step()
    before = state + 100
    step()
    step()
    assert before.tolist() == [102.0, 104.0]
    assert state.tolist() == [8.0, 16.0]


@pytest.mark.parametrize("of", ["captured", "argument"])
def test_memory_changes_its_node_only_where_somebody_holds_it(of, monkeypatch):
    """The calibrated count of references: nobody else, a node, a lazy tensor, nobody again."""
    state = Tensor([1.0, 2.0]).realize()
    moved = []
    real = jit_run.hand_over
    monkeypatch.setattr(jit_run, "hand_over", lambda *a: moved.append(a[0].arg[0]) or real(*a))

    @jit
    def captured(x):
        state.assign(state + x)

    @jit
    def argument(state, x):
        state += x

    def step():
        before = len(moved)
        if of == "captured":
            captured(1.0)
        else:
            argument(state, 1.0)
        return len(moved) - before

    step()
    assert [step(), step()] == [0, 0]
    node = state.uop
    assert step() == 1
    assert state.uop is not node
    del node
    assert step() == 0
    lazy = state * 10
    assert step() == 1
    assert lazy.tolist() == [60.0, 70.0]
    del lazy
    step()
    assert step() == 0
    assert state.tolist() == [9.0, 10.0]


def test_eager_writes_between_calls_are_seen():
    state = Tensor([1, 2])

    @jit
    def step(x):
        state.assign(state + x)
        return state * 1

    assert step(Tensor([1, 1])).tolist() == [2, 3]
    state[0] = 100
    assert step(Tensor([1, 1])).tolist() == [101, 4]


def test_writes_to_arguments_and_views_of_them():
    @jit
    def bump(x):
        x += 1
        return x

    base = Tensor([[1, 2], [3, 4]])
    assert bump(base) is base
    assert base.tolist() == [[2, 3], [4, 5]]
    assert bump(base[0]).tolist() == [3, 4]
    assert bump(base[1]).tolist() == [5, 6]
    assert base.tolist() == [[3, 4], [5, 6]]
    assert bump(base.T).tolist() == [[4, 6], [5, 7]]
    assert base.tolist() == [[4, 5], [6, 7]]


def test_slices_of_one_tensor_run_one_trace():
    data = Tensor(np.arange(24, dtype=np.int32).reshape(6, 4))

    @jit
    def sums(x):
        return x.sum(1)

    wanted = np.arange(24).reshape(6, 4)
    for n in range(3):
        assert sums(data[2 * n : 2 * n + 2]).tolist() == wanted[2 * n : 2 * n + 2].sum(1).tolist()
    assert sums(data.flip([0])[:2]).tolist() == wanted[::-1][:2].sum(1).tolist()
    assert sums(data.T[:2, :4]).tolist() == wanted.T[:2, :4].sum(1).tolist()
    assert sums.traces == 1


def test_the_same_tensor_twice():
    @jit
    def both(a, b):
        a += 1
        return a is b, a + b

    x, y = Tensor([1, 2]), Tensor([10, 20])
    is_same, total = both(x, x)
    assert is_same and total.tolist() == [4, 6]
    is_same, total = both(x, y)
    assert not is_same and total.tolist() == [13, 24]
    assert both(x, x[:])[1].tolist() == [8, 10]


@pytest.mark.parametrize("is_alias_first", [True, False])
def test_an_argument_that_the_function_also_reaches_by_itself(is_alias_first):
    weight = Tensor([1, 2])

    @jit
    def step(x):
        nonlocal weight
        weight += 1
        return x * 1

    def alias():
        assert step(weight).tolist() == weight.tolist()
        assert step(weight[1:]).tolist() == weight[1:].tolist()

    if is_alias_first:
        alias()
    assert step(Tensor([7, 7])).tolist() == [7, 7]
    alias()
    assert step(Tensor([8, 8])).tolist() == [8, 8]


def test_what_is_returned():
    weight = Tensor([1, 2])

    @jit
    def parts(x, y):
        new = x + y
        return x, x[:1], weight, weight[1:], new, new[:1], new, 5, None

    x, y = Tensor([1, 2]), Tensor([3, 4])
    same, view, outside, outside_view, new, new_view, again, number, nothing = parts(x, y)
    assert same is x and outside is weight and again is new and (number, nothing) == (5, None)
    x += 10
    assert view.tolist() == [11]
    weight += 10
    assert outside_view.tolist() == [12]
    new += 100
    assert new_view.tolist() == [104]
    other = parts(x, y)[4]
    other += 1
    assert new.tolist() == [104, 106]


def test_results_of_calls_are_apart():
    @jit
    def make():
        return Tensor([1, 2, 3]), Tensor.zeros(2)

    (first, zeros), (second, _) = make(), make()
    first += 1
    zeros += 1
    assert second.tolist() == [1, 2, 3]
    assert [part.tolist() for part in make()] == [[1, 2, 3], [0.0, 0.0]]


def test_data_made_inside_starts_anew_in_every_call():
    @jit
    def fill(x):
        made = Tensor([1, 2, 3])
        made += x
        made[Tensor([0])] = 7
        return made

    assert fill(Tensor([1, 1, 1])).tolist() == [7, 3, 4]
    assert fill(Tensor([1, 2, 1])).tolist() == [7, 4, 4]


def test_a_function_that_fails_keeps_what_it_wrote():
    state, lazy = Tensor([1, 2]), Tensor([5, 6]) + 1

    @jit
    def fail(x):
        nonlocal state, lazy
        state += x
        lazy += x
        raise KeyError("no")

    with pytest.raises(KeyError):
        fail(Tensor([1, 1]))
    assert (state.tolist(), lazy.tolist()) == ([2, 3], [7, 8])


def test_donated_memory_is_used_again():
    @jit(donate=(0,))
    def step(x, y):
        return x.flip(0) + x + y

    x, y = Tensor(np.arange(1000)).realize(), Tensor(np.ones(1000, np.int64)).realize()
    step(x.clone(), y)
    before = GlobalCounters.mem_used
    result = step(x, y)
    assert GlobalCounters.mem_used == before
    assert result.tolist() == [1000] * 1000
    with pytest.raises(weft.NotSupported, match="donated"):
        x + 1


def test_a_tensor_that_is_replaced_between_calls_is_seen():
    class Model:
        def __init__(self):
            self.weight = Tensor([1, 2])

        @jit
        def forward(self, x):
            return x * self.weight

    model = Model()
    assert model.forward(Tensor([1, 1])).tolist() == [1, 2]
    assert model.forward(Tensor([2, 2])).tolist() == [2, 4]
    model.weight = model.weight + 10
    assert model.forward(Tensor([1, 1])).tolist() == [11, 12]
    assert Model.forward.traces == 1  # the first one has ended with its tensor


def test_state_that_is_replaced_inside_raises_in_the_next_call():
    class Average:
        def __init__(self):
            self.value = Tensor([0.0])

        @jit
        def add(self, x):
            self.value = self.value * 0.5 + x
            return self.value * 1

    average = Average()
    assert average.add(Tensor([1.0])).tolist() == [1.0]
    with pytest.raises(weft.NotSupported, match=r"was made while .*add was traced") as failure:
        average.add(Tensor([1.0]))
    assert "self.value = self.value * 0.5 + x" in str(failure.value)


@pytest.mark.parametrize("donate", [(), (0,)])
def test_an_array_keeps_what_it_shows(donate):
    state = Tensor([1, 2, 3])

    @jit(donate=donate)
    def step(x):
        state.assign(state + x)
        if not donate:
            x += 1
        return x * 2

    shown, given, results = [], [], []
    for n in range(4):
        shown.append(state.numpy())
        x = Tensor([n, n, n])
        given.append(x.numpy())
        results.append(step(x).numpy())
    assert [each.tolist() for each in shown] == [[1, 2, 3], [1, 2, 3], [2, 3, 4], [4, 5, 6]]
    assert [each.tolist() for each in given] == [[n] * 3 for n in range(4)]
    doubled = [[2 * n + 2 * (not donate)] * 3 for n in range(4)]
    assert [each.tolist() for each in results] == doubled
    assert state.tolist() == [7, 8, 9]


def test_memory_of_others_is_written():
    array = np.array([1.0, 2.0], np.float32)
    state = Tensor.from_numpy(array)
    shown = state.numpy()

    @jit
    def step(x):
        state.assign(state + x)

    step(Tensor([1.0, 1.0]))
    step(Tensor([1.0, 1.0]))
    assert array.tolist() == shown.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("kind", ["own", "shape", "gradient"])
def test_what_is_written_before_an_error_stays(wrap, kind):
    total = Tensor([1.0]).realize()
    weight = Tensor([3.0], requires_grad=True).realize()

    def step(x, y):
        total.assign(total * 2 + Tensor.rand(1) * 0)
        y += 1
        if kind == "gradient":
            weight.grad = None
            (weight * x).sum().backward()
            weight.assign(weight.detach() - weight.grad)
        if kind == "shape":
            x @ Tensor.ones(7, 7)
        raise KeyError("own")

    y = Tensor([5.0]).realize()
    stepped = wrap(step)
    for _ in range(3):
        with pytest.raises(weft.ShapeError if kind == "shape" else KeyError):
            stepped(Tensor([0.5]), y)
    assert total.tolist() == [8.0] and y.tolist() == [8.0]
    assert weight.tolist() == [1.5 if kind == "gradient" else 3.0]


def test_a_refused_function_writes_nothing():
    total = Tensor([1.0]).realize()

    @jit
    def step(x):
        total.assign(total * 2)
        return x if x.sum().item() > 0 else -x

    with pytest.raises(weft.NotSupported):
        step(Tensor([1.0]))
    assert total.tolist() == [1.0]

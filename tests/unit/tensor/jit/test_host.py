"""What a jitted function takes from outside of Weft: arrays that change, generators that move."""

import random
import threading
from random import gauss

import numpy as np
import pytest

from weft import NotSupported, Tensor, jit

TABLE = np.zeros(3, np.float32)
RNG = np.random.default_rng(0)
OWN = random.Random(3)


def x() -> Tensor:
    return Tensor([1.0, 2.0, 3.0])


def test_an_array_that_changes_is_traced_anew():
    values = np.array([1.0, 2.0, 3.0], np.float32)
    add = jit(lambda x: x + Tensor(values))
    assert add(x()).tolist() == add(x()).tolist() == [2.0, 4.0, 6.0]
    assert add.traces == 1
    values[1] = 10
    assert add(x()).tolist() == add(x()).tolist() == [2.0, 12.0, 6.0]
    assert add.traces == 2
    values[1] = 2
    assert add(x()).tolist() == [2.0, 4.0, 6.0]
    assert add.traces == 2


@pytest.mark.parametrize(
    "use",
    (
        lambda x, a: x + a,
        lambda x, a: a[None] * x,
        lambda x, a: x + Tensor(a[:, ::-1][0]),
        lambda x, a: x[a[0].astype(int, copy=False)],
        lambda x, a: x.cat(Tensor(a)[0]),
    ),
)
def test_every_way_into_a_tensor_is_seen(use):
    values = np.array([[1, 2, 0]], np.int64)
    function = jit(lambda x: use(x, values))
    before = function(x()).tolist()
    assert before == use(x(), values).tolist()
    values[0, 0] = 2
    assert function(x()).tolist() == use(x(), values).tolist() != before


def test_a_mask_is_read_too():
    mask = np.array([True, False, True])
    chosen = jit(lambda x: x[mask])
    assert chosen(x()).tolist() == [1.0, 3.0]
    mask[1] = True
    assert chosen(x()).tolist() == [1.0, 2.0, 3.0]


def test_an_array_of_the_function_itself_is_not_compared():
    made = jit(lambda x: x + Tensor(np.arange(3)) + Tensor(np.arange(6).reshape(2, 3)[1]))
    assert made(x()).tolist() == made(x()).tolist() == [4.0, 7.0, 10.0]
    assert [program.state.arrays for program in made.programs] == [()]


def test_a_short_array_is_compared_however_it_is_read():
    table = np.zeros(3, np.float32)
    function = jit(lambda x: x + float(table[1]) + Tensor(table[[0, 2]].copy()).sum())
    assert function(x()).tolist() == [1.0, 2.0, 3.0]
    table[:] = 1
    assert function(x()).tolist() == [4.0, 5.0, 6.0]


def test_a_function_that_fills_an_array_warns_with_the_line():
    def fill(x):
        TABLE[:] = 1 + TABLE[0]
        return x + Tensor(TABLE)

    with pytest.warns(UserWarning, match="changes 'TABLE' while it is traced") as caught:
        jit(fill)(x())
    assert caught[0].lineno == fill.__code__.co_firstlineno + 1


def by_python(x):
    return x * random.random()


def by_name(x):
    return x * gauss(0, 1)


def by_own(x):
    return x * OWN.random()


def by_numpy(x):
    return x + Tensor(np.random.rand(3))


def by_generator(x):
    return x + Tensor(RNG.random(3))


def inside(x):
    return (lambda y: y * random.random())(x)


@pytest.mark.parametrize(
    "function", (by_python, by_name, by_own, by_numpy, by_generator, inside, lambda x: inside(x))
)
def test_random_numbers_from_elsewhere_are_refused_with_their_line(function):
    with pytest.raises(NotSupported, match="draws random numbers of") as caught:
        jit(function)(x())
    text = caught.value.where.text
    assert any(word in text for word in ("random", "gauss", "OWN", "RNG"))


def test_generators_that_rest_are_no_matter():
    rng = np.random.default_rng(1)
    function = jit(lambda x, n: x + (random.random() if n > 5 else n) + (rng is None))
    assert function(x(), 1).tolist() == [2.0, 3.0, 4.0]


def test_numbers_that_another_thread_draws_are_no_matter():
    end, started = threading.Event(), threading.Event()

    def draw():
        while not end.is_set():
            random.random()
            started.set()

    thread = threading.Thread(target=draw)
    thread.start()
    started.wait()
    try:
        assert jit(lambda x: x + 1)(x()).tolist() == [2.0, 3.0, 4.0]
    finally:
        end.set()
        thread.join()

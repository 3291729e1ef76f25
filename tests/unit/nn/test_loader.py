"""DataLoader: kinds of datasets, orders, batches made ahead, and how to resume."""

import threading

import numpy as np
import pytest

from weft.nn import DataLoader
from weft.nn.loader import joined
from weft.support.errors import ArgumentError, ArgumentTypeError, ShapeError
from weft.tensor import Tensor


class Squares:
    """A dataset with __len__ and __getitem__."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, number: int) -> dict[str, object]:
        if number >= 10:
            raise IndexError
        return {"x": np.full(2, number, np.float32), "y": number**2, "name": f"n{number}"}


def numbers(loader):
    return [each for batch in loader for each in batch.tolist()]


def test_arrays():
    x, y = np.arange(10, dtype=np.float32).reshape(5, 2), np.arange(5)
    batches = list(DataLoader((x, y), batch_size=2))
    assert [len(batch[1]) for batch in batches] == [2, 2, 1]
    assert all(isinstance(part, Tensor) for batch in batches for part in batch)
    np.testing.assert_array_equal(np.concatenate([b[0].numpy() for b in batches]), x)
    named = next(iter(DataLoader({"a": x, "b": y}, batch_size=3)))
    assert named["b"].tolist() == [0, 1, 2]
    assert named["a"].shape == (3, 2)


def test_tensors_are_indexed():
    x, y = Tensor.arange(6).reshape(3, 2), Tensor([1, 2, 3])
    for workers in (0, 1):
        batches = list(DataLoader((x, y), batch_size=2, workers=workers))
        assert batches[0][0].tolist() == [[0, 1], [2, 3]]
        assert batches[1][1].tolist() == [3]
    assert numbers(DataLoader(y, batch_size=2)) == [1, 2, 3]


def test_samples_are_joined():
    first, *_ = DataLoader(Squares(), batch_size=4)
    assert first["x"].numpy().tolist() == [[n, n] for n in (0.0, 1.0, 2.0, 3.0)]
    assert first["y"].tolist() == [0, 1, 4, 9]
    assert first["y"].dtype.name == "int32"
    assert first["name"] == ["n0", "n1", "n2", "n3"]
    pairs = next(iter(DataLoader([(1.0, True), (2.0, False)], batch_size=2)))
    assert [each.dtype.name for each in pairs] == ["float32", "bool"]
    tensors = next(iter(DataLoader([Tensor([1]), Tensor([2])], batch_size=2)))
    assert tensors.tolist() == [[1], [2]]
    assert joined([[1, 2], [3, 4]])[1].tolist() == [2, 4]


def test_iterables():
    assert numbers(DataLoader((n for n in range(5)), batch_size=2)) == [0, 1, 2, 3, 4]
    batches = list(DataLoader(iter(range(5)), batch_size=2, drop_last=True))
    assert [batch.tolist() for batch in batches] == [[0, 1], [2, 3]]


def test_a_function_may_join():
    loader = DataLoader(["a", "bb"], batch_size=2, collate=lambda s: np.array([len(x) for x in s]))
    assert next(iter(loader)).tolist() == [1, 2]


def test_epochs_have_orders_of_their_own_that_the_seed_decides():
    data = np.arange(100)
    loader = DataLoader(data, batch_size=8, shuffle=True, seed=3)
    first, second = numbers(loader), numbers(loader)
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second != list(range(100))
    again = DataLoader(data, batch_size=8, shuffle=True, seed=3)
    assert [numbers(again), numbers(again)] == [first, second]
    assert numbers(DataLoader(data, batch_size=8, shuffle=True, seed=4)) != first


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_threads_change_nothing(workers):
    loader = DataLoader(Squares(), batch_size=3, shuffle=True, workers=workers, drop_last=True)
    assert len(loader) == 3
    names = [name for batch in loader for name in batch["name"]]
    plain = DataLoader(Squares(), batch_size=3, shuffle=True, drop_last=True)
    assert names == [name for batch in plain for name in batch["name"]]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stop", [0, 1, 3, 4])
def test_resume_in_the_middle_of_an_epoch(workers, stop):
    data = np.arange(10)
    whole = DataLoader(data, batch_size=3, shuffle=True, seed=5)
    expected = [numbers(whole), numbers(whole), numbers(whole)]
    loader = DataLoader(data, batch_size=3, shuffle=True, seed=5, workers=workers)
    seen = numbers(loader)
    state = loader.state_dict()
    for count, batch in enumerate(loader):
        if count == stop:
            break
        seen += batch.tolist()
        state = loader.state_dict()
    resumed = DataLoader(data, batch_size=3, shuffle=True, workers=workers)
    resumed.load_state_dict(state)
    seen += numbers(resumed)
    assert seen == expected[0] + expected[1]
    assert numbers(resumed) == expected[2]


def test_resume_of_an_iterable_skips_what_was_handed_out():
    loader = DataLoader(iter(range(6)), batch_size=2)
    loader.load_state_dict({"seed": 0, "epoch": 0, "batch": 2})
    assert numbers(loader) == [4, 5]


def test_a_pass_left_early_is_over():
    loader = DataLoader(np.arange(4), batch_size=2, shuffle=True)
    for _ in loader:
        break
    assert loader.state_dict() == {"seed": 0, "epoch": 0, "batch": 1}
    other = DataLoader(np.arange(4), batch_size=2, shuffle=True)
    assert [numbers(other), numbers(other)][1] == numbers(loader)


def test_threads_work_ahead_and_end():
    made, is_asked = [], threading.Event()

    class Watched:
        def __len__(self) -> int:
            return 50

        def __getitem__(self, number: int) -> int:
            made.append(number)
            if number == 3:
                is_asked.set()
            return number

    before = threading.active_count()
    passing = iter(DataLoader(Watched(), workers=1, prefetch=4))
    assert next(passing).tolist() == [0]
    assert is_asked.wait(timeout=30)
    passing.close()
    assert threading.active_count() == before
    assert len(made) <= 8


def test_an_error_of_the_dataset_arrives():
    class Broken:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, number: int) -> int:
            raise KeyError(f"sample {number}")

    for workers in (0, 2):
        with pytest.raises(KeyError, match="sample 0"):
            next(iter(DataLoader(Broken(), workers=workers)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: DataLoader([1], batch_size=0), ArgumentError, "batch_size is 0"),
        (lambda: DataLoader([1], workers=-1), ArgumentError, "workers is -1"),
        (lambda: DataLoader(iter([1]), shuffle=True), ArgumentError, "cannot be shuffled"),
        (lambda: len(DataLoader(iter([1]))), ArgumentTypeError, "an iterable has no length"),
        (lambda: DataLoader(3), ArgumentTypeError, "a int is no dataset"),
        (lambda: DataLoader((np.ones(2), np.ones(3))), ShapeError, "arrays with 2, 3 rows"),
        (lambda: DataLoader([1]).load_state_dict({"seed": 0}), ArgumentError, "batch, epoch"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()

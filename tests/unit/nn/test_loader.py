"""DataLoader: kinds of datasets, orders, batches made ahead, and how to resume."""

import itertools
import threading

import numpy as np
import pytest

from weft.nn import DataLoader
from weft.nn.batches import joined
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
        batches = list(DataLoader((x, y), batch_size=2, num_workers=workers))
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
    loader = DataLoader(
        ["a", "bb"], batch_size=2, collate_fn=lambda s: np.array([len(x) for x in s])
    )
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
    loader = DataLoader(Squares(), batch_size=3, shuffle=True, num_workers=workers, drop_last=True)
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
    loader = DataLoader(data, batch_size=3, shuffle=True, seed=5, num_workers=workers)
    seen = numbers(loader)
    state = loader.state_dict()
    for count, batch in enumerate(loader):
        if count == stop:
            break
        seen += batch.tolist()
        state = loader.state_dict()
    resumed = DataLoader(data, batch_size=3, shuffle=True, num_workers=workers)
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
    passing = iter(DataLoader(Watched(), num_workers=1, prefetch_factor=4))
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
            next(iter(DataLoader(Broken(), num_workers=workers)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: DataLoader([1], batch_size=0), ArgumentError, "batch_size is 0"),
        (lambda: DataLoader([1], num_workers=-1), ArgumentError, "num_workers is -1"),
        (lambda: DataLoader(iter([1]), shuffle=True), ArgumentError, "cannot be shuffled"),
        (lambda: DataLoader(iter([1]), sampler=[0]), ArgumentError, "or sampled"),
        (lambda: DataLoader([1], shuffle=True, sampler=[0]), ArgumentError, "shuffle and sampler"),
        (lambda: DataLoader([1], 2, batch_sampler=[[0]]), ArgumentError, "beside batch_size"),
        (lambda: DataLoader([1], None, drop_last=True), ArgumentError, "without a batch_size"),
        (lambda: len(DataLoader([1], sampler=iter([0]))), ArgumentTypeError, "has no length"),
        (lambda: DataLoader([1], prefetch_factor=0), ArgumentError, "prefetch_factor is 0"),
        (lambda: len(DataLoader(iter([1]))), ArgumentTypeError, "an iterable has no length"),
        (lambda: DataLoader(3), ArgumentTypeError, "expected a dataset, got int"),
        (lambda: DataLoader((np.ones(2), np.ones(3))), ShapeError, "arrays with 2, 3 rows"),
        (lambda: DataLoader([1]).load_state_dict({"seed": 0}), ArgumentError, "batch, epoch"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sampler_gives_the_order(workers):
    loader = DataLoader(np.arange(10) * 10, 2, sampler=[7, 1, 3], num_workers=workers)
    assert [batch.tolist() for batch in loader] == [[70, 10], [30]]
    assert [batch.tolist() for batch in loader] == [[70, 10], [30]]
    assert len(loader) == 2
    assert len(DataLoader(np.arange(10), 2, sampler=[7, 1, 3], drop_last=True)) == 1
    batches = DataLoader(Squares(), batch_sampler=[[1, 2, 3], [9]], num_workers=workers)
    assert [batch["y"].tolist() for batch in batches] == [[1, 4, 9], [81]]
    assert len(batches) == 2


def test_samples_one_by_one():
    loader = DataLoader(Squares(), batch_size=None)
    samples = list(loader)
    assert len(samples) == len(loader) == 10
    assert samples[3]["x"].tolist() == [3.0, 3.0]
    assert (samples[3]["y"], samples[3]["name"]) == (9, "n3")
    columns = DataLoader((np.arange(3), Tensor([5, 6, 7])), batch_size=None)
    assert [(x.tolist(), y.tolist()) for x, y in columns] == [(0, 5), (1, 6), (2, 7)]
    assert list(DataLoader((str(n) for n in range(3)), None)) == ["0", "1", "2"]


def test_a_function_may_join_rows_of_arrays():
    data = np.arange(4), np.arange(4) * 10
    loader = DataLoader(data, 2, collate_fn=lambda rows: [int(x + y) for x, y in rows])
    assert list(loader) == [[0, 11], [22, 33]]


@pytest.mark.parametrize("workers", [1, 3])
def test_iterables_are_read_ahead_in_order(workers):
    threads = set()

    class Lines:
        def __iter__(self):
            for number in range(7):
                threads.add(threading.current_thread().name)
                yield number

    loader = DataLoader(Lines(), 2, num_workers=workers)
    for _ in range(2):  # each epoch begins anew
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5], [6]]
    whole = DataLoader(Lines(), 2, num_workers=workers, drop_last=True)
    assert [batch.tolist() for batch in whole] == [[0, 1], [2, 3], [4, 5]]
    assert all(name.startswith("weft-data") for name in threads)


def test_an_endless_iterable_can_be_left():
    before = threading.active_count()
    passing = iter(DataLoader(itertools.count(), 3, num_workers=2))
    assert [next(passing).tolist() for _ in range(2)] == [[0, 1, 2], [3, 4, 5]]
    passing.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_begin_with_a_function(persistent):
    begun = []
    loader = DataLoader(
        np.arange(4), num_workers=1, worker_init_fn=begun.append, persistent_workers=persistent
    )
    assert numbers(loader) == numbers(loader) == [0, 1, 2, 3]
    assert begun == ([0] if persistent else [0, 0])


def test_an_error_at_the_beginning_of_a_worker_arrives():
    def begin(number):
        raise OSError(f"worker {number}")

    with pytest.raises(OSError, match="worker 0"):
        list(DataLoader(np.arange(4), num_workers=1, worker_init_fn=begin))


def test_an_epoch_after_an_error_is_whole():
    class Sometimes(Squares):
        is_broken = True

        def __getitem__(self, number):
            if number == 4 and self.is_broken:
                raise KeyError("sample 4")
            return number

    for workers in (0, 2):
        dataset = Sometimes()
        loader = DataLoader(dataset, 3, num_workers=workers)
        with pytest.raises(KeyError, match="sample 4"):
            list(loader)
        dataset.is_broken = False
        assert numbers(loader) == list(range(10))

"""`weft.utils.data`: datasets, samplers, the loader."""

import pytest

from weft import Tensor
from weft.support.errors import ArgumentError, ShapeError
from weft.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    random_split,
)


def test_tensor_dataset_in_a_loader():
    data = TensorDataset(Tensor([[1.0], [2.0], [3.0]]), Tensor([4, 5, 6]))
    batches = [(x.tolist(), y.tolist()) for x, y in DataLoader(data, batch_size=2)]
    assert batches == [([[1.0], [2.0]], [4, 5]), ([[3.0]], [6])]
    with pytest.raises(ShapeError, match="2, 3 rows"):
        TensorDataset(Tensor([1, 2]), Tensor([1, 2, 3]))


def test_random_split_is_a_partition():
    Tensor.manual_seed(1)
    parts = random_split(range(10), [7, 3])
    assert [len(part) for part in parts] == [7, 3]
    assert sorted(part[i] for part in parts for i in range(len(part))) == list(range(10))
    assert [len(part) for part in random_split(range(10), [0.5, 0.25, 0.25])] == [6, 2, 2]
    with pytest.raises(ArgumentError, match="for 10 samples"):
        random_split(range(10), [7, 4])


def test_datasets_of_datasets():
    both = ConcatDataset([range(3), range(10, 12)])
    assert [both[i] for i in range(len(both))] == [0, 1, 2, 10, 11] and both[-1] == 11
    assert [Subset(both, [4, 0])[i] for i in range(2)] == [11, 0]


def test_samplers():
    assert list(BatchSampler(SequentialSampler(range(5)), 2, False)) == [[0, 1], [2, 3], [4]]
    assert sorted(RandomSampler(range(5))) == [0, 1, 2, 3, 4]
    assert set(WeightedRandomSampler([0.0, 1.0], 5)) == {1}


def test_default_collate():
    x, names = default_collate([(1.5, "a"), (2.5, "b")])
    assert x.tolist() == [1.5, 2.5] and list(names) == ["a", "b"]

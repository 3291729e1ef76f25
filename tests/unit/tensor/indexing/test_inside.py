"""Labels and indices out of range are found where the host knows them, and under CHECK=index."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft import nn
from weft.nn import functional
from weft.support.errors import IndexOutOfRange
from weft.support.settings import Context
from weft.tensor import Tensor
from weft.tensor.jit.jit import jit

INDICES: dict[str, Callable[[Tensor], Any]] = {
    "index": lambda i: Tensor.ones(3)[i],
    "index of columns": lambda i: Tensor.ones(2, 3)[:, i],
    "write": lambda i: Tensor.ones(3).__setitem__(i, 1.0),
    "gather": lambda i: Tensor.ones(3).gather(0, i),
    "scatter": lambda i: Tensor.ones(3).scatter(0, i, Tensor([1.0])),
    "scatter_add": lambda i: Tensor.ones(3).scatter_add(0, i, Tensor([1.0])),
    "index_select": lambda i: Tensor.ones(3).index_select(0, i),
    "index_add": lambda i: Tensor.ones(3).index_add(0, i, Tensor([1.0])),
    "index_copy": lambda i: Tensor.ones(3).index_copy(0, i, Tensor([1.0])),
    "index_fill": lambda i: Tensor.ones(3).index_fill(0, i, 1.0),
    "index_put": lambda i: Tensor.ones(3).index_put((i,), Tensor([1.0])),
    "take": lambda i: Tensor.ones(3).take(i),
    "take_along_dim": lambda i: Tensor.ones(3).take_along_dim(i, 0),
    "embedding": lambda i: functional.embedding(i, Tensor.ones(3, 2)),
    "layer": lambda i: nn.Embedding(3, 2)(i),
}
LABELS: dict[str, Callable[[Tensor], Any]] = {
    "cross_entropy": lambda y: Tensor.ones(1, 3).cross_entropy(y),
    "functional cross_entropy": lambda y: functional.cross_entropy(Tensor.ones(1, 3), y),
    "sparse_categorical_crossentropy": lambda y: Tensor.ones(1, 3).sparse_categorical_crossentropy(
        y
    ),
    "nll_loss": lambda y: functional.nll_loss(Tensor.ones(1, 3), y),
    "multi_margin_loss": lambda y: functional.multi_margin_loss(Tensor.ones(1, 3), y),
    "one_hot": lambda y: y.one_hot(3),
}
ALL = {**INDICES, **LABELS}


def made(number: int) -> list[Tensor]:
    array = np.array([number])
    return [Tensor([number]), Tensor(array), Tensor([0, number])[1:], Tensor([number]).realize()]


@pytest.mark.parametrize("name", ALL)
def test_numbers_of_the_host(name: str):
    for index in made(3):
        with pytest.raises(IndexOutOfRange, match="3 is out of range for 3"):
            ALL[name](index)
    for index in made(2):
        ALL[name](index)


@pytest.mark.parametrize("name", ALL)
def test_computed_numbers(name: str):
    index = Tensor([1]) + 2
    ALL[name](index)
    with Context(CHECK="index"):
        with pytest.raises(IndexOutOfRange, match="3 is out of range for 3"):
            ALL[name](Tensor([1]) + 2)
        ALL[name](Tensor([1]) + 1)


@pytest.mark.parametrize("name", LABELS)
def test_labels_count_from_zero(name: str):
    number = -1 if name != "sparse_categorical_crossentropy" else -2
    if name == "multi_margin_loss":
        pytest.skip("an index, which may count from the end")
    with pytest.raises(IndexOutOfRange):
        LABELS[name](Tensor([number]))


def test_ignored_labels():
    scores = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert scores.cross_entropy(Tensor([0, -100])).item() > 0
    assert functional.nll_loss(scores, Tensor([0, 7]), ignore_index=7).item() == -1
    assert scores.sparse_categorical_crossentropy(Tensor([0, -1])).item() > 0


def test_inside_of_a_jitted_function_nothing_is_read():
    pick = jit(lambda x, i: x[i])
    assert pick(Tensor([1.0, 2.0]), Tensor([1])).tolist() == [2.0]
    assert pick(Tensor([1.0, 2.0]), Tensor([5])).tolist() == [0.0]

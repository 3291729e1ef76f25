"""Losses where something infinite must not leak into what is counted; the rest is test_nn_ops."""

import numpy as np
import pytest

from weft import Tensor

SCORES = np.array([[1.0, 2.0, -np.inf], [0.0, 1.0, 3.0]], np.float32)
RIGHT = np.array([0, 2])
LOSSES = {
    "cross_entropy": lambda x, y: x.cross_entropy(y, reduction="none"),
    "weighted": lambda x, y: x.cross_entropy(y, reduction="none", weight=Tensor.ones(3)),
    "sparse": lambda x, y: x.sparse_categorical_crossentropy(y, reduction="none"),
    "nll": lambda x, y: x.log_softmax().nll_loss(y, reduction="none"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_class_that_cannot_be_changes_no_other(name):
    chances = np.exp(SCORES) / np.exp(SCORES).sum(1, keepdims=True)
    scores = Tensor(SCORES, requires_grad=True)
    loss = LOSSES[name](scores, Tensor(RIGHT))
    np.testing.assert_allclose(loss.numpy(), -np.log(chances[[0, 1], RIGHT]), rtol=1e-6)
    (slope,) = loss.sum().gradient(scores)
    np.testing.assert_allclose(slope.numpy(), chances - np.eye(3)[RIGHT], rtol=1e-5, atol=1e-7)


def test_what_is_ignored_may_be_infinite():
    logs = Tensor([[-np.inf, 0.0], [-2.0, -1.0]])
    assert logs.nll_loss(Tensor([-1, 0]), ignore_index=-1).item() == 2.0
    scores = Tensor([[np.inf, 0.0], [0.0, 0.0]])
    for loss in (scores.cross_entropy, scores.sparse_categorical_crossentropy):
        assert loss(Tensor([-1, 1]), ignore_index=-1).item() == pytest.approx(np.log(2))

"""Movement, padding, joining and cutting, against NumPy and PyTorch."""

from typing import Any

import numpy as np
import pytest

from tests.unit.tensor.compare import assert_like_torch, assert_same, numbers
from weft.tensor import Tensor

X = np.arange(24, dtype=np.int32).reshape(2, 3, 4)

VIEWS: dict[str, Any] = {
    "reshape": lambda x: x.reshape(4, -1),
    "reshape-tuple": lambda x: x.reshape((6, 4)),
    "view": lambda x: x.view(24),
    "permute": lambda x: x.permute(2, 0, 1),
    "permute-negative": lambda x: x.permute(-1, 0, 1),
    "transpose": lambda x: x.transpose(0, -1),
    "flip": lambda x: x.flip((0, -1)),
    "unsqueeze": lambda x: x.unsqueeze(-2),
    "squeeze": lambda x: x[:, :1].squeeze(),
    "squeeze-dim": lambda x: x[:, :1].squeeze(1),
    "squeeze-other": lambda x: x.squeeze(0),
    "flatten": lambda x: x.flatten(1),
    "flatten-middle": lambda x: x.flatten(0, 1),
    "unflatten": lambda x: x.unflatten(-1, (2, -1)),
    "expand": lambda x: x[:, :1].expand(-1, 3, 4),
    "expand-new": lambda x: x.expand(2, 2, 3, 4),
    "broadcast_to": lambda x: x.broadcast_to((1, 2, 3, 4)),
    "movedim": lambda x: x.movedim(0, -1),
    "repeat": lambda x: x.repeat(2, 1, 1, 3),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "repeat_interleave-flat": lambda x: x.repeat_interleave(3),
    "roll": lambda x: x.roll(5),
    "roll-dims": lambda x: x.roll((1, -2), (0, 2)),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "unfold-step": lambda x: x.unfold(1, 2, 2),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "diagonal-offset": lambda x: x.diagonal(2, 1, 2),
    "diagonal-below": lambda x: x.diagonal(-1, 0, 1),
    "diagonal-far": lambda x: x.diagonal(9, 0, 1),
    "tril": lambda x: x.tril(),
    "tril-offset": lambda x: x.tril(-1),
    "triu": lambda x: x.triu(1),
    "triu-below": lambda x: x.triu(-2),
    "split": lambda x: x.split(2, 1),
    "split-sizes": lambda x: x.split([1, 3], 2),
    "chunk": lambda x: x.chunk(3, 2),
    "chunk-more": lambda x: x.chunk(5, 0),
}


@pytest.mark.peers("torch")
@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str):
    assert_like_torch(VIEWS[name], X)


def test_transposed_property():
    assert_same(Tensor(X).T, X.T)
    assert Tensor(3).T.shape == ()


PADDINGS = ((1, 2), (0, 0, 2, 1), (-1, 1), (1, -2, 0, 1), (2, 2, 1, 1, 0, 3))


@pytest.mark.peers("torch")
@pytest.mark.parametrize("padding", PADDINGS, ids=str)
def test_pad_with_a_constant(padding: tuple[int, ...]):
    import torch.nn.functional as functional

    for value in (0, 7):
        assert_like_torch(
            lambda x, value=value: x.pad(padding, value=value),
            X,
            other=lambda x, value=value: functional.pad(x, padding, value=value),
        )


@pytest.mark.peers("torch")
@pytest.mark.parametrize("mode", ("reflect", "replicate", "circular"))
@pytest.mark.parametrize("padding", ((1, 2), (2, 1, 1, 2)), ids=str)
def test_pad_modes(mode: str, padding: tuple[int, ...]):
    import torch.nn.functional as functional

    x = X.astype(np.float32).reshape(1, 2, 3, 4)
    x = x if len(padding) == 4 else x[0]
    assert_like_torch(
        lambda x: x.pad(padding, mode=mode),
        x,
        other=lambda x: functional.pad(x, padding, mode=mode),
    )


def test_pad_by_axis():
    assert Tensor([[1]]).pad((None, (1, 0))).tolist() == [[0, 1]]
    assert Tensor([[1]]).pad(((0, 1), (1, 0)), value=5).tolist() == [[5, 1], [5, 5]]


def test_padding_keeps_the_sign_of_zero():
    joined = Tensor([-0.0]).cat(Tensor([-0.0])).pad((1, 0), value=1.0)
    assert str(joined.tolist()) == "[1.0, -0.0, -0.0]"


@pytest.mark.peers("torch")
def test_joining():
    import torch

    a, b = numbers("int32", (2, 3), 1), numbers("float32", (2, 2), 2)
    assert_like_torch(lambda x, y: x.cat(y, dim=1), a, b, other=lambda x, y: torch.cat([x, y], 1))
    assert_like_torch(
        lambda x: (
            Tensor.cat(x, x, x[:, :0], dim=-1) if isinstance(x, Tensor) else torch.cat([x, x], 1)
        ),
        a,
    )
    for dim in (0, 1, 2, -1):
        assert_like_torch(
            lambda x, dim=dim: x.stack(x + 1, dim=dim),
            a,
            other=lambda x, dim=dim: torch.stack([x, x + 1], dim),
        )
    for indexing in ("ij", "xy"):
        assert_like_torch(
            lambda x, y, i=indexing: x.meshgrid(y, indexing=i),
            np.arange(3),
            np.arange(2),
            other=lambda x, y, i=indexing: torch.meshgrid(x, y, indexing=i),
        )


def test_one_hot():
    assert Tensor([[1, 0]]).one_hot(3).tolist() == [[[0, 1, 0], [1, 0, 0]]]


def test_copies_do_not_alias():
    x = Tensor([1, 2])
    for y in (x.repeat(1), x.roll(0), x.pad((0, 0)), x.cat(), x.clone(), Tensor(x)):
        y += 1
    assert x.tolist() == [1, 2]


def test_empty_and_scalar_shapes():
    assert Tensor.zeros(0, 3).reshape(3, 0).shape == (3, 0)
    assert Tensor(5).reshape(1, 1).reshape(()).item() == 5
    assert Tensor.zeros(0, 3).T.flip(0).numpy().shape == (3, 0)
    assert Tensor.zeros(2, 0).cat(Tensor.ones(2, 1), dim=1).tolist() == [[1.0], [1.0]]

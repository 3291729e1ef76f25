"""Linear and Embedding: products with a weight, and rows of one."""

from __future__ import annotations

from weft.nn.initial import require_positive, uniform
from weft.support.errors import DTypeError, ShapeError
from weft.tensor.tensor import Tensor


class Linear:
    """y = x Wᵀ + b on the last axis: (…, in_features) to (…, out_features).

    `weight` is (out_features, in_features), `bias` (out_features) or None; both are drawn between
    ±1/√in_features, as in PyTorch.

    >>> Linear(3, 2)(Tensor.ones(4, 3)).shape
    (4, 2)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        require_positive("Linear", in_features=in_features, out_features=out_features)
        self.weight = uniform((out_features, in_features), in_features)
        self.bias = uniform((out_features,), in_features) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        if not x.ndim or x.shape[-1] != self.weight.shape[1]:
            raise ShapeError(
                f"Linear: an input of shape {x.shape} for {self.weight.shape[1]} features",
                facts=[("input", x.shape), ("weight", self.weight.shape, "(out, in)")],
                law="the last axis of the input has in_features elements",
            )
        return x.linear(self.weight.transpose(), self.bias)


class Embedding:
    """The row of a table for each index: (…) of integers to (…, embed_size).

    `weight` is (vocab_size, embed_size), drawn from the normal distribution as in PyTorch. Only
    the rows that are asked for are read.

    >>> Embedding(10, 4)(Tensor([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(self, vocab_size: int, embed_size: int) -> None:
        require_positive("Embedding", vocab_size=vocab_size, embed_size=embed_size)
        self.vocab_size, self.embed_size = vocab_size, embed_size
        self.weight = Tensor.normal(vocab_size, embed_size, requires_grad=True)

    def __call__(self, idx: Tensor) -> Tensor:
        if not idx.dtype.is_int:
            raise DTypeError(
                f"Embedding: indices of dtype {idx.dtype.name}", law="indices are integers"
            )
        return self.weight[idx]

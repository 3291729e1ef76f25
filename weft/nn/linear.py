"""Linear and Embedding: products with a weight, and rows of one."""

from __future__ import annotations

from typing import Any

from weft.nn.arguments import also_named
from weft.nn.functional.linear import bilinear
from weft.nn.functional.sparse import embedding, embedding_bag
from weft.nn.initial import require_positive, uniform
from weft.nn.module import Layer
from weft.support.errors import DTypeError, ShapeError
from weft.tensor.tensor import Tensor


class Linear(Layer):
    """y = x Wᵀ + b on the last axis: (…, in_features) to (…, out_features).

    `weight` is (out_features, in_features), `bias` (out_features) or None; both are drawn between
    ±1/√in_features, as in PyTorch.

    >>> Linear(3, 2)(Tensor.ones(4, 3)).shape
    (4, 2)
    """

    @also_named()
    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        require_positive("Linear", in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        self.weight = uniform((out_features, in_features), in_features)
        self.bias = uniform((out_features,), in_features) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        if not x.ndim or x.shape[-1] != self.weight.shape[1]:
            raise ShapeError(
                f"Linear: an input of shape {x.shape} for {self.weight.shape[1]} features",
                facts=[("input", x.shape), ("weight", self.weight.shape, "(out, in)")],
                rule="the last axis of the input has in_features elements",
            )
        return x.linear(self.weight.transpose(), self.bias)


class Embedding(Layer):
    """The row of a table for each index: (…) of integers to (…, embed_size).

    `weight` is (vocab_size, embed_size), drawn from the normal distribution as in PyTorch. Only
    the rows that are asked for are read.

    >>> Embedding(10, 4)(Tensor([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    @also_named(num_embeddings="vocab_size", embedding_dim="embed_size")
    def __init__(
        self,
        vocab_size: int,
        embed_size: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> None:
        require_positive("Embedding", vocab_size=vocab_size, embed_size=embed_size)
        self.vocab_size, self.embed_size = vocab_size, embed_size
        self.num_embeddings, self.embedding_dim = vocab_size, embed_size
        self.padding_idx = None if padding_idx is None else padding_idx % vocab_size
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        drawn = Tensor.normal(vocab_size, embed_size)
        if padding_idx is not None:
            rows = Tensor.arange(vocab_size).unsqueeze(1)
            drawn = (rows == self.padding_idx).where(0.0, drawn)
        self.weight = drawn.requires_grad_(True)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Any:
        """A layer with these rows, which are not trained unless `freeze` is False."""
        if embeddings.ndim != 2:
            raise ShapeError(
                f"{cls.__name__}: a table of shape {embeddings.shape}", rule="it has two axes"
            )
        rows, size = (int(each) for each in embeddings.shape)
        made = cls(rows, size, **options)
        made.weight = embeddings.detach().clone().requires_grad_(True)
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, idx: Tensor) -> Tensor:
        if not idx.dtype.is_int:
            raise DTypeError(
                f"Embedding: indices of dtype {idx.dtype.name}", rule="indices are integers"
            )
        if self.padding_idx is None and self.max_norm is None and not self.scale_grad_by_freq:
            return self.weight[idx]
        return embedding(
            idx, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq,
        )  # fmt: skip


class EmbeddingBag(Layer):
    """Sums, means or maxima of rows of a table, for bags of indices.

    >>> EmbeddingBag(10, 4)(Tensor([[1, 2], [3, 4]])).shape
    (2, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> None:
        require_positive("EmbeddingBag", num_embeddings=num_embeddings, size=embedding_dim)
        self.options = (max_norm, norm_type, scale_grad_by_freq, mode)
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        self.weight = Tensor.normal(num_embeddings, embedding_dim, requires_grad=True)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Any:
        """A layer with these rows, which are not trained unless `freeze` is False."""
        if embeddings.ndim != 2:
            raise ShapeError(
                f"{cls.__name__}: a table of shape {embeddings.shape}", rule="it has two axes"
            )
        rows, size = (int(each) for each in embeddings.shape)
        made = cls(rows, size, **options)
        made.weight = embeddings.detach().clone().requires_grad_(True)
        made.weight.requires_grad_(not freeze)
        return made

    def forward(
        self, x: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """Reduce the rows of each bag."""
        max_norm, norm_type, scale, mode = self.options
        return embedding_bag(
            x, self.weight, offsets, max_norm, norm_type, scale, mode, False, per_sample_weights,
            self.include_last_offset, self.padding_idx,
        )  # fmt: skip


class Bilinear(Layer):
    """x₁ W x₂ + b.

    >>> Bilinear(2, 3, 4)(Tensor.ones(5, 2), Tensor.ones(5, 3)).shape
    (5, 4)
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True
    ) -> None:
        require_positive("Bilinear", in1_features=in1_features, in2_features=in2_features)
        self.weight = uniform((out_features, in1_features, in2_features), in1_features)
        self.bias = uniform((out_features,), in1_features) if bias else None

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Multiply."""
        return bilinear(x1, x2, self.weight, self.bias)

"""A softmax over many classes in clusters, of which the rare ones have fewer features.

Grave et al., "Efficient softmax approximation for GPUs" (2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.nn.containers import ModuleList, Sequential
from weft.nn.linear import Linear
from weft.nn.module import Layer
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.tensor import Tensor


class ASMoutput(NamedTuple):
    """The logarithm of each target's probability, and minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Layer):
    """Log-probabilities of classes sorted from frequent to rare; `cutoffs` end the clusters.

    The first cluster is scored with one class for each of the others, and those are scored within
    themselves, with features divided by `div_value` once more each time.

    >>> layer = AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[3])
    >>> layer(Tensor.ones(2, 4), Tensor([0, 9])).output.shape
    (2,)
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: str | None = None,
        dtype: object = None,
    ) -> None:
        super().__init__()
        ends = [int(each) for each in cutoffs]
        if not ends or ends != sorted(set(ends)) or ends[0] < 1 or ends[-1] > n_classes - 1:
            raise ArgumentError(
                f"AdaptiveLogSoftmaxWithLoss: cutoffs are {list(cutoffs)}",
                rule=f"they ascend, from 1 to at most {n_classes - 1}",
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*ends, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias)
        self.tail = ModuleList()
        for number in range(self.n_clusters):
            width = int(in_features // div_value ** (number + 1))
            classes = self.cutoffs[number + 1] - self.cutoffs[number]
            first = Linear(in_features, width, bias=False)
            self.tail.append(Sequential(first, Linear(width, classes, bias=False)))
        if device is not None or dtype is not None:
            moves = {"device": device, "dtype": dtype}
            self.to(**{key: value for key, value in moves.items() if value is not None})

    def forward(self, input_: Tensor, target_: Tensor) -> ASMoutput:
        is_single = target_.ndim == 0
        x = input_.unsqueeze(0) if is_single else input_
        target = target_.unsqueeze(0) if is_single else target_
        if x.ndim != 2 or target.ndim != 1 or x.shape[0] != target.shape[0]:
            raise ShapeError(
                f"AdaptiveLogSoftmaxWithLoss: {input_.shape} and targets {target_.shape}",
                rule="the input is (batch, features) and a target for each",
            )
        head = self.head(x).log_softmax(1)
        total = head.gather(1, target.clamp(0, self.shortlist_size - 1).unsqueeze(1)).squeeze(1)
        for number, cluster in enumerate(self.tail):
            low, high = self.cutoffs[number], self.cutoffs[number + 1]
            inner = cluster(x).log_softmax(1)
            place = (target - low).clamp(0, high - low - 1).unsqueeze(1)
            found = head[:, self.shortlist_size + number] + inner.gather(1, place).squeeze(1)
            total = ((target >= low) & (target < high)).where(found, total)
        loss = -total.mean()
        return ASMoutput(total.squeeze(0) if is_single else total, loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes: (batch, n_classes)."""
        head = self.head(input).log_softmax(1)
        parts = [head[:, : self.shortlist_size]]
        for number, cluster in enumerate(self.tail):
            of_cluster = head[:, self.shortlist_size + number].unsqueeze(1)
            parts.append(cluster(input).log_softmax(1) + of_cluster)
        return parts[0].cat(*parts[1:], dim=1)  # type: ignore[no-any-return]

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of each row."""
        return self.log_prob(input).argmax(1)

"""Linear models and support vector machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.dtypes import dtypes
from weft.onnx.table import ML, op
from weft.tensor.tensor import Tensor


def transformed(call: Any, scores: Tensor, how: Any) -> Tensor:
    """Scores after the transform that a model names, or numbers."""
    names = {0: "NONE", 1: "SOFTMAX", 2: "LOGISTIC", 3: "SOFTMAX_ZERO", 4: "PROBIT"}
    kind = names.get(how, how)
    if kind == "SOFTMAX":
        return scores.softmax(-1)
    if kind == "LOGISTIC":
        return scores.sigmoid()
    if kind == "SOFTMAX_ZERO":  # what is zero stays so
        is_zero = scores == 0
        shifted = (scores - scores.max(-1, True)).exp()
        some = is_zero.where(0, shifted)
        return some / some.sum(-1, True)
    if kind == "PROBIT":
        return (scores * 2 - 1).erfinv() * 2**0.5
    return scores


def labels(call: Any, texts: Any, numbers: Any, chosen: Tensor) -> Any:
    """The labels of classes; texts are chosen by the host."""
    if texts:
        return np.array(texts, dtype=object)[call.run.host(chosen)]
    table = Tensor(np.array(numbers, dtype=np.int64), device=chosen.device)
    return table[chosen]


def row(call: Any, values: Any) -> Tensor:
    return Tensor(np.array(values, dtype=np.float32), device=call.device)


@op("LinearRegressor", domain=ML)
def linear_regressor(call: Any, x: Tensor) -> Tensor:
    targets = call.get("targets", 1)
    weights = row(call, call.get("coefficients")).reshape(targets, -1)
    scores = x.cast(dtypes.float32).matmul(weights.transpose(0, 1))
    if call.get("intercepts"):
        scores = scores + row(call, call.get("intercepts"))
    return transformed(call, scores, call.get("post_transform", "NONE"))


@op("LinearClassifier", domain=ML)
def linear_classifier(call: Any, x: Tensor) -> Any:
    intercepts = call.get("intercepts")
    values = call.get("coefficients")
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    weights = row(call, values).reshape(-1, rows.shape[1])
    scores = rows.cast(dtypes.float32).matmul(weights.transpose(0, 1))
    if intercepts:
        scores = scores + row(call, intercepts)
    texts, numbers = call.get("classlabels_strings"), call.get("classlabels_ints")
    count = len(texts or numbers or [])
    how = call.get("post_transform", "NONE")
    if scores.shape[1] == 1 and count == 2:  # one score decides between two classes
        is_second = (scores[:, 0] > 0).cast(dtypes.int64)
        pair = (-scores).cat(scores, dim=1)
        if how == "LOGISTIC":
            positive = scores.sigmoid()
            pair = (1 - positive).cat(positive, dim=1)
        elif how != "NONE":
            pair = transformed(call, pair, how)
        return labels(call, texts, numbers, is_second), pair
    chosen = scores.argmax(1).cast(dtypes.int64)
    return labels(call, texts, numbers, chosen), transformed(call, scores, how)


def _kernel(call: Any, x: Tensor, vectors: Tensor) -> Tensor:
    """The kernel of each row with each support vector."""
    gamma, coefficient, degree = (call.get("kernel_params") or [0.0, 0.0, 0.0])[:3]
    kind = call.get("kernel_type", "LINEAR")
    product = x.matmul(vectors.transpose(0, 1))
    if kind == "POLY":
        return (product * gamma + coefficient).pow(degree)
    if kind == "SIGMOID":
        return (product * gamma + coefficient).tanh()
    if kind == "RBF":
        squares = (x * x).sum(1, True) + (vectors * vectors).sum(1).unsqueeze(0)
        return (-gamma * (squares - 2 * product)).exp()
    return product


@op("SVMRegressor", domain=ML)
def svm_regressor(call: Any, x: Tensor) -> Tensor:
    x = x.cast(dtypes.float32)
    count = call.get("n_supports", 0)
    weights = row(call, call.get("coefficients"))
    rho = float(call.get("rho")[0])
    if count:
        vectors = row(call, call.get("support_vectors")).reshape(count, -1)
        scores = _kernel(call, x, vectors).matmul(weights) + rho
    else:
        scores = _kernel(call, x, weights.reshape(1, -1))[:, 0] + rho
    if call.get("one_class", 0):
        scores = (scores > 0).where(1.0, -1.0)
    return transformed(call, scores.unsqueeze(1), call.get("post_transform", "NONE"))


@op("SVMClassifier", domain=ML)
def svm_classifier(call: Any, x: Tensor) -> Any:
    """Votes of one class against another, or probabilities of them, or linear scores."""
    x = x.cast(dtypes.float32)
    texts, numbers = call.get("classlabels_strings"), call.get("classlabels_ints")
    counts = call.get("vectors_per_class") or []
    rho = call.get("rho")
    weights = row(call, call.get("coefficients"))
    how = call.get("post_transform", "NONE")
    if not counts:
        classes = len(texts or numbers)
        scores = _kernel(call, x, weights.reshape(classes, -1)) + float(rho[0])
        chosen = scores.argmax(1).cast(dtypes.int64)
        return labels(call, texts, numbers, chosen), transformed(call, scores, how)
    total, classes = sum(counts), len(counts)
    kernel = _kernel(call, x, row(call, call.get("support_vectors")).reshape(total, -1))
    table = weights.reshape(classes - 1, total)
    starts = np.cumsum([0, *counts])
    pairs: list[Any] = []
    votes: list[Any] = [0.0] * classes
    for first in range(classes):
        for second in range(first + 1, classes):
            parts = [
                kernel[:, starts[own] : starts[own + 1]].matmul(
                    table[other, starts[own] : starts[own + 1]]
                )
                for own, other in ((first, second - 1), (second, first))
            ]
            score = parts[0] + parts[1] + float(rho[len(pairs)])
            pairs.append(score)
            votes[first] = votes[first] + (score > 0).cast(dtypes.float32)
            votes[second] = votes[second] + (score <= 0).cast(dtypes.float32)
    if call.get("prob_a"):
        raise call.error("probabilities of a support vector machine", "scores are computed")
    chosen = Tensor.stack(*votes, dim=1).argmax(1).cast(dtypes.int64)
    return labels(call, texts, numbers, chosen), transformed(
        call, Tensor.stack(*pairs, dim=1), how
    )

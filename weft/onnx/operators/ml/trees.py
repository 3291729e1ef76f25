"""Ensembles of trees: all rows walk down all trees at once, level after level.

A tree is a table: for each node the feature, threshold, comparison and the next nodes. A leaf
leads to itself, so as many steps as the deepest tree has end in leaves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from weft.ir.dtypes import dtypes
from weft.onnx.operators.ml.linear import labels, transformed
from weft.onnx.table import ML, op
from weft.tensor.tensor import Tensor

_MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER", "LEAF")


class _Forest(NamedTuple):
    """Arrays of all nodes; `votes` has (leaf, target, weight)."""

    features: Any
    splits: Any
    modes: Any  # positions in _MODES
    yes: Any
    no: Any
    nan_is_yes: Any
    roots: Any
    votes: list[tuple[int, int, float]]
    members: dict[int, list[float]]


def _depth(forest: _Forest) -> int:
    """How many steps the longest way to a leaf takes; a cycle has none."""
    level, steps = set(forest.roots.tolist()), 0
    while any(forest.modes[node] != 7 for node in level):
        steps += 1
        if steps > len(forest.features):
            raise ValueError("the nodes of a tree lead in a circle")
        level = {int(child) for node in level for child in (forest.yes[node], forest.no[node])}
    return steps


def _leaves(call: Any, x: Tensor, forest: _Forest) -> Tensor:
    """The leaf of each row in each tree: (rows, trees)."""
    made = {
        name: Tensor(np.asarray(getattr(forest, name)), device=x.device)
        for name in ("features", "modes", "yes", "no", "nan_is_yes")
    }
    splits = Tensor(np.asarray(forest.splits), device=x.device).cast(x.dtype)
    rows, trees = x.shape[0], len(forest.roots)
    node = Tensor(forest.roots, device=x.device).reshape(1, trees).expand(rows, trees)
    for _ in range(_depth(forest)):
        value = x.gather(1, made["features"][node])
        limit, mode = splits[node], made["modes"][node]
        is_true = (mode == 0) & (value <= limit)
        for number, answer in enumerate(
            (value < limit, value >= limit, value > limit, value == limit, value != limit), 1
        ):
            is_true = is_true | ((mode == number) & answer)
        for number, members in forest.members.items():
            inside: Any = None
            for member in members:
                inside = value == member if inside is None else inside | (value == member)
            if inside is not None:
                is_true = is_true | ((node == number) & inside)
        is_true = is_true | (value.isnan() & (made["nan_is_yes"][node] != 0))
        node = is_true.where(made["yes"][node], made["no"][node])
    return node


def _scores(call: Any, x: Tensor, forest: _Forest, targets: int, how: str) -> Tensor:
    """What the leaves vote for each target, gathered over trees: (rows, targets)."""
    weights = np.zeros((len(forest.features), targets), np.float64)
    is_there = np.zeros((len(forest.features), targets), bool)
    for leaf, target, weight in forest.votes:
        weights[leaf, target] += weight
        is_there[leaf, target] = True
    leaves = _leaves(call, x, forest)
    values = Tensor(weights, device=x.device).cast(x.dtype)[leaves]  # (rows, trees, targets)
    if how in ("SUM", "AVERAGE"):
        total = values.sum(1)
        return total / len(forest.roots) if how == "AVERAGE" else total
    there = Tensor(is_there, device=x.device)[leaves]
    limit = float("inf") if how == "MIN" else -float("inf")
    some = there.where(values, limit)
    best = some.min(1) if how == "MIN" else some.max(1)
    return there.any(1).where(best, 0)


@op("TreeEnsemble", domain=ML)
def tree_ensemble(call: Any, x: Tensor) -> Tensor:
    forest = _of_leaves(call)
    how = ("AVERAGE", "SUM", "MIN", "MAX")[call.get("aggregate_function", 1)]
    scores = _scores(call, x, forest, call.get("n_targets", 1), how)
    return transformed(call, scores, call.get("post_transform", 0))


def _of_leaves(call: Any) -> _Forest:
    """The forest of a TreeEnsemble, whose leaves are numbered apart from the other nodes."""
    count = len(call.get("nodes_featureids"))
    targets, weights = call.get("leaf_targetids"), call.get("leaf_weights").tolist()
    total = count + len(targets)
    modes = np.full(total, 7, np.int64)
    kinds = np.asarray(call.get("nodes_modes")).astype(np.int64)
    modes[:count] = kinds
    yes, no = np.arange(total), np.arange(total)
    yes[:count] = np.array(call.get("nodes_truenodeids")) + count * np.array(
        call.get("nodes_trueleafs")
    )
    no[:count] = np.array(call.get("nodes_falsenodeids")) + count * np.array(
        call.get("nodes_falseleafs")
    )
    features, splits, nans = np.zeros(total, np.int64), np.zeros(total), np.zeros(total, np.int64)
    features[:count] = call.get("nodes_featureids")
    splits[:count] = np.asarray(call.get("nodes_splits"), np.float64)
    if call.get("nodes_missing_value_tracks_true"):
        nans[:count] = call.get("nodes_missing_value_tracks_true")
    votes = [(count + n, target, weights[n]) for n, target in enumerate(targets)]
    roots = np.array(call.get("tree_roots"), np.int64)
    return _Forest(features, splits, modes, yes, no, nans, roots, votes, _members(call, kinds))


def _members(call: Any, kinds: Any) -> dict[int, list[float]]:
    """The set of each node that tests membership; sets stand one behind another, NaN between."""
    given = call.get("membership_values")
    values = [] if given is None else np.asarray(given, np.float64).tolist()
    sets: list[list[float]] = [[]]
    for value in values:
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(value)
    nodes = [number for number, kind in enumerate(kinds.tolist()) if kind == 6]
    return dict(zip(nodes, sets, strict=False))


def _of_ids(call: Any, prefix: str) -> _Forest:
    """The forest of a regressor or classifier, whose nodes have a tree and a number in it."""
    trees, numbers = call.get("nodes_treeids"), call.get("nodes_nodeids")
    where = {pair: index for index, pair in enumerate(zip(trees, numbers, strict=True))}
    kinds = [name.removeprefix("BRANCH_") for name in call.get("nodes_modes")]
    modes = np.array([_MODES.index(kind) for kind in kinds], np.int64)

    def next_nodes(name: str) -> Any:
        listed = zip(trees, call.get(name), strict=True)
        return np.array(
            [index if modes[index] == 7 else where[pair] for index, pair in enumerate(listed)],
            np.int64,
        )

    roots = [index for index, tree in enumerate(trees) if index == 0 or tree != trees[index - 1]]
    values = call.get("nodes_values_as_tensor")
    splits = np.asarray(call.get("nodes_values") if values is None else values, np.float64)
    given = call.get(f"{prefix}_weights_as_tensor")
    weights = call.get(f"{prefix}_weights") if given is None else given.tolist()
    votes = [
        (where[tree, node], target, weight)
        for tree, node, target, weight in zip(
            call.get(f"{prefix}_treeids"),
            call.get(f"{prefix}_nodeids"),
            call.get(f"{prefix}_ids"),
            weights,
            strict=True,
        )
    ]
    nans = call.get("nodes_missing_value_tracks_true") or [0] * len(trees)
    return _Forest(
        np.array(call.get("nodes_featureids"), np.int64),
        splits,
        modes,
        next_nodes("nodes_truenodeids"),
        next_nodes("nodes_falsenodeids"),
        np.array(nans, np.int64),
        np.array(roots, np.int64),
        votes,
        {},
    )


def _base(call: Any, scores: Tensor) -> Tensor:
    given = call.get("base_values_as_tensor")
    values = call.get("base_values") if given is None else given.tolist()
    if not values:
        return scores
    return scores + Tensor(np.array(values), device=scores.device).cast(scores.dtype)


@op("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(call: Any, x: Tensor) -> Tensor:
    x = x if x.dtype.is_float else x.cast(dtypes.float32)
    how = call.get("aggregate_function", "SUM")
    scores = _scores(call, x, _of_ids(call, "target"), call.get("n_targets", 1), how)
    scores = _base(call, scores).cast(dtypes.float32)
    return transformed(call, scores, call.get("post_transform", "NONE"))


@op("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(call: Any, x: Tensor) -> Any:
    x = x if x.dtype.is_float else x.cast(dtypes.float32)
    texts, numbers = call.get("classlabels_strings"), call.get("classlabels_int64s")
    classes = len(texts or numbers)
    forest = _of_ids(call, "class")
    used = {target for _, target, _ in forest.votes}
    how = call.get("post_transform", "NONE")
    scores = _scores(call, x, forest, classes, "SUM")
    if classes == 2 and len(used) == 1:  # one score decides between two classes
        base = call.get("base_values") or [0.0]
        score = scores[:, next(iter(used))] + float(base[-1] if len(base) == 1 else base[1])
        score = score.cast(dtypes.float32)
        if how == "LOGISTIC":
            positive = score.sigmoid()
            pair, chosen = (1 - positive).stack(positive, dim=1), score > 0
        elif how == "NONE":
            pair, chosen = (1 - score).stack(score, dim=1), score > 0.5
        else:
            pair, chosen = transformed(call, (-score).stack(score, dim=1), how), score > 0
        return labels(call, texts, numbers, chosen.cast(dtypes.int64)), pair
    scores = _base(call, scores).cast(dtypes.float32)
    chosen = scores.argmax(1).cast(dtypes.int64)
    return labels(call, texts, numbers, chosen), transformed(call, scores, how)

"""Boxes: those that no better one overlaps."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.onnx.table import op
from weft.onnx.values import plain, whole_number


@op("NonMaxSuppression", raw=True)
def non_max_suppression(
    call: Any, boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None
) -> Any:
    """Which boxes stay, (batch, class, box) each. The values decide how many, so they are read.

    Overlaps of all pairs are tensors; the choice, box after box, is the host's.
    """
    limit = 0 if most is None else whole_number(call.run.host(most))
    share = 0.0 if overlap is None else float(call.run.host(overlap).reshape(-1)[0])
    lowest = None if least is None else float(call.run.host(least).reshape(-1)[0])
    if limit <= 0:
        return np.zeros((0, 3), dtype=np.int64)
    values = call.run.host(plain(call.run.tensor(scores)))  # (batch, classes, boxes)
    tensor = plain(call.run.tensor(boxes))
    if values.shape[-1] == 0:
        return np.zeros((0, 3), dtype=np.int64)
    corners = call.run.host(_corners(tensor, bool(call.get("center_point_box", 0))))
    chosen = []
    for batch in range(values.shape[0]):
        for kind in range(values.shape[1]):
            row = values[batch, kind]
            for number in _kept(corners[batch], row, limit, share, lowest):
                chosen.append((batch, kind, number))
    return np.array(chosen, dtype=np.int64).reshape(-1, 3)


def _corners(boxes: Any, is_centered: bool) -> Any:
    """(…, 4) as least y, least x, greatest y, greatest x."""
    a, b, c, d = (boxes[..., axis] for axis in range(4))
    if is_centered:
        sides = (b - d / 2, a - c / 2, b + d / 2, a + c / 2)
    else:
        sides = (a.minimum(c), b.minimum(d), a.maximum(c), b.maximum(d))
    return sides[0].stack(*sides[1:], dim=-1)


def _kept(corners: Any, scores: Any, limit: int, share: float, lowest: float | None) -> list[int]:
    order = np.argsort(-scores, kind="stable")
    if lowest is not None:
        order = order[scores[order] > lowest]
    kept: list[int] = []
    while order.size and len(kept) < limit:
        best, order = int(order[0]), order[1:]
        kept.append(best)
        order = order[_overlaps(corners[best], corners[order]) <= share]
    return kept


def _overlaps(box: Any, others: Any) -> Any:
    """Intersection over union of a box with others."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    inner = np.prod(np.clip(high - low, 0, None), -1)
    areas = np.prod(others[:, 2:] - others[:, :2], -1) + np.prod(box[2:] - box[:2])
    union = areas - inner
    return np.where(union > 0, inner / np.where(union > 0, union, 1), 0.0)

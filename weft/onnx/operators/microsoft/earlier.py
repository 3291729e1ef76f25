"""Operators that were of com.microsoft before they were of the default domain, and distances."""

from __future__ import annotations

from typing import Any

from weft.onnx.operators.indexing import gather_nd, unique
from weft.onnx.operators.microsoft.fused import fused_matmul
from weft.onnx.operators.movement import pad, range_
from weft.onnx.operators.sampling import grid_sample
from weft.onnx.table import MICROSOFT, op
from weft.tensor.tensor import Tensor

op("GatherND", domain=MICROSOFT)(gather_nd)
op("GridSample", domain=MICROSOFT)(grid_sample)
op("Pad", domain=MICROSOFT, host=(1,))(pad)
op("Range", domain=MICROSOFT, raw=True)(range_)
op("TransposeMatMul", domain=MICROSOFT)(fused_matmul)


@op("CDist", domain=MICROSOFT)
def distances(call: Any, x: Tensor, y: Tensor) -> Tensor:
    """The distance of each row of one matrix from each row of the other."""
    metric = call.get("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise call.error(f"metric {metric!r}", "metrics are euclidean, sqeuclidean")
    gaps = x.unsqueeze(1) - y.unsqueeze(0)
    squares = (gaps * gaps).sum(-1)
    return squares.sqrt() if metric == "euclidean" else squares


@op("Unique", domain=MICROSOFT, raw=True)
def unique_in_order(call: Any, x: Any) -> Any:
    """Values in the order of their first positions, which of them each element is, and counts."""
    call.attributes = {"sorted": 0}
    values, _, inverse, counts = unique(call, x)
    return values, inverse, counts

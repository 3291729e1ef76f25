"""If, Loop and Scan: graphs inside of nodes.

A condition or count that the host knows decides while the graph is built. One that depends on
tensors is read, unless both branches of an If can be computed and chosen from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.onnx.execute import run_graph
from weft.onnx.table import op
from weft.onnx.values import NeedsValue, is_host, plain, whole_number
from weft.support.errors import UsageError
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor
from weft.tensor.trace.user_scans import scan as trace_scan

# Shorter scans are written out, which lets the host know more of them.
_MOST_UNROLLED = 8


@op("If", raw=True)
def if_(call: Any, condition: Any) -> Any:
    branches = call.get("then_branch"), call.get("else_branch")
    try:
        is_true = bool(call.run.host(condition).reshape(-1)[0])
    except NeedsValue:
        chosen = _try_both(call, condition, branches)
        if chosen is None:
            raise
        return chosen
    return tuple(run_graph(branches[0 if is_true else 1], {}, call.run, call.scope))


def _try_both(call: Any, condition: Any, branches: Any) -> Any:
    """Both branches, and a choice of each element, where their results are alike.

    A branch may be impossible for these shapes, which is an error only where it is the chosen one.
    """
    try:
        results = [run_graph(branch, {}, call.run, call.scope) for branch in branches]
    except UsageError:
        return None
    chosen = []
    for left, right in zip(*results, strict=True):
        if isinstance(left, (list, type(None))) or isinstance(right, (list, type(None))):
            return None
        a, b = call.run.tensor(left), call.run.tensor(right)
        if not isinstance(a, Tensor) or not isinstance(b, Tensor):
            return None
        if a.shape != b.shape or a.dtype is not b.dtype:
            return None
        flag = call.run.tensor(condition).reshape([1] * a.ndim)
        chosen.append(flag.where(a, b))
    return tuple(chosen)


@op("Loop", raw=True)
def loop(call: Any, count: Any, condition: Any, *state: Any) -> Any:
    body = call.get("body")
    names = [each.name for each in body.inputs]
    if len(names) != len(state) + 2:
        raise call.error(f"{len(state)} values for a body of {len(names)} inputs")
    most = None if count is None else whole_number(call.run.host(count))
    is_on = condition is None or bool(call.run.host(condition).reshape(-1)[0])
    values, rows = list(state), []
    iteration = 0
    while is_on and (most is None or iteration < most):
        if iteration >= call.run.most_iterations:
            raise call.error(
                f"more than {call.run.most_iterations} iterations",
                "load(..., most_iterations=n) allows n",
            )
        given = [np.array(iteration, dtype=np.int64), np.array(True), *values]
        results = run_graph(body, dict(zip(names, given, strict=True)), call.run, call.scope)
        is_on = bool(call.run.host(results[0]).reshape(-1)[0])
        values = results[1 : len(state) + 1]
        rows.append(results[len(state) + 1 :])
        iteration += 1
    kept = len(body.outputs) - 1 - len(state)
    return (*values, *[_stacked(call, [row[n] for row in rows], body, n) for n in range(kept)])


def _stacked(call: Any, values: list[Any], body: Any, number: int, axis: int = 0) -> Any:
    """Values of all iterations along a new axis."""
    if not values:
        from weft.onnx.elements import dtype_of

        said = body.outputs[len(body.outputs) - (_scanned(body) - number)]
        shape = [size if isinstance(size, int) else 0 for size in said.shape or ()]
        return Tensor.zeros(0, *shape, dtype=dtype_of(said.element or 1), device=call.device)
    if all(is_host(value) and isinstance(value, np.ndarray) for value in values):
        return np.stack(values, axis)
    tensors = [plain(call.run.tensor(value)) for value in values]
    return tensors[0].stack(*tensors[1:], dim=axis)


def _scanned(body: Any) -> int:
    return len(body.outputs) - (len(body.inputs) - 1)


@op("Scan", since=9, raw=True)
def scan(call: Any, *values: Any) -> Any:
    body = call.get("body")
    count = call.get("num_scan_inputs")
    state, inputs = list(values[: len(values) - count]), values[len(values) - count :]
    axes = call.get("scan_input_axes") or [0] * count
    backward = call.get("scan_input_directions") or [0] * count
    return _scan(call, body, state, list(inputs), axes, backward)


def _scan(
    call: Any, body: Any, state: list[Any], inputs: list[Any], axes: Any, backward: Any
) -> tuple[Any, ...]:
    names = [each.name for each in body.inputs]
    rows_of = [plain(call.run.tensor(value)).movedim(axis, 0) for value, axis in
               zip(inputs, axes, strict=True)]  # fmt: skip
    length = known(rows_of[0].shape[0])
    if length > _MOST_UNROLLED:
        scanned = _try_scanned(call, body, state, rows_of, backward)
        if scanned is not None:
            return scanned
    rows = []
    for time in range(length):
        items = [
            each[length - 1 - time if is_back else time]
            for each, is_back in zip(rows_of, backward, strict=True)
        ]
        given = dict(zip(names, [*state, *items], strict=True))
        results = run_graph(body, given, call.run, call.scope)
        state = results[: len(state)]
        rows.append(results[len(state) :])
    kept = len(body.outputs) - len(state)
    out_axes = call.get("scan_output_axes") or [0] * kept
    out_back = call.get("scan_output_directions") or [0] * kept
    outputs = []
    for number in range(kept):
        column = [row[number] for row in rows]
        column = column[::-1] if out_back[number] else column
        outputs.append(_stacked(call, column, body, number, out_axes[number]))
    return (*state, *outputs)


def _try_scanned(
    call: Any, body: Any, state: list[Any], rows_of: list[Any], backward: Any
) -> tuple[Any, ...] | None:
    """A scan whose body is traced once; None where a value decides, or shapes change."""
    names = [each.name for each in body.inputs]
    kept = len(body.outputs) - len(state)
    count = len(state)
    before = call.run.is_traced
    call.run.is_traced = True  # inside, a value is not known yet

    def one(carry: Any, items: Any) -> Any:
        given = dict(zip(names, [*carry, *items], strict=True))
        results = [call.run.tensor(each) for each in run_graph(body, given, call.run, call.scope)]
        return tuple(results[:count]), tuple(results[count:])

    first = tuple(plain(call.run.tensor(value)) for value in state)
    flipped = [x.flip(0) if is_back else x for x, is_back in zip(rows_of, backward, strict=True)]
    try:
        final, columns = trace_scan(one, first, tuple(flipped))
    except (NeedsValue, UsageError):
        return None
    finally:
        call.run.is_traced = before
    axes = call.get("scan_output_axes") or [0] * kept
    flips = call.get("scan_output_directions") or [0] * kept
    outputs = [
        (column.flip(0) if is_back else column).movedim(0, axis)
        for column, axis, is_back in zip(columns, axes, flips, strict=True)
    ]
    return (*final, *outputs)


@op("Scan", since=8, raw=True)
def scan_of_batches(call: Any, lengths: Any, *values: Any) -> Any:
    """Opset 8: every value has a batch first, and each sample is scanned by itself."""
    body, count = call.get("body"), call.get("num_scan_inputs")
    tensors = [plain(call.run.tensor(value)) for value in values]
    batch = tensors[0].shape[0]
    backward = call.get("directions") or [0] * count
    ends = None if lengths is None else [int(n) for n in call.run.host(lengths)]
    results = []
    for number in range(batch):
        own = [each[number] for each in tensors]
        state, inputs = own[: len(own) - count], own[len(own) - count :]
        if ends is not None:
            inputs = [each[: ends[number]] for each in inputs]
        results.append(_scan(call, body, state, inputs, [0] * count, backward))
    stacked = []
    for column in zip(*results, strict=True):
        each = [plain(call.run.tensor(value)) for value in column]
        stacked.append(each[0].stack(*each[1:]))
    return tuple(stacked)

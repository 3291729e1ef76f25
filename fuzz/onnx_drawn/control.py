"""Branches, loops, sequences, strings and what chooses by values."""

from __future__ import annotations

import numpy as np

from fuzz.onnx_drawn.pool import Pool, draws


@draws("If", "Loop", "Scan", first=11)
def _control(pool: Pool, name: str) -> None:
    from onnx import TensorProto, helper

    value = pool.floats(least=1)
    shape, kind = list(pool.values[value].shape), TensorProto.FLOAT
    a, b, c, d = (pool.fresh("s") for _ in range(4))
    described = helper.make_tensor_value_info
    if name == "If":
        left = helper.make_graph(
            [helper.make_node("Neg", [value], [a])], "then", [], [described(a, kind, None)]
        )
        right = helper.make_graph(
            [helper.make_node("Abs", [value], [b])], "else", [], [described(b, kind, None)]
        )
        flag = pool.given(np.array(pool.rng.random() < 0.5))
        pool.node("If", [flag], then_branch=left, else_branch=right)
        return
    if name == "Loop":
        more, flag = pool.fresh("s"), pool.fresh("s")
        nodes = [
            helper.make_node("Identity", [flag], [more]),
            helper.make_node("Sin", [a], [b]),
            helper.make_node("Add", [b, value], [c]),
            helper.make_node("Identity", [c], [d]),
        ]
        body = helper.make_graph(
            nodes,
            "body",
            [
                described(pool.fresh("s"), TensorProto.INT64, []),
                described(flag, TensorProto.BOOL, []),
                described(a, kind, None),
            ],
            [described(more, TensorProto.BOOL, []), described(c, kind, None),
             described(d, kind, None)],
        )  # fmt: skip
        count = pool.given(np.array(pool.rng.randint(1, 3), np.int64))
        pool.node("Loop", [count, "", value], 2, body=body)
        return
    row = shape[1:]
    nodes = [
        helper.make_node("Add", [a, b], [c]),
        helper.make_node("Tanh", [c], [d]),
    ]
    body = helper.make_graph(
        nodes, "body", [described(a, kind, row), described(b, kind, row)],
        [described(c, kind, row), described(d, kind, row)],
    )  # fmt: skip
    start = pool.given(np.zeros(row, np.float32))
    backward = {key: [pool.rng.randint(0, 1)] for key in (
        "scan_input_directions", "scan_output_directions")}  # fmt: skip
    pool.node("Scan", [start, value], 2, body=body, num_scan_inputs=1, **backward)


@draws("Sequence", first=11)
def _sequences(pool: Pool, name: str) -> None:
    left, right = pool.floats(rank=2), pool.floats(rank=2)
    made = pool.node("SequenceConstruct", [left, right, left])[0]
    at = pool.weight(np.array(pool.rng.randint(-3, 2), np.int64))
    kind = pool.rng.randrange(4)
    if kind == 0:
        pool.node("SequenceAt", [made, at])
    elif kind == 1:
        pool.node("SequenceErase", [made, at])
    elif kind == 2:
        pool.node("SequenceInsert", [made, right, at])
    else:
        pool.node("SequenceLength", [made])
        pool.node("ConcatFromSequence", [pool.node("SequenceConstruct", [left, left])[0]], axis=0)


@draws("Dropout")
def _dropout(pool: Pool, name: str) -> None:
    pool.node(name, [pool.floats()], 2 if pool.opset >= 12 and pool.rng.random() < 0.5 else 1)


@draws("NonMaxSuppression", first=10)
def _suppression(pool: Pool, name: str) -> None:
    corners = np.sort(pool.numbers.random((1, 6, 2, 2)), axis=2).reshape(1, 6, 4)
    boxes = pool.given(corners.astype(np.float32))
    scores = pool.given(pool.numbers.random((1, 2, 6)).astype(np.float32))
    limits = [pool.ints([2]), pool.weight(np.float32(0.3)), pool.weight(np.float32(0.2))]
    pool.node(name, [boxes, scores, *limits], center_point_box=pool.rng.choice((None, 0)))


@draws("Strings", first=10)
def _strings(pool: Pool, name: str) -> None:
    words = pool.input(np.array(["ab", "", "é"], dtype=object))
    permuted = pool.node("Gather", [words, pool.ints([1, 0, 2])], axis=0)[0]
    pool.node("Concat", [words, words], axis=0)
    if pool.opset >= 19:
        pool.node("Equal", [words, permuted])

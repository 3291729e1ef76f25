"""Random graphs of every kind of op, against central differences along random directions."""

import random

import numpy as np
import pytest

from tests.unit.gradient.numeric import STEP, derive, memory, move, on, reduced
from weft.gradient.reverse import gradients
from weft.ir.build import call, index_of, param, store, where
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.reference.tensor import evaluate

SHAPE = (2, 3)
CASES = 200


def tame(node: UOp) -> UOp:
    """A value in (-1, 1), so that nothing overflows after a few steps."""
    return on(Op.TANH, node * 0.7)


def positive(node: UOp) -> UOp:
    return node * node + 0.5


def unary(generator: random.Random, x: UOp) -> UOp:
    op = generator.choice([Op.NEG, Op.EXP, Op.EXP2, Op.SIN, Op.COS, Op.TANH, Op.ERF])
    return on(op, tame(x))


def of_positive(generator: random.Random, x: UOp) -> UOp:
    return on(generator.choice([Op.SQRT, Op.LOG, Op.LOG2]), positive(x))


def binary(generator: random.Random, x: UOp, y: UOp) -> UOp:
    op = generator.choice([Op.ADD, Op.MUL, Op.MAX, Op.MIN, Op.DIV, Op.POW])
    if op in (Op.DIV, Op.POW):
        x, y = (x, positive(y)) if op == Op.DIV else (positive(x), tame(y))
    return on(op, x, y)


def expanded_again(generator: random.Random, x: UOp) -> UOp:
    """A reduction over some axes, expanded again."""
    op = generator.choice([Op.ADD, Op.MUL, Op.MAX, Op.MIN])
    axes = generator.choice([(0,), (1,), (0, 1)])
    return move(Op.EXPAND, reduced(op, tame(x), *axes), SHAPE)


def moved(generator: random.Random, x: UOp) -> UOp:
    """A movement away and back into the shape."""
    kind = generator.randrange(4)
    if kind == 0:
        return move(Op.RESHAPE, move(Op.PERMUTE, x, (1, 0)), SHAPE)
    if kind == 1:
        return move(Op.SHRINK, move(Op.PAD, x, ((1, 0), (0, 2))), ((0, 2), (1, 4)))
    if kind == 2:
        return move(Op.FLIP, x, generator.choice([(0,), (1,), (0, 1)]))
    row = move(Op.SHRINK, x, ((1, 2), (0, 3)))
    return move(Op.EXPAND, row, SHAPE)


def gathered(generator: random.Random, x: UOp) -> UOp:
    rows = make(Op.IOTA, dtypes.int32, (), (2,)) * generator.randrange(2)
    if generator.random() < 0.5:
        return index_of(x, [rows], rows < 1)
    columns = make(Op.IOTA, dtypes.int32, (), (3,)) * generator.randrange(1, 3) % 3
    transposed = index_of(move(Op.PERMUTE, x, (1, 0)), [columns])
    return move(Op.PERMUTE, transposed, (1, 0))


def written(generator: random.Random, x: UOp, y: UOp, number: int) -> UOp:
    """A buffer filled with one value and partly overwritten with another."""
    base = memory(number, *SHAPE)
    first = make(Op.AFTER, base.dtype, (base, store(base, x)))
    box = generator.choice([((0, 1), (0, 3)), ((0, 2), (1, 3)), ((1, 2), (2, 3))])
    value = move(Op.SHRINK, y, box)
    return make(Op.AFTER, base.dtype, (first, store(move(Op.SHRINK, first, box), value)))


def called(generator: random.Random, x: UOp, y: UOp) -> UOp:
    p, q = param(0, dtypes.float64, SHAPE), param(1, dtypes.float64, SHAPE)
    body = binary(generator, unary(generator, p), q)
    return call(body, x, y)


def random_graph(generator: random.Random, inputs: list[UOp]) -> UOp:
    nodes = list(inputs)
    for step in range(generator.randint(3, 8)):
        x, y = generator.choice(nodes), generator.choice(nodes)
        options = [
            lambda x=x: unary(generator, x),
            lambda x=x: of_positive(generator, x),
            lambda x=x, y=y: binary(generator, x, y),
            lambda x=x, y=y: where(x < y, tame(x), y * 0.5),
            lambda x=x: x * inputs[-1] + const(dtypes.float64, 0.25),
            lambda x=x: expanded_again(generator, x),
            lambda x=x: moved(generator, x),
            lambda x=x: gathered(generator, x),
            lambda x=x, y=y, step=step: written(generator, x, y, 10 + step),
            lambda x=x, y=y: called(generator, x, y),
        ]
        shaped = [node for node in (x, y) if node.shape == SHAPE]
        choice = generator.choice(options) if len(shaped) == 2 else options[2]
        made = choice()
        nodes.append(made if made.shape == SHAPE else made + inputs[0])
    return nodes[-1] * nodes[-2] + inputs[0]


@pytest.mark.parametrize("case", range(CASES))
def test_random_graphs(case: int):
    generator = random.Random(case)
    values = np.random.default_rng(case)
    inputs = [memory(0, *SHAPE), memory(1, *SHAPE), memory(2)]
    output = random_graph(generator, inputs)
    arrays = {0: values.uniform(-1, 1, SHAPE), 1: values.uniform(-1, 1, SHAPE)}
    arrays |= {2: values.uniform(-1, 1, ()), **{10 + n: np.zeros(SHAPE) for n in range(8)}}
    targets = [node for node in inputs if node.arg[0] == 0 or generator.random() < 0.5]
    targets = [node for node in targets if is_used(output, node)]
    results = evaluate(derive(output, targets), arrays)
    for _ in range(2):
        way = {node.arg[0]: values.uniform(-1, 1, node.shape) for node in targets}
        ends = []
        for step in (STEP, -STEP):
            there = {**arrays, **{n: arrays[n] + step * way[n] for n in way}}
            ends.append(evaluate(output, there).sum())
        slope = sum((result * way[n]).sum() for n, result in zip(way, results, strict=True))
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=1e-5, abs=1e-5)


def is_used(output: UOp, node: UOp) -> bool:
    """Whether the random graph came to use an input, by a way that has a slope."""
    return gradients(output, [node]) != [None]

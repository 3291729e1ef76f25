"""Random tensor programs through the scheduler: every kernel it makes, run by the interpreter.

    python -m fuzz.schedules --count 2000 --seed 1

Programs mix elementwise ops, movement, reductions, scans, gathers and writes through views, over
small integers so that results are exact. The oracle evaluates the tensor graph itself. With
`--random`, decisions of the cost model are flipped at random: any legal choice must give the same
numbers. With `--machine`, each kernel is also made into a program for a machine, which is run
instead.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weft.codegen.generate import generate
from weft.ir.build import buffer, index_of, param, reduce_axes, scan_axis, sink, store
from weft.ir.dtypes import INDEX, SCALARS, VOID, dtypes
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp, const, make, sweep
from weft.ir.walk import substitute, topological
from weft.reference.memory import ElementMemory
from weft.reference.schedule import run_schedule
from weft.reference.tensor import evaluate
from weft.schedule.fuse import fuse_in_order
from weft.schedule.fuse.decisions import Decisions
from weft.schedule.fuse.uses import Use
from weft.schedule.schedule import make_schedule
from weft.target.compute import Simd, Simt
from weft.target.memory import Grid
from weft.target.target import Costs, Target

i32 = dtypes.int32
SHAPES = [(4,), (3, 4), (2, 3, 4), (1,), (6, 2), (12,), (2, 6), (1, 4), (3, 1), (5,)]
TARGET = Target(
    *("FUZZ", "NONE", "any", ELEMENTWISE, frozenset(), frozenset()), compute=Simd(units=2)
)
_DTYPES = frozenset(d for d in SCALARS.values() if d.kind not in (VOID, INDEX))
_ANY = Target("FUZZ", "NONE", "any", ELEMENTWISE, _DTYPES, _DTYPES)
_GROUPS = replace(_ANY, compute=Simt(), grid=Grid(group_threads=8))


def _with_lanes(target: Target, bits: int) -> Target:
    *near, memory = target.memories
    return replace(target, memories=(*near, replace(memory, access_bits=bits)))


MACHINES = {
    "plain": _ANY,
    "lanes": replace(
        _with_lanes(_ANY, 128), compute=Simd(units=2, vector_bits=128), costs=Costs(launch=0.0)
    ),
    "groups": _GROUPS,
    "groups-and-lanes": _with_lanes(_GROUPS, 64),
}


class Program:
    """A random SINK over BUFFERs, and the arrays behind them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.arrays: dict[int, np.ndarray] = {}
        self.versions: dict[int, UOp] = {}
        self.pool: list[UOp] = []
        for _ in range(self.random.randint(1, 3)):
            self.pool.append(self.new_buffer(self.random.choice(SHAPES), fill=True))
        for _ in range(self.random.randint(2, 14)):
            self.step()
        self.sink = self.finish()

    def new_buffer(self, shape: tuple[int, ...], fill: bool) -> UOp:
        number = len(self.arrays)
        values = [self.random.randint(-4, 9) for _ in range(int(np.prod(shape)))]
        self.arrays[number] = (
            np.array(values, np.int32).reshape(shape) if fill else np.zeros(shape, np.int32)
        )
        node = buffer(number, i32, shape, "CPU")
        if fill:
            self.versions[number] = node
        return node

    def pick(self) -> UOp:
        return self.random.choice(self.pool)

    def step(self) -> None:
        kind = self.random.random()
        if kind < 0.35:
            self.pool.append(self.elementwise())
        elif kind < 0.6:
            self.pool.append(self.movement(self.pick()))
        elif kind < 0.78:
            self.pool.append(self.reduction(self.pick()))
        elif kind < 0.86:
            self.pool.append(self.gather(self.pick()))
        else:
            self.write()

    def like(self, shape: tuple[int, ...]) -> UOp:
        """A value of a shape: one that is there, one made to fit, or a scalar."""
        fitting = [node for node in self.pool if shape_of(node) == shape]
        if fitting and self.random.random() < 0.8:
            return self.random.choice(fitting)
        for node in self.random.sample(self.pool, len(self.pool)):
            own = shape_of(node)
            if len(own) == len(shape) and all(
                a in (1, b) for a, b in zip(own, shape, strict=True)
            ):
                return node if own == shape else make(Op.EXPAND, i32, (node,), shape)
        return const(i32, self.random.randint(-3, 5))

    def elementwise(self) -> UOp:
        x = self.pick()
        y = self.like(shape_of(x))
        choice = self.random.randrange(8)
        if choice == 0:
            return (x < y).where(x, self.like(shape_of(x)))
        if choice == 1:
            return -x
        op = (Op.ADD, Op.MUL, Op.MAX, Op.MIN, Op.XOR, Op.FLOORMOD)[choice - 2]
        return make(op, i32, (x, y))

    def movement(self, x: UOp) -> UOp:
        shape = shape_of(x)
        choice = self.random.randrange(6)
        if choice == 0:
            same = [s for s in SHAPES if np.prod(s) == np.prod(shape)]
            return make(Op.RESHAPE, i32, (x,), self.random.choice([*same, shape, (*shape, 1)]))
        if choice == 1:
            order = tuple(self.random.sample(range(len(shape)), len(shape)))
            return make(Op.PERMUTE, i32, (x,), order)
        if choice == 2:
            axes = tuple(a for a in range(len(shape)) if self.random.random() < 0.5)
            return make(Op.FLIP, i32, (x,), axes)
        if choice == 3:
            return make(Op.SHRINK, i32, (x,), tuple(map(self.span, shape)))
        if choice == 4 and np.prod(shape) < 64:
            pads = tuple((self.random.randint(0, 2), self.random.randint(0, 2)) for _ in shape)
            return make(Op.PAD, i32, (x,), pads)
        wide = tuple(self.random.randint(2, 4) if s == 1 else s for s in shape)
        return make(Op.EXPAND, i32, (x,), wide)

    def span(self, size: int) -> tuple[int, int]:
        start = self.random.randint(0, size - 1)
        return start, self.random.randint(start + 1, size)

    def reduction(self, x: UOp) -> UOp:
        axes = [a for a in range(len(shape_of(x))) if self.random.random() < 0.5]
        op = self.random.choice((Op.ADD, Op.ADD, Op.MAX, Op.MIN))
        if self.random.random() < 0.4:
            return scan_axis(x, op, self.random.randrange(len(shape_of(x))))
        return reduce_axes(x, op, axes or [0])

    def gather(self, x: UOp) -> UOp:
        size = shape_of(x)[0]
        indices = self.like(shape_of(self.pick()))
        return index_of(x, [make(Op.FLOORMOD, i32, (indices, const(i32, size)))])

    def write(self) -> None:
        number = self.random.choice(sorted(self.versions))
        old = self.versions[number]
        view = old
        for _ in range(self.random.randint(0, 2)):
            choice = self.random.randrange(3)
            shape = shape_of(view)
            if choice == 0:
                view = make(Op.SHRINK, i32, (view,), tuple(map(self.span, shape)))
            elif choice == 1:
                order = tuple(self.random.sample(range(len(shape)), len(shape)))
                view = make(Op.PERMUTE, i32, (view,), order)
            else:
                view = make(Op.FLIP, i32, (view,), (self.random.randrange(len(shape)),))
        value = self.like(shape_of(view))
        new = make(Op.AFTER, i32, (old, store(view, value)))
        self.versions[number] = new
        self.pool.append(new)

    def finish(self) -> UOp:
        parts = [node for node in self.versions.values() if node.op == Op.AFTER]
        for node in self.random.sample(self.pool, min(len(self.pool), self.random.randint(1, 3))):
            if shape_of(node):
                parts.append(store(self.new_buffer(shape_of(node), fill=False), node))
        return sink(*parts)


class RandomDecisions(Decisions):
    """Values are materialized or not as a coin falls."""

    coin = random.Random(0)
    share = 0.4

    def wants_memory(self, node: UOp, uses: list[Use]) -> bool:
        super().wants_memory(node, uses)
        return self.coin.random() < self.share


def programs_of(kernels: UOp, machine: Target) -> UOp:
    """The calls of a schedule, with the program of each kernel instead of it."""
    calls = [
        make(Op.CALL, call.dtype, call.src, generate(call.arg, machine).instructions)
        for call in kernels.src
    ]
    return make(Op.LINEAR, kernels.dtype, tuple(calls))


def check(program: Program, machine: Target | None = None) -> str | None:
    """What is wrong with the schedule of a program, or None."""
    wanted = evaluate(program.sink, program.arrays)
    buffers = {n for n in topological(program.sink) if n.op == Op.BUFFER}
    slots = {node: param(node.arg[0], node.dtype, shape_of(node)) for node in buffers}
    schedule = make_schedule(substitute(program.sink, slots), TARGET)
    first = len(program.arrays)
    memories = [
        ElementMemory(i32, array.size, [int(v) for v in array.reshape(-1)], f"b{n}")
        for n, array in program.arrays.items()
    ]
    for number, memory in enumerate(schedule.temporaries, first):
        memories.append(
            ElementMemory(memory.dtype, largest_size(shape_of(memory)), None, f"t{number}")
        )
    kernels = schedule.kernels if machine is None else programs_of(schedule.kernels, machine)
    run_schedule(kernels, {}, {}, memories)
    for number, array in wanted.items():
        got = [memories[number].get(i) for i in range(array.size)]
        if got != [int(v) for v in array.reshape(-1)]:
            return f"buffer {number}: {got} instead of {array.reshape(-1).tolist()}"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--random", action="store_true", help="flip decisions at random")
    parser.add_argument("--share", type=float, default=0.4, help="of what --random keeps")
    parser.add_argument("--machine", choices=MACHINES, help="run programs for this machine")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    wrong = 0
    if options.random:
        fuse_in_order.Decisions = RandomDecisions
        RandomDecisions.share = options.share
    machine = MACHINES.get(options.machine)
    for number in range(options.count):
        program = Program(options.seed * 1_000_003 + number)
        RandomDecisions.coin.seed(number)
        try:
            problem = check(program, machine)
        except Exception as error:
            problem = f"{type(error).__name__}: {str(error)[:1500]}"
        if problem is not None:
            wrong += 1
            print(f"program {number}: {problem}")
        del program
        if number % 500 == 499:
            sweep()
    print(f"{options.count} programs, {wrong} differences, seed {options.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

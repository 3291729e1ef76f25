"""A program for each pass that gives it something to do, and what the pass changes.

`tests/golden/each_pass/PASS.txt` has the lines that differ between the text before the pass and
the text after it. Where a change is meant, write the files anew and look at what git says:

    python -m tests.golden.each_pass_programs
"""

import difflib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tests.golden.pass_programs import TARGET, Inputs, graph_of
from tests.unit.schedule.layout.test_place_parts import gradient_graph as parts_of_one_product
from tests.unit.schedule.reductions.test_exchange_sums import gradient_graph
from weft import function
from weft.codegen.context import CodegenContext
from weft.codegen.phases import CODEGEN
from weft.engine.resume import resume
from weft.ir.build import call, param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.inline import inline_body
from weft.ir.ops import Op
from weft.ir.ops import name as op_name
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.ir.views import memory_of
from weft.rewrite.phase import Pass, run_phase
from weft.schedule.phases import SCHEDULE
from weft.schedule.schedule import make_schedule
from weft.support.settings import Context
from weft.target.cpu import cpu_target
from weft.target.cuda import cuda_target
from weft.target.target import Target
from weft.tensor import Tensor

FOLDER = Path(__file__).parent / "each_pass"
F32, BF16, I32, I64 = dtypes.float32, dtypes.bfloat16, dtypes.int32, dtypes.int64
CORES = cpu_target("x86_64", ("avx2",), threads=8)
WIDE = cpu_target("x86_64", ("avx512f",))
GPU = cuda_target("sm_90a")
SCHEDULE_PASSES = {step.name for step in SCHEDULE.passes}
# A machine without integers of 64 bits.
NARROW = replace(TARGET, native_dtypes=TARGET.native_dtypes - {I64, dtypes.uint64})


class Program(NamedTuple):
    """A graph, made when it is needed, and the machine on which the pass does something."""

    graph: Callable[[], UOp]
    target: Target = TARGET


def of(build: Callable[[Inputs], Tensor], target: Target = TARGET) -> Program:
    return Program(lambda: graph_of(build), target)


@function
def both(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 3.0, x + 1.0


def equal_parts() -> UOp:
    """Two results that differ in the memory they read alone."""
    memory = [param(slot, F32, (8,)) for slot in range(4)]
    values = [(Tensor(each).sin() * 2.0).uop for each in memory[:2]]
    return sink(*[store(at, value) for at, value in zip(memory[2:], values, strict=True)])


def inline_call() -> UOp:
    x, out = param(0, F32, (8,)), param(1, F32, (8,))
    body = inline_body(param(0, F32, (8,)) * 2.0)
    return sink(store(out, call(body, x) + 1.0))


def convolution(x: Inputs) -> Tensor:
    return x(8, 64, 32, 32, dtype=BF16).conv2d(x(64, 64, 3, 3, dtype=BF16), padding=1)


def slope_of_weights(x: Inputs) -> Tensor:
    images, weights = x(8, 64, 32, 32, dtype=BF16), x(64, 64, 3, 3, dtype=BF16)
    slopes = x(8, 64, 30, 30, dtype=BF16)
    (found,) = images.conv2d(weights).gradient(weights, gradient=slopes)
    return found


def odd_product(x: Inputs) -> Tensor:
    return x(256, 1001, dtype=BF16) @ x(1001, 256, dtype=BF16)


TILES = of(lambda x: x(128, 64) @ x(64, 128), GPU)
ROWS = of(lambda x: x(64, 512).softmax(1), GPU)
PRODUCT = of(odd_product, GPU)
TWO_SUMS = of(lambda x: (lambda a: a.sum(1) * a.max(1))(x(8, 16)))

PROGRAMS: dict[str, Program] = {
    "lower-complex": of(lambda x: x(5, dtype=dtypes.complex64) * 2j),
    "outline": Program(equal_parts),
    "inline-calls": Program(inline_call),
    "open-calls": of(slope_of_weights, GPU),
    "normalize": of(lambda x: x(3, 8).softmax()),
    "trim-calls": of(lambda x: both(x(5))[0] + 1.0),
    "order-contractions": of(lambda x: x(40, 6) @ x(6, 80) @ x(80, 2)),
    "channels-last": of(convolution, GPU),
    "exchange-sums": Program(gradient_graph, WIDE),
    "align-factors": PRODUCT,
    "narrow-results": PRODUCT,
    "parallelize-scatters": of(
        lambda x: x(5, 3).scatter_add(0, x(4096, 3, dtype=I32), x(4096, 3)), GPU
    ),
    "split-reductions": of(lambda x: x(1 << 20).sum(), CORES),
    "block-scans": of(lambda x: x(1 << 20).cumsum(0), CORES),
    "store-scatters": of(lambda x: x(5).scatter_add(0, x(4, dtype=I32), x(4))),
    "place-parts": Program(parts_of_one_product, GPU),
    "fuse": of(lambda x: x(3, 8).softmax()),
    "split": of(lambda x: x(3, 8).softmax()),
    "plan": of(lambda x: (x(4, 6).relu().contiguous() @ x(6, 8)).relu()),
    "normalize-kernel": of(lambda x: (x(8, 4).T * 2.0).T.reshape(32)[::2]),
    "widen-reductions": of(lambda x: x(1 << 15).cumsum(0)),
    "merge-reductions": TWO_SUMS,
    "choose-opts": TWO_SUMS,
    "flatten-memory": of(lambda x: x(6, 8).T + 1.0),
    "fill-fragments": PRODUCT,
    "expand": of(lambda x: x(5, 8) * 2.0),
    "reduce-over-threads": ROWS,
    "lower-reductions": of(lambda x: x(3, 9).cumsum(1)),
    "bind-hardware": ROWS,
    "lower-index": of(lambda x: x(6, 8).T + 1.0),
    "emulate-small-floats": of(lambda x: x(6, dtype=BF16) * 2.0),
    "decompose": of(lambda x: x(6).sin()),
    "emulate-wide-integers": of(lambda x: x(6, dtype=I64) * 3, NARROW),
    "scalarize": of(lambda x: x(64) * 2.0, GPU),
    "linearize": of(lambda x: x(5, 8) * 2.0),
    "drop-barriers": TILES,
    "load-ahead": ROWS,
    "prefetch-tiles": TILES,
    "load-before-products": Program(parts_of_one_product, GPU),
    "pipeline": PRODUCT,
}


def text(name: str) -> str:
    """The lines that a pass changes, of the first kernel in which it changes any."""
    program = PROGRAMS[name]
    graph, target = program.graph(), program.target
    with Context(FUSE_PRODUCTS="always" if name == "exchange-sums" else ""):
        if name in SCHEDULE_PASSES:
            texts = [dump(graph), *(each.text for each in resume(graph, target, stop=name))]
            return changed(target, texts[-2], texts[-1])
        for kernel in dict.fromkeys(each.arg for each in make_schedule(graph, target).kernels.src):
            before, after = forms_around(name, kernel, target)
            form = listed if before.op == after.op == Op.LINEAR else dump
            if found := changed(target, form(before), form(after)):
                return found
    return ""


def forms_around(name: str, kernel: UOp, target: Target) -> tuple[UOp, UOp]:
    """A kernel before and after a pass of codegen."""
    forms = [kernel]

    def note(step: Pass, root: UOp) -> None:
        forms.append(root)

    run_phase(CODEGEN, kernel, CodegenContext(target), watch=note)
    position = [step.name for step in CODEGEN.passes].index(name)
    return forms[position], forms[position + 1]


def listed(program: UOp) -> str:
    """A list of instructions without numbers, so that what moves shows and nothing else."""
    lines = []
    for line in program.src:
        memory = memory_of(line.src[0]) if line.op in (Op.LOAD, Op.STORE, Op.INDEX) else line
        named = f" {memory.arg[0]}" if memory.op in (Op.PARAM, Op.MEMORY) else ""
        lines.append(f"{op_name(line.op)} {line.dtype.name}{named}")
    return "\n".join(lines)


def changed(target: Target, before: str, after: str) -> str:
    if before == after:
        return ""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=1
    )
    return "\n".join([target.name, *lines, ""])


def main() -> None:
    for name in PROGRAMS:
        (FOLDER / f"{name}.txt").write_text(text(name))
    print(f"wrote {len(PROGRAMS)} files to {FOLDER}")


if __name__ == "__main__":
    main()

"""A dozen small programs, and the text that each pass makes of them.

`tests/golden/passes/NAME.txt` has that text, one part for each pass that changed something. Where
a change is meant, write the files anew and look at what git says:

    python -m tests.golden.pass_programs
"""

from collections.abc import Callable
from pathlib import Path

from weft.engine.resume import resume
from weft.ir.build import param, sink, store, variable
from weft.ir.dtypes import DType, dtypes
from weft.ir.shapes import Shape
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.target.cpu import cpu_target
from weft.tensor import Tensor

FOLDER = Path(__file__).parent / "passes"
TARGET = cpu_target("x86_64", ("avx2",))
F32 = dtypes.float32


class Inputs:
    """Tensors over parameters, numbered as they are asked for."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *shape: int | UOp, dtype: DType = F32) -> Tensor:
        self.count += 1
        return Tensor(param(self.count - 1, dtype, shape))


def graph_of(build: Callable[[Inputs], Tensor]) -> UOp:
    """A SINK that stores what a program computes behind its inputs."""
    inputs = Inputs()
    result = build(inputs).uop
    shape: Shape = Tensor(result).shape
    return sink(store(param(inputs.count, result.dtype, shape), result))


def elementwise(x: Inputs) -> Tensor:
    return (x(5, 8) * 2.0 + x(8)).relu()


def transpose(x: Inputs) -> Tensor:
    return x(6, 8).T + 1.0


def sums(x: Inputs) -> Tensor:
    return x(4, 24).sum(axis=1)


def softmax(x: Inputs) -> Tensor:
    return x(3, 8).softmax()


def matmul(x: Inputs) -> Tensor:
    return (x(4, 6) @ x(6, 8) + x(8)).relu()


def layernorm(x: Inputs) -> Tensor:
    return x(2, 16).layernorm()


def conv(x: Inputs) -> Tensor:
    return x(1, 2, 5, 5).conv2d(x(2, 2, 3, 3))


def halves(x: Inputs) -> Tensor:
    return x(6, dtype=dtypes.float16).sum()


def argmax(x: Inputs) -> Tensor:
    return x(3, 7).argmax(axis=1)


def cumsum(x: Inputs) -> Tensor:
    return x(3, 9).cumsum(1)


def gather(x: Inputs) -> Tensor:
    return x(7, 4)[x(5, dtype=dtypes.int32)]


def symbolic(x: Inputs) -> Tensor:
    n = variable("n", 1, 9)
    return x(n, 4) * 3.0


PROGRAMS: dict[str, Callable[[Inputs], Tensor]] = {
    program.__name__: program
    for program in (
        *(elementwise, transpose, sums, softmax, matmul, layernorm),
        *(conv, halves, argmax, cumsum, gather, symbolic),
    )
}


def texts(name: str) -> str:
    """The graph of a program, then what each pass makes of it where that is something else."""
    graph = graph_of(PROGRAMS[name])
    last = {"": dump(graph)}
    parts = [f"== graph\n{last['']}\n"]
    for step, kernel, text in resume(graph, TARGET, stop="linearize"):
        if last.get(kernel) != text:
            parts.append(f"== {step}{' ' + kernel if kernel else ''}\n{text}\n")
        last[kernel] = text
    return "\n".join(parts)


def main() -> None:
    for name in PROGRAMS:
        (FOLDER / f"{name}.txt").write_text(texts(name))
    print(f"wrote {len(PROGRAMS)} files to {FOLDER}")


if __name__ == "__main__":
    main()

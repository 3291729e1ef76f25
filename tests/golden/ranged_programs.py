"""Small programs, and the text of the ranged graph that fusion makes of each.

`tests/golden/ranged/NAME.txt` has that text. Where a change is meant, write the files anew and
look at what git says:

    python -m tests.golden.ranged_programs
"""

from collections.abc import Callable
from pathlib import Path

from tests.golden.pass_programs import TARGET, Inputs
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.text import dump
from weft.ir.uop import UOp, make
from weft.schedule.schedule import make_schedule
from weft.tensor import Tensor
from weft.tensor.trace.function import function

FOLDER = Path(__file__).parent / "ranged"


def softmax(x: Inputs) -> list[Tensor]:
    return [x(3, 8).softmax()]


def layernorm(x: Inputs) -> list[Tensor]:
    return [x(2, 16).layernorm()]


def attention(x: Inputs) -> list[Tensor]:
    q, k, v = x(2, 8, 4), x(2, 8, 4), x(2, 8, 4)
    return [((q @ k.transpose(-1, -2)) * 0.5).softmax() @ v]


def training_step(x: Inputs) -> list[Tensor]:
    """Two layers, a loss, and the weights one step on."""
    rows, wanted = x(32, 16), x(32, 4)
    weights = [x(16, 24), x(24, 4)]
    loss = (((rows @ weights[0]).relu() @ weights[1] - wanted) ** 2).mean()
    gradients = loss.gradient(*weights)
    return [loss, *(w - 0.1 * g for w, g in zip(weights, gradients, strict=True))]


def scan(x: Inputs) -> list[Tensor]:
    return [x(3, 9).cumsum(1) * 2.0]


def fused_outputs(x: Inputs) -> list[Tensor]:
    """Two results of one shape that read the same memory."""
    a = x(6, 8)
    return [a * 2.0, (a + 1.0).relu()]


def embedding_gradient(x: Inputs) -> list[Tensor]:
    table, tokens, weights = x(10, 4), x(6, dtype=dtypes.int32), x(6, 4)
    return list((table[tokens] * weights).sum().gradient(table))


@function
def scaled(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2.0 + y, x - y


def called(x: Inputs) -> list[Tensor]:
    first, second = scaled(x(5) + 1.0, x(5))
    return [first, second * first]


PROGRAMS: dict[str, Callable[[Inputs], list[Tensor]]] = {
    program.__name__: program
    for program in (
        *(softmax, layernorm, attention, training_step, scan, fused_outputs),
        *(embedding_gradient, called),
    )
}


def results_graph(name: str) -> UOp:
    """A SINK that stores the results of a program behind its inputs."""
    inputs = Inputs()
    nodes = [result.uop for result in PROGRAMS[name](inputs)]
    return sink(
        *[
            store(param(inputs.count + number, node.dtype, Tensor(node).shape), node)
            for number, node in enumerate(nodes)
        ]
    )


def slice_graph() -> UOp:
    """Memory that is read, written in part, and read again."""
    x, before, after = (param(slot, dtypes.float32, (10,)) for slot in range(3))
    part = make(Op.SHRINK, x.dtype, (x,), ((2, 6),))
    written = make(Op.AFTER, x.dtype, (x, store(part, part + part)))
    return sink(store(before, x + x), written, store(after, written * written))


def graph_of(name: str) -> UOp:
    return slice_graph() if name == "slice_assignment" else results_graph(name)


def ranged_graph(graph: UOp) -> UOp:
    """What fusion makes of a graph."""
    found: list[UOp] = []

    def watch(step, root: UOp) -> None:
        if step.name == "fuse":
            found.append(root)

    make_schedule(graph, TARGET, watch)
    return found[0]


NAMES = (*PROGRAMS, "slice_assignment")


def main() -> None:
    for name in NAMES:
        (FOLDER / f"{name}.txt").write_text(dump(ranged_graph(graph_of(name))) + "\n")
    print(f"wrote {len(NAMES)} files to {FOLDER}")


if __name__ == "__main__":
    main()

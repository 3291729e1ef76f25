"""Every kernel of the op suite becomes PTX for a GPU that need not be there; none is run.

Where `ptxas` of NVIDIA is found (`pip install nvidia-cuda-nvcc`), it assembles all of them;
without it one row in twenty-four is compiled, which takes seconds instead of minutes.
"""

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.end_to_end.op_table import FAMILIES, LOOPS
from tests.end_to_end.test_ops import cases, gradients, outputs
from weft.codegen.generate import generate
from weft.ir.build import param, sink, store
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import substitute, topological
from weft.render.llvm.renderer import render
from weft.runtime.llvm.compiler import compile_ptx
from weft.schedule.schedule import make_schedule
from weft.support.settings import Context
from weft.target.cuda import cuda_target
from weft.target.target import Target
from weft.tensor import Tensor

TARGET = cuda_target("sm_90a")
ONE_IN = 24
# Arithmetic on two numbers in one register, of which assemblers are known to make wrong code.
PACKED = re.compile(r"\.(?:s16|u16|f16|bf16|f32)x2\b")


def kernels_of(results: list[Tensor], target: Target) -> list[UOp]:
    """The kernels of a graph, for a GPU."""
    nodes = topological(*(each.uop for each in results))
    memory = [node for node in nodes if node.op == Op.BUFFER]
    changed: dict[UOp, UOp] = {
        node: param(slot, node.dtype, shape_of(node)) for slot, node in enumerate(memory)
    }
    changed.update({node: node.src[0] for node in nodes if node.op == Op.BIND})
    stores = [
        store(param(slot, each.dtype, each.shape), substitute(each.uop, changed))
        for slot, each in enumerate(results, len(memory))
    ]
    return [call.arg for call in make_schedule(sink(*stores), target).kernels.src]


def kernels_of_family(family: str, target: Target, one_in: int = 1) -> dict[UOp, str]:
    """Each kernel of the rows of a family once, with the case it is from."""
    found: dict[UOp, str] = {}
    with Context(DEVICE="CPU", SPEC=False):  # checked where these graphs are run
        for row in FAMILIES[family][::one_in]:
            for case in cases(row):
                graphs = [outputs(case, {})]
                if row.has_gradient and case.dtype == "float32" and case.shapes is row.shapes[0]:
                    graphs.append(gradients(case, {}))
                for results in graphs:
                    for kernel in kernels_of(results, target):
                        found.setdefault(kernel, str(case))
    return found


def ptxas() -> str | None:
    """NVIDIA's assembler: that of the wheel, or of the system."""
    spec = find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        found = sorted(Path(folder).glob("*/bin/ptxas"))
        if found:
            return str(found[0])
    return shutil.which("ptxas")


# The families that every run compiles; the others are long.
QUICK = ("binary", "reductions", "indexing")


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.long)
        for name in FAMILIES
        if name not in LOOPS
    ],
)
def test_kernels_become_ptx(family: str, tmp_path: Path):
    assembler = ptxas()
    problems: list[str] = []
    one_in = 1 if assembler is not None else ONE_IN
    for kernel, case in kernels_of_family(family, TARGET, one_in).items():
        text = compile_ptx(render(generate(kernel, TARGET), TARGET), TARGET)
        assert ".visible .entry" in text, case
        packed = PACKED.search(text)
        assert packed is None, f"{case}: {packed}"
        if assembler is not None:
            problems += refused(assembler, text, case, tmp_path)
    assert not problems, "\n".join(problems[:20])


def refused(assembler: str, text: str, case: str, folder: Path) -> list[str]:
    """What the assembler says against a program."""
    source = folder / "kernel.ptx"
    source.write_text(text)
    command = [assembler, "-arch=sm_90a", "-O3", str(source), "-o", str(folder / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"{case}: {done.stderr.strip()[:500]}"]

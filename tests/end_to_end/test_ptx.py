"""Every kernel of the op suite becomes PTX for a GPU that need not be there; none is run.

Where `ptxas` of NVIDIA is found (`pip install nvidia-cuda-nvcc`), it assembles all of them, and
none may spill registers; without it one row in twenty-four is compiled, which takes seconds
instead of minutes. Older and younger architectures get a sample, or all where that is asked for.
"""

import os
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
OTHERS = ("sm_80", "sm_100")
ONE_IN = 24
# Of the long samples on other architectures; all rows where WEFT_ALL_PTX is set.
OTHERS_IN = 1 if os.environ.get("WEFT_ALL_PTX") else 8
# Arithmetic on two numbers in one register, of which assemblers are known to make wrong code.
PACKED = re.compile(r"^\s*(?!cvt)[\w.]*\.(?:s16|u16|f16|bf16|f32)x2\b.*", re.MULTILINE)
SPILLS = re.compile(r"([1-9]\d*) bytes spill stores")


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
    verify_family(family, TARGET, 1 if ptxas() is not None else ONE_IN, tmp_path)


@pytest.mark.parametrize("arch", OTHERS)
@pytest.mark.parametrize(
    ("family", "one_in"),
    [
        *((name, ONE_IN) for name in QUICK),
        *(pytest.param(n, OTHERS_IN, marks=pytest.mark.long) for n in FAMILIES if n not in LOOPS),
    ],
)
def test_other_architectures(family: str, one_in: int, arch: str, tmp_path: Path):
    verify_family(family, cuda_target(arch), one_in, tmp_path)


def verify_family(family: str, target: Target, one_in: int, folder: Path) -> None:
    assembler = ptxas()
    problems: list[str] = []
    for kernel, case in kernels_of_family(family, target, one_in).items():
        text = compile_ptx(render(generate(kernel, target), target), target)
        assert ".visible .entry" in text, case
        packed = PACKED.search(text)
        assert packed is None, f"{case}: {packed}"
        if assembler is not None:
            problems += refused(assembler, text, case, folder, target.arch)
    assert not problems, "\n".join(problems[:20])


def refused(assembler: str, text: str, case: str, folder: Path, arch: str) -> list[str]:
    """What the assembler says against a program, and registers that it has no room for."""
    source = folder / "kernel.ptx"
    source.write_text(text)
    options = [f"-arch={arch}", "-O3", "-v", str(source), "-o", str(folder / "kernel.cubin")]
    done = subprocess.run([assembler, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        return [f"{case}: {done.stderr.strip()[:500]}"]
    spilled = SPILLS.search(done.stderr)
    return [f"{case}: {spilled[0]}"] if spilled else []

"""The reference pages of phases and of devices, from the lists in the code. Opens no device."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator

from table_page import anchor, code, head, markdown_table, summary, wrapped

from weft.codegen.phases import CODEGEN
from weft.engine import devices
from weft.engine.devices import KINDS
from weft.ir.ops import COMPLEX_OPS, ELEMENTWISE, INFO, name
from weft.rewrite.phase import Pass, Phase
from weft.schedule.phases import SCHEDULE, SHARD
from weft.target.c import c_target
from weft.target.compute import Simd
from weft.target.cpu import LEVELS, cpu_target
from weft.target.cuda import cuda_target
from weft.target.opencl import opencl_target
from weft.target.target import Target

# phases.md

PHASES = (
    ("weft/schedule/phases.py", SHARD),
    ("weft/schedule/phases.py", SCHEDULE),
    ("weft/codegen/phases.py", CODEGEN),
)


def phases_page() -> Iterator[str]:
    yield from head("Phases", " and ".join(dict(PHASES)))
    yield from wrapped("""
        Every pass between a tensor graph and a program, in the order in which they run. `shard`
        runs where memory is on several devices, and makes a graph for each; `schedule` runs once
        for a graph and makes kernels; `codegen` runs once for each kernel and makes a program. A
        pass that needs an op is skipped where the graph has none. Under `SPEC=1` the graph is
        checked against the spec of the phase before and after it, and against that of a pass
        behind the pass.
    """)
    for file, phase in PHASES:
        yield ""
        yield f"## {phase.name.capitalize()}"
        yield ""
        yield f"[{file}](../../{file}) {phase_text(phase)}"
        yield ""
        heads = ["pass", "because", "needs", "checked"]
        yield from markdown_table(heads, map(pass_row, phase.passes))


def phase_text(phase: Phase) -> str:
    takes, gives = (spec.scope if spec else "graph" for spec in (phase.takes, phase.gives))
    return f"takes a {takes} and gives a {gives}."


def pass_row(step: Pass) -> tuple[str, ...]:
    file = step.run.__module__.replace(".", "/") + ".py"
    return (
        f"{anchor(step.name)}[{step.name}](../../{file})",
        step.because,
        ", ".join(code(name(op)) for op in sorted(step.needs)),
        f"a {step.gives.scope}" if step.gives else "",
    )


# devices.md


def devices_page() -> Iterator[str]:
    yield from head("Devices", "weft/engine/devices.py and weft/target/")
    yield from wrapped("""
        A device is opened when it is first asked for. A tensor is made on the device that is
        named, else on that of the setting `DEVICE`, else on `CPU`; `to` copies it to another. A
        number tells several of a kind apart: `OPENCL:1`.
    """)
    yield from DEVICES_EXAMPLE.splitlines()
    yield ""
    heads = ["device", "what it is", "renderer", "runtime"]
    yield from markdown_table(heads, (device_row(name, kind.open) for name, kind in KINDS.items()))
    yield ""
    yield "## Targets"
    yield ""
    yield from wrapped("""
        A target is what a code generator knows of a machine, as data, so code for it can be made
        and read on any machine. These are the families, each with its defaults. Ops that a target
        lacks are written with those that it has, by the pass `decompose`. Dtypes that it only
        stores are computed in a wider one.
    """)
    yield ""
    heads = ["target", "from", "vector", "group", "computes in", "lacks"]
    yield from markdown_table(heads, map(target_row, targets()))
    yield ""
    yield "## The parts of a target"
    yield ""
    yield from wrapped("""
        Heuristics read the numbers of a target and hold none of a machine. A unit is a core of a
        CPU or a multiprocessor of a GPU; memory and costs are those of one unit, peaks those of
        the whole machine. The numbers of CUDA are those of the largest GPU of an architecture,
        from its data sheet; those of a CPU are asked for by the runtime, and measured by `python
        -m bench machine`.
    """)
    yield ""
    heads = ["target", "units", "registers", "caches", "local", "matrix units", "copies"]
    yield from markdown_table(heads, map(parts_row, targets()))


DEVICES_EXAMPLE = """
```python
from weft import Tensor

x = Tensor([1.0, 2.0], device="PYTHON")
print(x.to("CPU") * 2)
```
<!-- output -->
```text
<Tensor (2,) float32 CPU lazy>
```
"""


def device_row(kind: str, opens: Callable[..., object]) -> tuple[str, ...]:
    found = imports_of(opens)
    if "_render_llvm" in opens.__code__.co_names:  # which imports its renderer when it is called
        found += imports_of(devices._render_llvm)
    runtime = next(
        module
        for module in found
        if module.startswith("weft.runtime.") and module.endswith(".device")
    )
    renderer = next((module for module in found if module.startswith("weft.render.")), "")
    return (
        anchor(kind) + code(kind),
        summary(importlib.import_module(runtime)),
        file_link(renderer) if renderer else "none",
        file_link(runtime),
    )


def imports_of(function: Callable[..., object]) -> list[str]:
    """The modules that a function, and those of its module that it names, import when they run."""
    names = inspect.getclosurevars(function).globals.values()
    helpers = [
        each
        for each in names
        if inspect.isfunction(each) and each.__module__ == function.__module__
    ]
    return [
        node.module
        for each in (function, *helpers)
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(each))))
        if isinstance(node, ast.ImportFrom) and node.module
    ]


def file_link(module: str) -> str:
    path = module.replace(".", "/") + ".py"
    return f"[{path.removeprefix('weft/')}](../../{path})"


def targets() -> list[Target]:
    cpus = [
        cpu_target(arch, (feature,) if feature else ())
        for arch, levels in LEVELS.items()
        for feature in levels
    ]
    return [
        *cpus,
        c_target(),
        opencl_target(),
        *(cuda_target(arch) for arch in ("sm_80", "sm_90a", "sm_100a")),
    ]


def target_row(target: Target) -> tuple[str, ...]:
    files = {"CPU": "cpu", "C": "c", "OPENCL": "opencl", "CUDA": "cuda"}
    lacking = [
        row.name for row in INFO if row.number in ELEMENTWISE - COMPLEX_OPS - target.written_ops
    ]
    return (
        code(target.name),
        file_link(f"weft.target.{files[target.device]}"),
        f"{target.access_bits} bits" if target.access_bits else "none",
        f"{target.grid.group_threads} threads" if target.has_groups else "none",
        dtypes_text(target),
        ", ".join(map(code, lacking)) or "nothing",
    )


def parts_row(target: Target) -> tuple[str, ...]:
    """What computes, the memories, and what else the machine has."""
    compute = target.compute
    if isinstance(compute, Simd):
        registers = f"{compute.vector_registers} of {compute.vector_bits} bits"
    else:
        registers = f"{compute.registers_per_thread} of 32 bits a thread"
    return (
        code(target.name),
        str(compute.units),
        registers,
        ", ".join(size_text(cache.size) for cache in target.caches),
        size_text(target.local_bytes),
        ", ".join(code(unit.name) for unit in target.matrix_units) or "none",
        ", ".join(code(copy.name) for copy in target.copies) or "none",
    )


def size_text(size: int) -> str:
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB"


def dtypes_text(target: Target) -> str:
    """The floats that a target computes in; every target has all integers and bool."""
    floats = sorted(d.name for d in target.native_dtypes if d.is_float)
    return ", ".join(["bool", "integers", *floats])

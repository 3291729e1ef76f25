"""OpenCL C 1.2: a `__kernel` with one pointer per parameter and one long per variable.

Signed integers may not overflow there, so arithmetic that could goes through the unsigned type.
Contraction is off by pragma. The group size is fixed in the source, as the program has it.
"""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import dtypes
from weft.ir.program import Program
from weft.render.c_family.language import Language, Shell, VectorForm
from weft.render.c_family.renderer import render_program
from weft.support.errors import InternalError
from weft.target.c import RESERVED, entry_name
from weft.target.opencl import rounds_float32
from weft.target.target import Target

AXES: Final = 3


def render(program: Program, target: Target) -> str:
    """The program in OpenCL C."""
    if max(len(program.groups), len(program.threads)) > AXES:
        raise InternalError(f"{program.name}: a grid of OpenCL has {AXES} axes at most")
    return render_program(program, target, OPENCL, rounds_float32=rounds_float32(target))


def _header(code: str) -> list[str]:
    lines = ["#pragma OPENCL FP_CONTRACT OFF"]
    if "double" in code:
        lines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
    return lines


def _open_kernel(shell: Shell) -> list[str]:
    language = shell.language
    arguments = [
        f"__global {'' if is_written else 'const '}{language.memory_type(dtype)} *{name}"
        for name, dtype, is_written in shell.pointers
    ]
    arguments += [f"const long {name}" for name in shell.variables]
    threads = [*shell.program.threads, 1, 1, 1][:AXES]
    size = ", ".join(str(extent) for extent in threads)
    entry = entry_name(shell.program.name)
    lines = [
        f"__kernel __attribute__((reqd_work_group_size({size})))",
        f"void {entry}({', '.join(arguments)}) {{",
    ]
    for name, dtype, kind, axis in shell.counters:
        function = "get_group_id" if kind == "group" else "get_local_id"
        type_name = language.types[dtype]
        lines.append(f"const {type_name} {name} = ({type_name}){function}({axis});")
    return lines


_TYPES: Final = {
    dtypes.bool: "bool",
    dtypes.index: "long",
    dtypes.int8: "char",
    dtypes.int16: "short",
    dtypes.int32: "int",
    dtypes.int64: "long",
    dtypes.uint8: "uchar",
    dtypes.uint16: "ushort",
    dtypes.uint32: "uint",
    dtypes.uint64: "ulong",
    dtypes.float32: "float",
    dtypes.float64: "double",
}

_VECTORS: Final = VectorForm(
    lanes=frozenset((2, 4, 8, 16)),  # three lanes take the room of four, so those are a struct
    type="{type}{lanes}",
    typedef="",
    lane="{vector}.s{hexadecimal}",
    build="({type})({lanes})",
    splat="({type})({lane})",
    load="vload{lanes}(0, {pointer})",
    store="vstore{lanes}({value}, 0, {pointer})",
    widest=32,  # PoCL crashes on wider calls, or moves wrong lanes, where registers are smaller
)
_BUILT_IN: Final = {f"{kind}{n}" for n in (2, 4, 8, 16) for kind in ("vload", "vstore")}
_CONVERSIONS: Final = {f"as_{name}" for name in _TYPES.values()}

OPENCL: Final = Language(
    name="OpenCL C",
    types=_TYPES,
    byte="uchar",
    suffixes={
        **{dtypes.int64: "L", dtypes.index: "L", dtypes.uint32: "u", dtypes.uint64: "UL"},
        **{dtypes.float32: "f"},
    },
    wraps=False,
    function="static",
    functions={dtypes.float32: "{name}", dtypes.float64: "{name}"},
    reinterpret="as_{type}",
    nan={dtypes.float32: "NAN", dtypes.float64: "(double)NAN"},
    infinity={dtypes.float32: "INFINITY", dtypes.float64: "(double)INFINITY"},
    vectors=_VECTORS,
    spaces={"local": "__local ", "register": "", "global": "__global "},
    barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    header=_header,
    open_kernel=_open_kernel,
    reserved=RESERVED | _BUILT_IN | _CONVERSIONS | {"get_group_id", "get_local_id"},
)

"""C for gcc and clang: one function per program, over a slice of its grid.

`void NAME(void **args, const int64_t *vars, int64_t begin, int64_t end)` runs the groups begin to
end - 1 of the flattened grid, axis 0 fastest, as the functions of the LLVM renderer do. The
compiler has to be told -fwrapv and -ffp-contract=off; `weft/runtime/c` does.
"""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.program import Program
from weft.render.c_family.language import Language, Shell, VectorForm
from weft.render.c_family.renderer import render_program
from weft.support.errors import NotSupported
from weft.target.c import RESERVED, entry_name
from weft.target.target import Target


def render(program: Program, target: Target) -> str:
    """The program in C."""
    if any(node.op == Op.BARRIER for node in program.instructions.src) and _threads(program) > 1:
        raise NotSupported(
            f"{program.name}: threads of a group cannot wait for each other in C",
            rule="a group runs its threads one after the other, each to its end",
        )
    return render_program(program, target, C)


def _threads(program: Program) -> int:
    count = 1
    for extent in program.threads:
        count *= extent
    return count


def _header(code: str) -> list[str]:
    names = ("math", "stdbool", "stdint", "string")
    return [*[f"#include <{name}.h>" for name in names], "#pragma STDC FP_CONTRACT OFF"]


def _open_kernel(shell: Shell) -> list[str]:
    language, entry = shell.language, entry_name(shell.program.name)
    lines = [f"void {entry}(void **args, const int64_t *vars, int64_t begin, int64_t end) {{"]
    for slot, (name, dtype, is_written) in enumerate(shell.pointers):
        kind = f"{'' if is_written else 'const '}{language.memory_type(dtype)}"
        lines.append(f"{kind} *{name} = args[{slot}];")
    for position, name in enumerate(shell.variables):
        lines.append(f"const int64_t {name} = vars[{position}];")
    lines.append("for (int64_t group = begin; group < end; group++) {")
    looped: dict[int, str] = {}
    for name, dtype, kind, axis in shell.counters:
        type_name = language.types[dtype]
        if kind == "group":
            lines.append(f"const {type_name} {name} = ({type_name})({_group_id(shell, axis)});")
        elif axis in looped:
            lines.append(f"const {type_name} {name} = ({type_name}){looped[axis]};")
        else:
            looped[axis] = name
            extent = shell.program.threads[axis]
            lines.append(f"for ({type_name} {name} = 0; {name} < {extent}; {name}++) {{")
    return lines


def _group_id(shell: Shell, axis: int) -> str:
    """The position on an axis of the grid, which is flattened with axis 0 fastest."""
    below = "".join(f" / {size}" for size in shell.group_sizes[:axis])
    is_last = axis + 1 == len(shell.group_sizes)
    return f"group{below}" if is_last else f"group{below} % {shell.group_sizes[axis]}"


_TYPES: Final = {
    dtypes.bool: "bool",
    dtypes.index: "int64_t",
    **{
        dtype: f"{dtype.name}_t"
        for dtype in (
            *(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
            *(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
        )
    },
    dtypes.float32: "float",
    dtypes.float64: "double",
}

# The vector extension of gcc and clang. The second type may lie at any element, over anything.
_GNU_VECTORS: Final = VectorForm(
    lanes=frozenset((2, 4, 8, 16, 32, 64)),
    type="{name}",
    typedef="typedef {scalar} {type} __attribute__((vector_size({bytes})));\n"
    "typedef {type} {type}_at __attribute__((aligned({width}), may_alias));",
    lane="{vector}[{lane}]",
    build="({type}){{{lanes}}}",
    load="*(const {type}_at *)({pointer})",
    store="*({type}_at *)({pointer}) = {value}",
)

C: Final = Language(
    name="C",
    types=_TYPES,
    byte="uint8_t",
    suffixes={
        **{dtypes.int64: "LL", dtypes.index: "LL", dtypes.uint32: "u", dtypes.uint64: "ULL"},
        **{dtypes.float32: "f"},
    },
    wraps=True,
    function="static inline",
    functions={dtypes.float32: "{name}f", dtypes.float64: "{name}"},
    reinterpret="",
    nan={dtypes.float32: "NAN", dtypes.float64: "(double)NAN"},
    infinity={dtypes.float32: "INFINITY", dtypes.float64: "(double)INFINITY"},
    vectors=_GNU_VECTORS,
    spaces={"local": "", "register": "", "global": ""},
    barrier="",
    header=_header,
    open_kernel=_open_kernel,
    reserved=RESERVED
    | {"args", "vars", "begin", "end", "group"}
    | {f"{name}f" for name in ("sqrt", "floor", "trunc", "rint", "fmod", "copysign")}
    | set(_TYPES.values()),
)

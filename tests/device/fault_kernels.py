"""Kernels that go wrong, in LLVM's language. The tests of faults run them in other processes."""

from weft.engine.devices import device
from weft.ir.dtypes import dtypes
from weft.ir.program import Program, written_program

BODIES = {
    # Touches memory that nobody has.
    "stray": "store float 1.0, ptr addrspace(1) inttoptr (i64 4096 to ptr addrspace(1))\nret void",
    # Never ends.
    "endless": """br label %again
again:
store volatile float 1.0, ptr addrspace(1) %p0
br label %again""",
    # Is no PTX.
    "unknown": 'call void asm sideeffect "add.f99 %r1, %r2, %r3;", ""()\nret void',
}


def source(name: str) -> str:
    head = f"define ptx_kernel void @{name}(ptr addrspace(1) %p0, ptr addrspace(1) %p1)"
    return f"{head} {{\n{BODIES[name]}\n}}\n"


def kernel(name: str) -> Program:
    """A program with one result and one input, both of float32."""
    f32, target = dtypes.float32, device("CUDA").target.name
    return written_program(name, target, source(name), [f32], [f32])

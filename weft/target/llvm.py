"""What LLVM's back ends have in common with no other: one row for each, as data.

The renderer of LLVM IR and `runtime/llvm` read a row instead of asking which machine it is. A row
is found by the renderer of a target, or by the first word of its arch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from weft.support.errors import UnknownName
from weft.target.target import Target

# How a kernel is entered. A slice is a function that runs some groups of the grid, one thread in
# each; a kernel is run by every thread of the grid, which hardware counts.
SLICE: Final = "slice"
KERNEL: Final = "kernel"


@dataclass(frozen=True)
class Backend:
    """One back end of LLVM.

    `triple` names the machine; where it is empty, it is the operating system of this process that
    does. `cpus` are LLVM's names for the machines of a feature, the best first; without them, the
    arch of the target is the name. `features` are asked for besides.
    """

    name: str
    entry: str
    triple: str = ""
    cpus: dict[str, str] = field(default_factory=dict, hash=False)
    features: str = ""
    # Those that some archs, or features of them, are asked for besides.
    arch_features: dict[str, str] = field(default_factory=dict, hash=False)
    # The convention of the kernel, and the attribute with the threads of its group.
    convention: str = ""
    group_attribute: str = ""
    # The attribute with the groups that a multiprocessor should run at once.
    resident_attribute: str = ""
    # Intrinsics that count groups and threads along x, y and z, and one that waits for a group.
    counters: dict[str, str] = field(default_factory=dict, hash=False)
    barrier: str = ""
    # The intrinsic that exchanges words of 32 bits between threads of a warp.
    shuffle: str = ""
    # What lets the next kernel start, what waits for the kernels before, and what asks for memory
    # that will be read.
    let_start: str = ""
    wait_for_others: str = ""
    fetch: str = ""
    # Address spaces of arguments and of the memory of a group; 0 is the stack.
    global_space: int = 0
    local_space: int = 0
    # Addresses are computed in 64 bits from the start, so that they need no conversion; a GPU
    # computes in 32 bits at half the price.
    has_wide_indices: bool = True
    # A load that is masked off reads zeros from elsewhere, without a jump.
    reads_zeros: bool = True
    # MAX and MIN with NaN are one instruction.
    has_maximum: bool = True
    # MAX and MIN of integers take no negations as operands. The assembler of CUDA 13.0 joins two
    # of them into one of three operands, in which it forgets that one was negated: the greatest
    # of -1, -6 and -9 is 9 there.
    flips_extremes: bool = False
    # A conversion of floats to integers saturates, and makes 0 of NaN.
    saturates: bool = True
    # Two float32s are rounded to 16 bits at once.
    rounds_pairs: bool = False
    # Arithmetic on lanes: what the PTX back end makes of some of it is wrong (LLVM 22), so there
    # lanes are for memory alone.
    has_vectors: bool = True


# LLVM takes the oldest PTX that an architecture has. From 8.1 on a kernel may have 32 KB of
# arguments instead of 4; later architectures have a younger one anyway.
_OLD_PTX: Final = (
    *("sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"),
)

BACKENDS: Final[dict[str, Backend]] = {
    "x86_64": Backend(
        name="x86_64",
        entry=SLICE,
        cpus={
            "avx512vnni": "x86-64-v4",
            "avx512f": "x86-64-v4",
            "avx2": "x86-64-v3",
            "": "x86-64",
        },
        arch_features={"avx512vnni": "+avx512vnni"},
        has_maximum=False,
        saturates=False,
    ),
    "aarch64": Backend(name="aarch64", entry=SLICE, cpus={"": "generic"}),
    "PTX": Backend(
        name="PTX",
        entry=KERNEL,
        triple="nvptx64-nvidia-cuda",
        arch_features=dict.fromkeys(_OLD_PTX, "+ptx81"),
        convention="ptx_kernel",
        group_attribute="nvvm.reqntid",
        resident_attribute="nvvm.minctasm",
        counters={
            "group": "llvm.nvvm.read.ptx.sreg.ctaid",
            "thread": "llvm.nvvm.read.ptx.sreg.tid",
        },
        barrier="llvm.nvvm.barrier.cta.sync.aligned.all",
        shuffle="llvm.nvvm.shfl.sync.bfly.i32",
        let_start="griddepcontrol.launch_dependents;",
        wait_for_others="griddepcontrol.wait;",
        fetch="prefetch.global.L2 [$0];",
        global_space=1,
        local_space=3,
        has_wide_indices=False,
        reads_zeros=False,
        flips_extremes=True,
        rounds_pairs=True,
        has_vectors=False,
    ),
}


def backend_of(target: Target) -> Backend:
    """The back end that makes code for a target."""
    name = target.renderer if target.renderer in BACKENDS else target.arch.partition(",")[0]
    found = BACKENDS.get(name)
    if found is None:
        raise UnknownName(
            f"LLVM: expected a target of one of its back ends, got {target.name}",
            rule=f"they are: {', '.join(BACKENDS)}",
        )
    return found

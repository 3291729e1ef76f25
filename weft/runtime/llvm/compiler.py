"""LLVM, through llvmlite: from the text of a module to machine code, for CPUs and for GPUs.

`compile_object` is pure: the object file depends on the source and the target, so it can be cached
on disk and used on every machine of that target. `linker.py` links it into this process.
`compile_assembly` gives text, which for an NVIDIA GPU is PTX.

LLVM's own optimisation passes stay off, because the renderer leaves them nothing to do; `sroa`
alone runs, which moves memory inside the kernel to registers. Two passes of its code generator are
off for the whole process: loop strength reduction doubles the time of a compilation and gains
nothing on addresses that codegen has already hoisted, and machine LICM hoists constants out of
loops until accumulators spill. So constants are read in every iteration, and the code model lets
an instruction do that itself. It needs a linker that puts an object into one piece of memory.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any, Final

from weft.support.errors import InternalError, NotSupported
from weft.support.fork import COMPILE, hold_during_fork
from weft.target.llvm import KERNEL, Backend, backend_of
from weft.target.target import Target

_OPTIONS: Final = ("-disable-lsr", "-disable-machine-licm")
_CODE_EFFORT: Final = 2  # 0 is several times slower code, 3 gains nothing

_MOST_USES: Final = 256
_PASSES: Final[dict[int, tuple[Any, Any, int]]] = {}

# Whether the linker lays out an object as a whole; LLVM's for Windows is not complete.
LINKS_NEAR: Final = sys.platform != "win32"

# For every call of LLVM: llvmlite has a lock too, which is free whenever this one is.
LOCK: Final = threading.Lock()
hold_during_fork(LOCK, COMPILE)


@functools.cache
def llvm() -> Any:
    """The llvmlite binding, with LLVM's options set; they can be set only once.

    To be called with the lock held.
    """
    import llvmlite.binding as binding

    for option in _OPTIONS:
        binding.set_option("weft", option)
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


def machine(target: Target) -> Any:
    """LLVM's code generator for a target. To be called with the lock held."""
    return _machine(backend_of(target), target.arch)


@functools.cache
def _machine(backend: Backend, arch: str) -> Any:
    binding = llvm()
    if backend.triple:
        made = binding.Target.from_triple(backend.triple)
        asked = backend.arch_features.get(arch, backend.features)
        return made.create_target_machine(cpu=arch, features=asked, opt=_CODE_EFFORT)
    name, *features = arch.split(",")
    process = binding.get_process_triple()
    triple = name + process[process.index("-") :]
    best = next(level for level in backend.cpus if level in (*features, ""))
    return binding.Target.from_triple(triple).create_target_machine(
        cpu=backend.cpus[best],
        features=backend.arch_features.get(best, backend.features),
        opt=_CODE_EFFORT,
        reloc="pic" if LINKS_NEAR else "default",
        codemodel="small" if LINKS_NEAR else "jitdefault",
        jit=True,
    )


def llvm_name() -> str:
    """Which LLVM writes code, told without starting it."""
    import llvmlite

    return f"llvmlite {llvmlite.__version__} {' '.join(_OPTIONS)}"


def compiler_name(target: Target) -> str:
    """What made an object file, for the key of a cache: LLVM's version and the machine's kind."""
    return _compiler_name(backend_of(target), target.arch)


@functools.cache
def _compiler_name(backend: Backend, arch: str) -> str:
    with LOCK:
        version = ".".join(str(part) for part in llvm().llvm_version_info)
        made = _machine(backend, arch)
        return f"LLVM {version} {made.triple} {backend.features} {' '.join(_OPTIONS)}"


def compile_object(source: str, target: Target) -> bytes:
    """An object file with the machine code of a module."""
    with LOCK:
        generator = machine(target)
        return bytes(generator.emit_object(_prepare(source, generator)))


def compile_assembly(source: str, target: Target, is_commented: bool = False) -> str:
    """The machine code of a module as text, to be read or for the driver of a GPU to compile.

    Comments name the blocks of the source and the loops that they are in.
    """
    with LOCK:
        generator = machine(target)
        generator.set_asm_verbosity(is_commented)
        return str(generator.emit_assembly(_prepare(source, generator)))


def compile_ptx(source: str, target: Target) -> str:
    """A module as PTX, for the driver of an NVIDIA GPU to compile."""
    if backend_of(target).entry != KERNEL:
        raise NotSupported(
            f"PTX: {target.name} is not a target of it", rule="such as CUDA:PTX:sm_90a"
        )
    return compile_assembly(source, target)


def _prepare(source: str, machine: Any) -> Any:
    """The module, parsed, with what is inside the kernel in registers."""
    binding = llvm()
    try:
        # A context of its own: LLVM keeps all types and constants that a context has seen.
        module = binding.parse_assembly(source, binding.create_context())
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses a module: {error}", ir_text=source) from error
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    if "alloca" in source:
        passes, builder = _passes(machine)
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
    return module


def _passes(machine: Any) -> tuple[Any, Any]:
    """The passes of a code generator. To be called with the lock held.

    llvmlite does not free all of a builder, so one serves many modules; and a builder gets slower
    with each, so that it does not serve for ever.
    """
    passes, builder, used = _PASSES.get(id(machine), (None, None, _MOST_USES))
    if used >= _MOST_USES:
        binding = llvm()
        options = binding.create_pipeline_tuning_options(speed_level=0)
        passes = binding.create_new_function_pass_manager()
        passes.add_sroa_pass()
        builder, used = binding.create_pass_builder(machine, options), 0
    _PASSES[id(machine)] = passes, builder, used + 1  # machines are kept for ever
    return passes, builder

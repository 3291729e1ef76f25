"""LLVM, through llvmlite: from the text of a module to machine code, and from there into memory.

`compile_object` is pure: the object file depends on the source and the target, so it can be cached
on disk and used on every machine of that target. `load_object` links it into this process.

LLVM's own optimisation passes stay off, because the renderer leaves them nothing to do; `sroa`
alone runs, which moves memory inside the kernel to registers. Two passes of its code generator are
off for the whole process: loop strength reduction doubles the time of a compilation and gains
nothing on addresses that codegen has already hoisted, and machine LICM hoists constants out of
loops until accumulators spill. So constants are read in every turn, and the code model lets an
instruction do that itself. It needs a linker that puts an object into one piece of memory.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
from typing import Any, Final

from weft.support.errors import InternalError, NotSupported
from weft.target.target import Target

_OPTIONS: Final = ("-disable-lsr", "-disable-machine-licm")
_PTX_TRIPLE: Final = "nvptx64-nvidia-cuda"
_LONG_ARGUMENTS: Final = "+ptx81"
_LAST_WITH_OLD_PTX: Final = 90  # the capability; later ones are younger than PTX 8.1
# LLVM's name for the machines of a feature, the best first.
_CPUS: Final = {"avx512f": "x86-64-v4", "avx2": "x86-64-v3"}
_BASE_CPUS: Final = {"x86_64": "x86-64", "aarch64": "generic"}
_CODE_EFFORT: Final = 2  # 0 is several times slower code, 3 gains nothing

# Whether the linker lays out an object as a whole; LLVM's for Windows is not complete.
_LINKS_NEAR: Final = sys.platform != "win32"

_LOCK: Final = threading.Lock()
_NUMBERS: Final = itertools.count()


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


@functools.cache
def _machine(arch: str) -> Any:
    """LLVM's code generator for the arch of a CPU target, on this operating system."""
    binding = llvm()
    name, *features = arch.split(",")
    process = binding.get_process_triple()
    triple = name + process[process.index("-") :]
    cpu = next((_CPUS[level] for level in _CPUS if level in features), _BASE_CPUS[name])
    return binding.Target.from_triple(triple).create_target_machine(
        cpu=cpu,
        opt=_CODE_EFFORT,
        reloc="pic" if _LINKS_NEAR else "default",
        codemodel="small" if _LINKS_NEAR else "jitdefault",
        jit=True,
    )


@functools.cache
def _ptx_machine(arch: str) -> Any:
    """LLVM's code generator for a GPU.

    LLVM takes the oldest PTX that an architecture has. From 8.1 on a kernel may have 32 KB of
    arguments instead of 4.
    """
    target = llvm().Target.from_triple(_PTX_TRIPLE)
    is_old = int(arch.strip("sm_af")) <= _LAST_WITH_OLD_PTX
    features = _LONG_ARGUMENTS if is_old else ""
    return target.create_target_machine(cpu=arch, features=features, opt=_CODE_EFFORT)


def llvm_name() -> str:
    """Which LLVM writes code, told without starting it."""
    import llvmlite

    return f"llvmlite {llvmlite.__version__} {' '.join(_OPTIONS)}"


def compiler_name(target: Target) -> str:
    """What made an object file, for the key of a cache: LLVM's version and the machine's kind."""
    with _LOCK:
        version = ".".join(str(part) for part in llvm().llvm_version_info)
        return f"LLVM {version} {_machine(target.arch).triple} {' '.join(_OPTIONS)}"


def compile_object(source: str, target: Target) -> bytes:
    """An object file with the machine code of a module."""
    with _LOCK:
        machine = _machine(target.arch)
        return bytes(machine.emit_object(_prepare(source, machine)))


def compile_assembly(source: str, target: Target) -> str:
    """The machine code of a module as assembly, to be read."""
    with _LOCK:
        machine = _machine(target.arch)
        return str(machine.emit_assembly(_prepare(source, machine)))


def compile_ptx(source: str, target: Target) -> str:
    """A module as PTX, for the driver of an NVIDIA GPU to compile."""
    if target.renderer != "PTX":
        raise NotSupported(
            f"PTX: {target.name} is not a target of it", law="such as CUDA:PTX:sm_90a"
        )
    with _LOCK:
        machine = _ptx_machine(target.arch)
        return str(machine.emit_assembly(_prepare(source, machine)))


def _prepare(source: str, machine: Any) -> Any:
    """The module, parsed, with what is inside the kernel in registers."""
    binding = llvm()
    try:
        module = binding.parse_assembly(source)
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses a module: {error}", ir_text=source) from error
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    if "alloca" in source:
        options = binding.create_pipeline_tuning_options(speed_level=0)
        builder = binding.create_pass_builder(machine, options)
        passes = binding.create_new_function_pass_manager()
        passes.add_sroa_pass()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
    return module


class Library:
    """Machine code in this process. It is unloaded when this object goes."""

    def __init__(self, tracker: Any) -> None:
        self._tracker = tracker

    def address(self, name: str) -> int:
        """Where a function begins."""
        return int(self._tracker[name])


@functools.cache
def _linker(arch: str) -> Any:
    """The linker of this process; it is never closed, since native threads run its code."""
    return llvm().create_lljit_compiler(_machine(arch), use_jit_link=_LINKS_NEAR)


def load_object(binary: bytes, names: tuple[str, ...], target: Target) -> Library:
    """Link an object file into this process, with the functions of these names to be found."""
    with _LOCK:
        builder = llvm().JITLibraryBuilder().add_object_img(binary).add_current_process()
        for name in names:
            builder.export_symbol(name)
        try:
            return Library(builder.link(_linker(target.arch), f"weft{next(_NUMBERS)}"))
        except RuntimeError as error:
            raise InternalError(f"LLVM cannot load {', '.join(names)}: {error}") from error

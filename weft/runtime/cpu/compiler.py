"""LLVM, through llvmlite: from the text of a module to machine code, and from there into memory.

`compile_object` is pure: the object file depends on the source and the target, so it can be cached
on disk and used on every machine of that target. `load_object` links it into this process.

LLVM's own optimisation passes stay off, because the renderer leaves them nothing to do; `sroa`
alone runs, which moves memory inside the kernel to registers. Two passes of its code generator are
off for the whole process: loop strength reduction doubles the time of a compilation and gains
nothing on addresses that codegen has already hoisted, and machine LICM hoists constants out of
loops until accumulators spill. So constants are read in every turn, and the code model lets an
instruction do that itself. It needs a linker that puts an object into one piece of memory: where
objects are ELF, `link.py`, else LLVM's own.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
import threading
from typing import Any, Final

from weft.runtime.cpu.link import link_object
from weft.support.errors import InternalError, NotSupported
from weft.support.fork import COMPILE, hold_during_fork
from weft.target.target import Target

_OPTIONS: Final = ("-disable-lsr", "-disable-machine-licm")
_PTX_TRIPLE: Final = "nvptx64-nvidia-cuda"
# LLVM's name for the machines of a feature, the best first.
_CPUS: Final = {"avx512f": "x86-64-v4", "avx2": "x86-64-v3"}
_BASE_CPUS: Final = {"x86_64": "x86-64", "aarch64": "generic"}
_CODE_EFFORT: Final = 2  # 0 is several times slower code, 3 gains nothing

# Whether object files are ELF, which `link.py` loads.
_IS_ELF: Final = sys.platform not in ("win32", "cygwin", "darwin")
# Whether the linker lays out an object as a whole; LLVM's for Windows is not complete.
_LINKS_NEAR: Final = sys.platform != "win32"

# For every call of LLVM: llvmlite has a lock too, which is free whenever this one is.
LLVM_LOCK: Final = threading.Lock()
hold_during_fork(LLVM_LOCK, COMPILE)
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
    target = llvm().Target.from_triple(_PTX_TRIPLE)
    return target.create_target_machine(cpu=arch, opt=_CODE_EFFORT)


def compiler_name(target: Target) -> str:
    """What made an object file, for the key of a cache: LLVM's version and the machine's kind."""
    with LLVM_LOCK:
        version = ".".join(str(part) for part in llvm().llvm_version_info)
        return f"LLVM {version} {_machine(target.arch).triple} {' '.join(_OPTIONS)}"


def compile_object(source: str, target: Target) -> bytes:
    """An object file with the machine code of a module."""
    with LLVM_LOCK:
        machine = _machine(target.arch)
        return bytes(machine.emit_object(_prepare(source, machine)))


def compile_assembly(source: str, target: Target) -> str:
    """The machine code of a module as assembly, to be read."""
    with LLVM_LOCK:
        machine = _machine(target.arch)
        return str(machine.emit_assembly(_prepare(source, machine)))


def compile_ptx(source: str, target: Target) -> str:
    """A module as PTX, for the driver of an NVIDIA GPU to compile."""
    if target.renderer != "PTX":
        raise NotSupported(
            f"PTX: {target.name} is not a target of it", law="such as CUDA:PTX:sm_90a"
        )
    with LLVM_LOCK:
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

    def __init__(self, addresses: Any) -> None:
        self._addresses = addresses

    def address(self, name: str) -> int:
        """Where a function begins."""
        return int(self._addresses[name])

    def keep(self) -> None:
        """Never unload it, not even at exit: native threads run its code."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))


@functools.cache
def _linker(arch: str) -> Any:
    """LLVM's linker of this process; it is never closed, since native threads run its code."""
    return llvm().create_lljit_compiler(_machine(arch), use_jit_link=_LINKS_NEAR)


def load_object(binary: bytes, names: tuple[str, ...], target: Target) -> Library:
    """Link an object file into this process, with the functions of these names to be found."""
    if _IS_ELF:
        return Library(link_object(binary, names, target.arch.partition(",")[0]))
    with LLVM_LOCK:
        builder = llvm().JITLibraryBuilder().add_object_img(binary).add_current_process()
        for name in names:
            builder.export_symbol(name)
        try:
            return Library(builder.link(_linker(target.arch), f"weft{next(_NUMBERS)}"))
        except RuntimeError as error:
            raise InternalError(f"LLVM cannot load {', '.join(names)}: {error}") from error

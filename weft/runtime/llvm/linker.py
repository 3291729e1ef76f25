"""Machine code in this process: object files that LLVM has made are linked where they can run.

Where objects are ELF, `elf_link.py` does it; elsewhere LLVM's own linker, which keeps a little of
each object for ever.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from typing import Any, Final

from weft.runtime.llvm.compiler import LINKS_NEAR, LOCK, llvm, machine
from weft.runtime.llvm.elf_link import link_object
from weft.support.errors import InternalError
from weft.target.target import Target

# Whether object files are ELF.
_IS_ELF: Final = sys.platform not in ("win32", "cygwin", "darwin")
_NUMBERS: Final = itertools.count()


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


# By the arch: targets that differ in anything else share it.
_LINKERS: Final[dict[str, Any]] = {}


def _linker(target: Target) -> Any:
    """The linker of this process; it is never closed, since native threads run its code."""
    found = _LINKERS.get(target.arch)
    if found is None:
        found = llvm().create_lljit_compiler(machine(target), use_jit_link=LINKS_NEAR)
        _LINKERS[target.arch] = found
    return found


def load_object(binary: bytes, names: tuple[str, ...], target: Target) -> Library:
    """Link an object file into this process, with the functions of these names to be found."""
    if _IS_ELF:
        return Library(link_object(binary, names, target.arch.partition(",")[0]))
    with LOCK:
        builder = llvm().JITLibraryBuilder().add_object_img(binary).add_current_process()
        for name in names:
            builder.export_symbol(name)
        try:
            return Library(builder.link(_linker(target), f"weft{next(_NUMBERS)}"))
        except RuntimeError as error:
            raise InternalError(f"LLVM cannot load {', '.join(names)}: {error}") from error

"""PTX becomes machine code of a GPU by the compiler inside the driver.

`assemble` may be called by many threads at once; the driver compiles side by side. The result is a
cubin, which belongs to an architecture and is kept on disk under the version of the driver.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

from weft.runtime.cuda.driver import SUCCESS, describe, require_success
from weft.support.errors import InternalError

_INFO_LOG: Final = 3
_INFO_LOG_SIZE: Final = 4
_ERROR_LOG: Final = 5
_ERROR_LOG_SIZE: Final = 6
_PTX_INPUT: Final = 1
LOG_BYTES: Final = 16 << 10


def assemble(api: Any, ptx: str, name: str) -> bytes:
    """The cubin of a program in PTX; the context of a GPU is current."""
    errors = ctypes.create_string_buffer(LOG_BYTES)
    notes = ctypes.create_string_buffer(LOG_BYTES)
    keys = (ctypes.c_int * 4)(_ERROR_LOG, _ERROR_LOG_SIZE, _INFO_LOG, _INFO_LOG_SIZE)
    values = (ctypes.c_void_p * 4)(
        ctypes.addressof(errors), LOG_BYTES, ctypes.addressof(notes), LOG_BYTES
    )
    link = ctypes.c_void_p()
    code = api.cuLinkCreate_v2(len(keys), keys, values, ctypes.byref(link))
    require_success(api, code, "starting the driver's compiler")
    try:
        text = ptx.encode() + b"\0"
        code = api.cuLinkAddData_v2(
            link, _PTX_INPUT, text, len(text), name.encode(), 0, None, None
        )
        binary, size = ctypes.c_void_p(), ctypes.c_size_t()
        if code == SUCCESS:
            code = api.cuLinkComplete(link, ctypes.byref(binary), ctypes.byref(size))
        if code != SUCCESS:
            raise _refused(api, code, name, ptx, errors.value.decode(errors="replace"))
        return ctypes.string_at(binary.value or 0, size.value)
    finally:
        api.cuLinkDestroy(link)


def _refused(api: Any, code: int, name: str, ptx: str, log: str) -> InternalError:
    """The error of a program that the driver does not take, with its first complaint marked."""
    line = marked_line(log)
    return InternalError(
        f"CUDA: the driver refuses the PTX of {name!r}",
        facts=[("the driver says", describe(api, code)), ("its log", log.strip()[:2000])],
        ir_text=ptx,
        marked_line=line,
    )


def marked_line(log: str) -> int | None:
    """The first line of a program that a log complains of, counted from 0.

    >>> marked_line("ptxas application ptx input, line 12; error : Unknown modifier '.f99'")
    11
    """
    _, found, rest = log.partition(", line ")
    number = rest.partition(";")[0].strip()
    return int(number) - 1 if found and number.isdecimal() else None

"""Frames that run while a function is traced and are none of its own: what they read is not an
input.

Python runs some code in the middle of anything: when an object goes, when the collector comes,
when a signal arrives. Imports run once. Messages are written, and what is asked on the way to a
log is not a value. The function that runs at that moment has not called them, whatever the frames
say, so that they are not followed, nor is anything that they call.
"""

from __future__ import annotations

import dis
import functools
import gc
import inspect
import os
import weakref
from collections.abc import Iterable
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, Final

from weft.tensor.jit.watch.frame import Followed
from weft.tensor.jit.watch.lookup import lookup

# They write messages, once per trace as everything else; what they read is not a value.
_MESSAGES: Final = ("logging", "warnings", "traceback", "linecache")
# Unless the function asks them for one.
_ASKED: Final = ("getEffectiveLevel", "isEnabledFor", "hasHandlers", "getLevelName", "disable")
_GENERATORS: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_RESUME: Final = dis.opmap["RESUME"]
_WEAK_FILES: Final = ("weakref.py", "_weakrefset.py")


def is_import(frame: FrameType) -> bool:
    """Whether a frame is the body of a module; that of `eval` and `exec` is followed."""
    if frame.f_code.co_name != "<module>":
        return False
    return frame.f_back is None or frame.f_back.f_code.co_filename.startswith("<frozen")


def is_interruption(frame: FrameType, caller: Followed | None) -> bool:
    """Whether Python runs a frame because something happened, in the middle of `caller`."""
    code = frame.f_code
    if code.co_name == "__del__" or _is_callback_of_the_collector(code):
        return True
    arguments = _arguments(frame)
    if any(each is frame.f_back for each in arguments[1:2]):  # a handler: the signal, the frame
        return type(arguments[0]) is int or isinstance(arguments[0], int)
    is_dead = any(isinstance(each, weakref.ref) and each() is None for each in arguments)
    if is_dead and os.path.basename(code.co_filename) in _WEAK_FILES:
        return True
    return is_dead and (caller is None or code not in map(_code_of, caller.called))


def is_resumed(frame: FrameType) -> bool:
    """Whether a generator goes on that has begun before; one that goes away runs its `finally`."""
    code, at = frame.f_code, frame.f_lasti
    if not code.co_flags & _GENERATORS or at < 0:
        return False
    return not (code.co_code[at] == _RESUME and code.co_code[at + 1] == 0)


def is_message(frame: FrameType, caller: Followed | None) -> bool:
    """Whether a frame writes a message for its caller."""
    name = frame.f_code.co_name
    if caller is not None and print in caller.called and name in ("write", "flush"):
        return True
    if frame.f_globals.get("__name__", "").split(".")[0] not in _MESSAGES:
        return False
    return caller is None or name not in _ASKED


def _is_callback_of_the_collector(code: CodeType) -> bool:
    return any(_code_of(each) is code for each in gc.callbacks)


def _arguments(frame: FrameType) -> list[Any]:
    """The positional arguments of a frame that begins, those of `*args` too."""
    code = frame.f_code
    if not code.co_argcount and not code.co_flags & inspect.CO_VARARGS:
        return []
    names = frame.f_locals
    found = [names.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & inspect.CO_VARARGS:
        rest: Iterable[Any] = names.get(
            code.co_varnames[code.co_argcount + code.co_kwonlyargcount], ()
        )
        found += rest
    if found and found[0] is not None and _is_own(found[0], code):
        del found[0]  # the object of a method
    return found


def _is_own(thing: Any, code: CodeType) -> bool:
    raw = lookup(type(thing), code.co_name)
    return type(raw) is FunctionType and raw.__code__ is code


def _code_of(function: Any) -> CodeType | None:
    """The code that runs when something is called, as far as Python shows it."""
    for _ in range(16):
        if type(function) is functools.partial:
            function = function.func
        elif type(function) is MethodType:
            function = function.__func__
        else:
            break
    if type(function) is not FunctionType:
        function = lookup(type(function), "__call__")
    return function.__code__ if type(function) is FunctionType else None

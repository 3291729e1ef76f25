"""Watches a function while it is traced: every frame of Python that runs, but those of Weft.

`Watch` is a context around the one call of the function. Python tells it of each instruction
(`sys.settrace`, in this thread alone); frames of Weft's own code are left out, layers and
optimizers are followed, because they have state of the user's. A debugger or a tool for coverage
that uses `sys.settrace` too does not see the function in that call.
"""

from __future__ import annotations

import gc
import os
import sys
from _thread import get_ident
from types import CodeType, FrameType
from typing import Any, Final, Self

import llvmlite
import numpy as np

from weft.tensor.jit.watch.aside import is_import, is_interruption, is_message, is_resumed
from weft.tensor.jit.watch.frame import Followed
from weft.tensor.jit.watch.functions import find_function, find_maker
from weft.tensor.jit.watch.lookup import LAYERS, PURE, WEFT, is_standard
from weft.tensor.jit.watch.opcodes import Bytecode, read_steps
from weft.tensor.jit.watch.reads import Reads

_LAYERS: Final = tuple(os.path.join(WEFT, name.split(".")[1]) + os.sep for name in LAYERS)
_PURE: Final = tuple(os.path.join(WEFT, *name.split(".")[1:]) + ".py" for name in PURE)
# Files that Weft itself calls, too.
_TOOLS: Final = tuple(
    [os.path.dirname(os.path.abspath(str(each.__file__))) + os.sep for each in (np, llvmlite)]
)


class Watch:
    """What a function reads while it is traced, in `reads`."""

    def __init__(self, function: Any, arguments: list[Any]) -> None:
        self.reads = Reads()
        self._steps: dict[int, dict[int, Bytecode]] = {}
        self._codes: list[CodeType] = []  # so that no id is used again
        self._frames: dict[FrameType, Followed] = {}
        self._begun: set[int] = set()
        self._aside: set[FrameType] = set()  # not the function's, nor what they call
        self._followed: dict[str, bool] = {}
        self._before: Any = None
        self._thread = get_ident()
        self._is_collecting = False
        for thing in (function, *arguments):
            self.reads.mark(thing)
            self.reads.add_function(thing)

    def __enter__(self) -> Self:
        gc.callbacks.append(self._note_collection)
        self._before = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # 3.12 asks here whether a frame wants instructions
        is_followed, enter = self._followed.get, self._enter_frame

        def enter_frame(frame: FrameType, event: str, arg: Any) -> Any:
            # Nearly every frame is of a file of Weft: those are left out before anything else.
            if is_followed(frame.f_code.co_filename) is False:
                return None
            return enter(frame, event, arg)

        sys.settrace(enter_frame)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        gc.callbacks.remove(self._note_collection)
        self._frames.clear()
        self._aside.clear()
        self.reads.finish()
        self.reads.frame = None

    def _note_collection(self, phase: str, info: dict[str, int]) -> None:
        """Python collects garbage: what it calls for that is of other objects, at any moment."""
        if get_ident() == self._thread:
            self._is_collecting = phase == "start"

    def _enter_frame(self, frame: FrameType, event: str, arg: Any) -> Any:
        if self._is_collecting:
            return None
        file = frame.f_code.co_filename
        is_followed = self._followed.get(file)
        if is_followed is None:
            is_followed = self._followed[file] = _is_followed(file)
        if not is_followed or is_import(frame):
            return None
        if not self._is_called_by_user(frame):
            return None
        around = None if frame.f_back is None else self._frames.get(frame.f_back)
        # To go on with a generator from outside warns already, where the function does it.
        is_foreign = is_resumed(frame) and id(frame) not in self._begun
        if is_foreign or is_interruption(frame, around) or is_message(frame, around):
            self._aside.add(frame)
            frame.f_trace_lines = False
            return self._beside_frame
        frame.f_trace = self._in_frame  # before the next line: from 3.12 on it looks for this
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if frame not in self._frames:
            self._frames[frame] = self._follow(frame)
            self._begun.add(id(frame))
        return self._in_frame

    def _is_called_by_user(self, frame: FrameType) -> bool:
        """Whether a frame works for the function, and not for an import or for Weft's own code."""
        caller = frame.f_back
        is_tool = _is_tool(frame.f_code.co_filename)
        while caller is not None and caller not in self._frames:
            file = caller.f_code.co_filename
            if file.startswith(WEFT):
                return not is_tool
            if caller.f_code.co_name == "<module>" or file.startswith("<frozen importlib"):
                return False
            if caller in self._aside:
                return False
            caller = caller.f_back
        return True

    def _follow(self, frame: FrameType) -> Followed:
        code = frame.f_code
        steps = self._steps.get(id(code))
        if steps is None:
            steps = self._steps[id(code)] = read_steps(code)
            self._codes.append(code)
        self.reads.frame = frame
        return Followed(frame, steps, self._cells(frame))

    def _cells(self, frame: FrameType) -> dict[str, list[Any]]:
        """The cells of the variables that a frame has from functions around it."""
        cells: dict[str, list[Any]] = {}
        code = frame.f_code
        if code.co_freevars and code not in self.reads.functions:
            maker = find_maker(frame)
            if maker is not None:
                around = self._frames.get(maker)
                return {} if around is None else around.cells_of(code.co_freevars)
        for function in find_function(self.reads, frame):
            self.reads.function(function)
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
                cells.setdefault(name, []).append(cell)
        return cells

    def _beside_frame(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "return":
            self._aside.discard(frame)
        return self._beside_frame

    def _in_frame(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "opcode":
            self.reads.frame = frame
            self._frames[frame].advance(frame, self.reads)
        elif event == "return":
            self._frames.pop(frame, None)  # a generator comes again, with an empty stack
            caller = self._frames.get(frame.f_back) if frame.f_back is not None else None
            if caller is not None:
                caller.returned.append(arg)
        return self._in_frame


def _is_followed(file: str) -> bool:
    if file.startswith(("<frozen importlib", "<weft")):
        return False
    return not file.startswith(WEFT) or (file.startswith(_LAYERS) and file not in _PURE)


def _is_tool(file: str) -> bool:
    return is_standard(file) or file.startswith(_TOOLS)

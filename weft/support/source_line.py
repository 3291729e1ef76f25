"""The user's own source line, captured cheaply and resolved late.

Every graph node and every error calls `user_line()`, so a capture stores only a code object and an
instruction offset; the file, line and text are worked out when somebody prints them. A capture
never holds a frame, so it keeps no local variable of the user alive.
"""

from __future__ import annotations

import os
import sys

# A plain constant: importing `typing` costs more than the rest of this package together.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

MOST_LINES_SHOWN = 3

_getframe = sys._getframe
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))
# Wrappers of the standard library that stand between the user's line and ours.
_WRAPPERS = {os.path.join(_LIBRARY, name) for name in ("contextlib.py", "functools.py")}


# Says which module of the user's model runs in a frame; set while a trace is written.
MODULES: list[Callable[[FrameType], str]] = []

# For each code file name met so far: is a frame of it passed over on the way to the user?
_PASSED: dict[str, bool] = {}


class SourceLine:
    """A location in the user's program: a code object and the offset of an instruction in it."""

    __slots__ = ("_code", "_offset")
    module = ""  # of the user's model, where somebody asked for it

    def __init__(self, code: CodeType, offset: int) -> None:
        self._code = code
        self._offset = offset

    @property
    def file(self) -> str:
        """The file's name, relative to the working directory when it lies inside."""
        return _shown_name(self._code.co_filename)

    @property
    def line(self) -> int:
        """The line number, counted from 1."""
        return self._span()[0]

    @property
    def text(self) -> str:
        """The source text without its indentation, or '' where no source is known."""
        import linecache
        from textwrap import dedent

        first, last = self._span()
        opening = linecache.getline(self._code.co_filename, first).lstrip()
        if opening.startswith(("with ", "async with ")):
            # Entering a `with` counts as running all of it; its body is not of interest.
            last = first
        found = [linecache.getline(self._code.co_filename, i) for i in range(first, last + 1)]
        lines = dedent("".join(found)).strip().splitlines()
        if len(lines) > MOST_LINES_SHOWN:
            lines[MOST_LINES_SHOWN - 1 :] = ["..."]
        return "\n".join(line.rstrip() for line in lines)

    @property
    def function(self) -> str:
        """The qualified name of the function, `<module>` at the top of a file."""
        return self._code.co_qualname

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal locations, while both are alive; cheaper than file and line."""
        return id(self._code), self._offset, self.module

    @property
    def code(self) -> CodeType | None:
        """The code object, or None for a location that is known by its words."""
        return getattr(self, "_code", None)

    def _span(self) -> tuple[int, int]:
        """Return the first and last line of the expression that was running."""
        from itertools import islice

        # One position per code unit; a code unit has two bytes.
        here = next(islice(self._code.co_positions(), self._offset // 2, None), (None, None))
        first = here[0] or self._code.co_firstlineno
        return first, max(first, here[1] or first)

    def __repr__(self) -> str:
        return f"<SourceLine {self.file}:{self.line}>"

    def __reduce__(self) -> tuple[Callable[..., SourceLine], tuple[str, int, str, str]]:
        # A code object cannot be pickled; what it resolves to here can.
        return FixedLine, (self.file, self.line, self.text, self.function)


class LineInModule(SourceLine):
    """A location in the user's program, in a part of the user's model: `GPT.blocks.3.qkv`."""

    __slots__ = ("module",)

    def __init__(self, code: CodeType, offset: int, module: str) -> None:
        super().__init__(code, offset)
        self.module = module


class FixedLine(SourceLine):
    """A location that is known by its words: a line of a text file, or one from another process.

    >>> FixedLine("kernel.ir", 12, "%3 = ADD(%1, %2)").line
    12
    """

    __slots__ = ("_file", "_function", "_line", "_text")

    def __init__(self, file: str, line: int, text: str = "", function: str = "") -> None:
        self._file = file
        self._line = line
        self._text = text
        self._function = function

    @property
    def key(self) -> tuple[object, ...]:
        return self._file, self._line, self.module

    @property
    def file(self) -> str:
        return self._file

    @property
    def line(self) -> int:
        return self._line

    @property
    def text(self) -> str:
        return self._text

    @property
    def function(self) -> str:
        return self._function


NOWHERE = FixedLine("", 0)
"""The location of a message that belongs to no line, such as a bad environment variable."""


def user_line(skip: int = 0) -> SourceLine:
    """Return the innermost line outside Weft that led to this call.

    `skip` callers are known to be Weft and are not looked at, which saves time. `NOWHERE` is
    returned where there is no such line.
    """
    frame: FrameType | None = _getframe(skip + 1)
    while frame is not None:
        code = frame.f_code
        try:
            is_passed = _PASSED[code.co_filename]
        except KeyError:
            is_passed = _classify(code.co_filename)
        if not is_passed:
            if MODULES:
                module = MODULES[-1](_getframe(skip + 1))
                return LineInModule(code, frame.f_lasti, module)
            return SourceLine(code, frame.f_lasti)
        frame = frame.f_back
    return NOWHERE


def _classify(file: str) -> bool:
    """Tell whether frames of a code file are passed over, and remember it.

    Code that Weft generates is compiled under a file name that begins with `<weft`, and counts as
    Weft.
    """
    is_passed = file.startswith((_PACKAGE, "<weft", "<frozen ")) or file in _WRAPPERS
    _PASSED[file] = is_passed
    return is_passed


def _shown_name(file: str) -> str:
    if file.startswith("<"):
        return file
    try:
        inside = os.getcwd().rstrip(os.sep) + os.sep
    except OSError:
        return file
    path = os.path.abspath(file)
    return path[len(inside) :] if path.startswith(inside) else file

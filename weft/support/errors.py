"""Every error that Weft raises, under two roots.

`UsageError` is for what the user can act on; its subclasses also derive from the builtin error a
Python programmer expects, so `except ValueError` works. `InternalError` is our bug. All classes
show themselves as `weft.Name`, are rendered by `message.py`, carry a short code, and are explained
in `error_table.py`.
"""

# ruff: noqa: N818 -- OutOfMemory and NotSupported say enough without the word Error.

from __future__ import annotations

from weft.support.message import render_message
from weft.support.source_line import NOWHERE, SourceLine, user_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "AxisError",
    "Busy",
    "DTypeError",
    "DeviceError",
    "FileFormatError",
    "GradcheckError",
    "IndexOutOfRange",
    "InternalError",
    "LinAlgError",
    "MissingFile",
    "NotFinite",
    "NotSupported",
    "OptRefused",
    "OutOfMemory",
    "ShapeError",
    "TextError",
    "UnknownAttribute",
    "UnknownName",
    "UsageError",
]

IR_LINES_SHOWN = 9


class _MessageError(Exception):
    """What both roots share: the parts of a message and their rendering."""

    code = ""

    def __init__(
        self,
        what: str,
        *,
        facts: Iterable[Sequence[object]] = (),
        rule: str = "",
        fix: str = "",
        where: SourceLine | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.facts = tuple(tuple(str(cell) for cell in row) for row in facts)
        self.rule = rule
        self.fix = fix
        self.where = user_line(skip=1) if where is None else where

    def __str__(self) -> str:
        return render_message(self.what, self.where, self.facts, rule=self.rule, fix=self.fix)

    def __reduce__(
        self,
    ) -> tuple[Callable[..., _MessageError], tuple[str, str], dict[str, object]]:
        # By name, because pickle cannot call keyword arguments.
        return _rebuild, (type(self).__name__, self.what), self.__dict__


def _rebuild(name: str, what: str) -> _MessageError:
    """Return an error of the named class; pickle then fills in its parts."""
    error: type[_MessageError] = globals()[name]
    return error(what, where=NOWHERE)


class UsageError(_MessageError):
    """A mistake that the user can put right.

    `facts` are rows of cells, shown in columns; `where` is the user's line unless given, and
    `NOWHERE` leaves it out.

    >>> raise ShapeError("matmul: inner sizes differ (4 and 3)",
    ...                  facts=[("left", (3, 4), "axis -1 is 4"), ("right", (3, 4))],
    ...                  where=NOWHERE)
    Traceback (most recent call last):
    weft.ShapeError: matmul: inner sizes differ (4 and 3)
    <BLANKLINE>
      left   (3, 4)   axis -1 is 4
      right  (3, 4)
    """

    code = "W100"


class ShapeError(UsageError, ValueError):
    """Shapes do not fit the operation or each other."""

    code = "W101"


class DTypeError(UsageError, TypeError):
    """A dtype does not fit the operation, or two dtypes have no common one."""

    code = "W102"


class AxisError(UsageError, IndexError, ValueError):
    """An axis number lies outside the shape, or an axis is named twice."""

    code = "W103"


class IndexOutOfRange(UsageError, IndexError):
    """An index lies outside the axis it selects from."""

    code = "W104"


class ArgumentError(UsageError, ValueError):
    """An argument has the right type and an impossible value."""

    code = "W201"


class ArgumentTypeError(UsageError, TypeError):
    """An argument has the wrong type."""

    code = "W202"


class UnknownName(UsageError, ValueError):
    """A name given as a value (a setting, a dtype, a device) is not known."""

    code = "W203"


class UnknownAttribute(UsageError, AttributeError):
    """An attribute does not exist; an AttributeError, so that `hasattr` and `getattr` work."""

    code = "W204"


class OptRefused(UsageError, ValueError):
    """An opt is not legal for the kernel it was given for."""

    code = "W205"


class DeviceError(UsageError, RuntimeError):
    """A device is absent, or refused what was asked of it."""

    code = "W301"


class OutOfMemory(UsageError, MemoryError):
    """A device has too little memory left."""

    code = "W302"


class NotSupported(UsageError, NotImplementedError):
    """Weft cannot do this, or not on this target; the message says what it can do."""

    code = "W303"


class MissingFile(DeviceError, FileNotFoundError):
    """A file, or the folder that it is to lie in, does not exist."""

    code = "W304"


class NotFinite(UsageError, FloatingPointError):
    """A computation made a NaN or an infinity, and CHECK=nan looks for those."""

    code = "W305"


class Busy(UsageError, RuntimeError):
    """As many requests wait as may, so another one is refused at once."""

    code = "W306"


class LinAlgError(UsageError, RuntimeError, ValueError):
    """A matrix has no such decomposition, and the caller asked for the values to be looked at."""

    code = "W307"


class GradcheckError(UsageError, RuntimeError):
    """A gradient is not the difference of values, as `gradcheck` found."""

    code = "W308"


def file_error(what: str, failure: OSError, *, rule: str = "") -> DeviceError:
    """Return the error for what the system refused; the reason stands behind `what`."""
    text, where = f"{what}: {failure.strerror or failure}", user_line(skip=1)
    if not isinstance(failure, FileNotFoundError):
        return DeviceError(text, rule=rule, where=where)
    missing = MissingFile(text, rule=rule, where=where)
    missing.errno, missing.filename = failure.errno, failure.filename
    return missing


class FileFormatError(UsageError, ValueError):
    """A file is damaged or not of the format it was read as."""

    code = "W401"


class TextError(UsageError, ValueError):
    """The text form of a program cannot be parsed."""

    code = "W402"


class InternalError(_MessageError):
    """A bug in Weft: names the pass and the last rule, and shows the IR with the node marked.

    `marked_line` counts the lines of `ir_text` from 0. Printing the error writes a report with the
    whole IR and the traceback to a temporary file, once, and names that file.
    """

    code = "W900"

    def __init__(
        self,
        what: str,
        *,
        pass_name: str | None = None,
        rewrite_rule: str | None = None,
        ir_text: str | None = None,
        marked_line: int | None = None,
        facts: Iterable[Sequence[object]] = (),
        where: SourceLine | None = None,
    ) -> None:
        origin = [("pass", pass_name), ("rule", rewrite_rule)]
        named: list[Sequence[object]] = [(word, name) for word, name in origin if name]
        super().__init__(
            what,
            facts=[*named, *facts],
            rule="this is a bug in Weft, not a mistake in your program",
            fix="report it and attach this message",
            where=where,
        )
        self.ir_lines = mark_line(ir_text or "", marked_line)
        self.marked_line = marked_line
        self._is_reported = False

    def __str__(self) -> str:
        if not self._is_reported:
            # Set first: the report holds the traceback, which prints this error again.
            self._is_reported = True
            from weft.support.report import try_write_report

            if path := try_write_report(self):
                self.fix = f"report it and attach {path}"
        listing = "\n".join(self._shown_lines())
        return render_message(self.what, self.where, self.facts, listing, self.rule, self.fix)

    def _shown_lines(self) -> list[str]:
        """Return the IR around the marked line."""
        first = max(0, (self.marked_line or 0) - IR_LINES_SHOWN // 2)
        last = first + IR_LINES_SHOWN
        before = ["  ..."] if first > 0 else []
        after = ["  ..."] if last < len(self.ir_lines) else []
        return before + self.ir_lines[first:last] + after


def mark_line(text: str, marked: int | None) -> list[str]:
    """Return the lines of a listing, the marked one behind an arrow.

    >>> mark_line("a\\nb", 1)
    ['  a', '> b']
    """
    return [("> " if i == marked else "  ") + line for i, line in enumerate(text.splitlines())]


# Users import these from `weft`, so that is the name a traceback shows.
for _name in __all__:
    globals()[_name].__module__ = "weft"

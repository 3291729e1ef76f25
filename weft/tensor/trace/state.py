"""What the rest of the tensor layer needs to know about a trace that is going on.

`tracing.trace` is the trace of this thread, or None. While there is one, nothing is computed:
reading a value raises, unless it follows from constants of the function. A storage whose value
belongs to a trace that is over is a `GoneStorage`, which raises when it is used.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol
from weakref import WeakKeyDictionary

from weft.ir.uop import UOp
from weft.support.errors import UsageError
from weft.tensor.storage import Storage, forget

if TYPE_CHECKING:
    from weft.tensor.core import Core


class TraceState(Protocol):
    """What a trace is told and asked while the function runs.

    `is_seeded` says that the function starts the random numbers anew.
    """

    is_seeded: bool

    def require_readable(self, node: UOp, name: str) -> None:
        """Raise unless a value follows from constants alone."""

    def constant(self, node: UOp) -> UOp:
        """The BUFFER with a value that follows from constants alone."""

    def note_realized(self, storages: Iterable[Storage]) -> None:
        """The function asks for values in memory: every call computes them as such."""

    def adopt(self, storage: Storage) -> None:
        """Treat a storage as if it had been there before the trace."""

    def note_array(self, array: Any) -> None:
        """The function makes a tensor of an array that may change until the next call."""

    def note_grad_read(self, tensor: Core) -> None: ...

    def note_grad_write(self, tensor: Core) -> None: ...

    def note_grad_sum(self, tensor: Core) -> None:
        """`backward` adds to the gradient of a leaf."""


class _Tracing(threading.local):
    """The trace of this thread; `depth` also counts functions that become one CALL."""

    trace: TraceState | None = None
    depth: int = 0


tracing: Final = _Tracing()


class Reason:
    """Why a value is gone: a few words, and the error for whoever uses it."""

    __slots__ = ("error", "summary")

    def __init__(self, summary: str, error: Callable[[Storage], UsageError]) -> None:
        self.summary = summary
        self.error = error


_REASONS: Final[WeakKeyDictionary[Storage, Reason]] = WeakKeyDictionary()


class GoneStorage(Storage):
    """A storage whose value nobody can have any more. `retire` makes it of another storage."""

    __slots__ = ()
    is_gone: ClassVar[bool] = True

    @property
    def summary(self) -> str:
        return _REASONS[self].summary

    @property
    def uop(self) -> UOp:
        raise _REASONS[self].error(self)

    @uop.setter
    def uop(self, node: UOp) -> None:
        raise _REASONS[self].error(self)


def retire(storage: Storage, reason: Reason) -> None:
    """Let every later use of a storage raise."""
    forget(storage)
    _REASONS[storage] = reason
    made: Any = storage
    made.__class__ = GoneStorage

"""What programs take from `tinygrad.helpers`: small functions, bars, times, settings by name.

`from weft.helpers import getenv, colored, trange, Timing, DEBUG` works as there; a setting is its
present value.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from weft.engine.counters import GlobalCounters
from weft.functions import fetch, getenv
from weft.support.errors import UnknownAttribute
from weft.support.message import nearest
from weft.support.progress import Progress
from weft.support.settings import Context, settings

__all__ = [
    "Context",
    "GlobalCounters",
    "Timing",
    "all_same",
    "argfix",
    "ceildiv",
    "colored",
    "dedup",
    "fetch",
    "flatten",
    "fully_flatten",
    "get_child",
    "getenv",
    "make_tuple",
    "partition",
    "prod",
    "round_up",
    "tqdm",
    "trange",
]

T = TypeVar("T")
_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def prod(x: Iterable[Any]) -> Any:
    """The product of numbers or sizes; 1 of none.

    >>> prod((2, 3))
    6
    """
    return math.prod(x)


def flatten(l: Iterable[Iterable[T]]) -> list[T]:  # noqa: E741 -- tinygrad's name
    """Take one level of nesting away.

    >>> flatten([[1, 2], [3]])
    [1, 2, 3]
    """
    return list(itertools.chain.from_iterable(l))


def fully_flatten(l: Any) -> list[Any]:  # noqa: E741 -- tinygrad's name
    """Take all nesting away.

    >>> fully_flatten([1, (2, [3])])
    [1, 2, 3]
    """
    if isinstance(l, (list, tuple)):
        return flatten(map(fully_flatten, l))
    return [l]


def argfix(*x: Any) -> tuple[Any, ...]:
    """Arguments, which may be given as one tuple or list.

    >>> argfix((1, 2)), argfix(1, 2)
    ((1, 2), (1, 2))
    """
    return tuple(x[0]) if len(x) == 1 and isinstance(x[0], (tuple, list)) else x


def make_tuple(x: int | Sequence[int], cnt: int) -> tuple[int, ...]:
    """A number as often as asked for; a sequence as it is.

    >>> make_tuple(3, 2)
    (3, 3)
    """
    return (x,) * cnt if isinstance(x, int) else tuple(x)


def dedup(x: Iterable[T]) -> list[T]:
    """Each item once, in order.

    >>> dedup([2, 1, 2])
    [2, 1]
    """
    return list(dict.fromkeys(x))


def all_same(items: Sequence[Any]) -> bool:
    """Whether all items are equal.

    >>> all_same([1, 1]), all_same([])
    (True, True)
    """
    return all(each == items[0] for each in items)


def round_up(num: int, amt: int) -> int:
    """The least multiple of `amt` that is not below.

    >>> round_up(5, 4)
    8
    """
    return ceildiv(num, amt) * amt


def ceildiv(num: int, amt: int) -> int:
    """A quotient, rounded up.

    >>> ceildiv(5, 4)
    2
    """
    return -(num // -amt)


def partition(itr: Iterable[T], fxn: Callable[[T], Any]) -> tuple[list[T], list[T]]:
    """What a condition holds for, and the rest.

    >>> partition([1, 2, 3], lambda x: x > 1)
    ([2, 3], [1])
    """
    parts: tuple[list[T], list[T]] = [], []
    for each in itr:
        parts[0 if fxn(each) else 1].append(each)
    return parts


def get_child(obj: Any, key: str) -> Any:
    """What a dotted name of a state dict is in an object.

    >>> get_child({"a": [5]}, "a.0")
    5
    """
    for part in key.split("."):
        if part.isnumeric():
            obj = obj[int(part)]
        else:
            obj = obj[part] if isinstance(obj, dict) else getattr(obj, part)
    return obj


def colored(st: str, color: str | None, background: bool = False) -> str:
    """A text in a color of terminals; a name in capitals is the bright one.

    >>> colored("loss", "red")
    '\\x1b[31mloss\\x1b[0m'
    """
    if color is None:
        return st
    number = _COLORS.index(color.lower()) + 30 + 10 * background + 60 * (color == color.upper())
    return f"\x1b[{number}m{st}\x1b[0m"


class Timing:
    """Print how long a block took, in milliseconds.

    `on_exit` gives more words, of the time in nanoseconds.
    """

    def __init__(
        self, prefix: str = "", on_exit: Callable[[int], str] | None = None, enabled: bool = True
    ) -> None:
        self.prefix, self.on_exit, self.enabled = prefix, on_exit, enabled

    def __enter__(self) -> Timing:
        self.st = time.perf_counter_ns()
        return self

    def __exit__(self, *_: object) -> None:
        self.et = time.perf_counter_ns() - self.st
        if self.enabled:
            more = self.on_exit(self.et) if self.on_exit else ""
            print(f"{self.prefix}{self.et * 1e-6:6.2f} ms{more}")


class tqdm(Generic[T]):  # noqa: N801 -- tinygrad's name
    """Items with a bar on a terminal, whose title may change; a bar that is moved by hand.

    >>> for i in (bar := tqdm([1, 2])):
    ...     bar.set_description(f"step {i}")
    >>> with tqdm(total=10) as bar:
    ...     bar.update(4)
    >>> bar.n
    4
    """

    def __init__(
        self,
        iterable: Iterable[T] | None = None,
        desc: str = "",
        disable: bool | None = False,
        unit: str = "",
        unit_scale: Any = False,
        total: int | None = None,
        rate: int = 100,
    ) -> None:
        self.iterable, self.disable, self.n = iterable, bool(disable), 0
        if total is None and iterable is not None and hasattr(iterable, "__len__"):
            total = len(iterable)  # type: ignore[arg-type]
        self._bar = Progress(desc.removesuffix(": "), total, unit)
        self._is_open = False

    def __iter__(self) -> Iterator[T]:
        with self:
            for item in self.iterable or ():
                yield item
                self.update(1)

    def __enter__(self) -> tqdm[T]:
        if not self.disable and not self._is_open:
            self._is_open = True
            self._bar.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.update(0, close=True)

    def update(self, n: int = 0, close: bool = False) -> None:
        """So many more are done."""
        self.n += n
        if self.disable:
            return
        if not close:
            self.__enter__()
        self._bar.advance(n)
        if close and self._is_open:
            self._is_open = False
            self._bar.__exit__(None, None, None)

    def set_description(self, desc: str) -> None:
        """Change the title."""
        self._bar.title = desc

    @staticmethod
    def write(s: str) -> None:
        """Print a line beside the bar."""
        print(f"\r\033[K{s}")


def trange(n: int, **kwargs: Any) -> tqdm[int]:
    """The numbers below n with a bar.

    >>> list(trange(3))
    [0, 1, 2]
    """
    return tqdm(range(n), **kwargs)


def __getattr__(name: str) -> Any:
    """A setting by its name, as it is now."""
    if name.isupper() and not name.startswith("_"):
        try:
            return getattr(settings, name)
        except AttributeError:
            pass
    guess = None if name.startswith("_") else nearest(name, __all__)
    raise UnknownAttribute(
        f"module 'weft.helpers' has no attribute {name!r}",
        rule="" if name.startswith("_") else "it has " + ", ".join(__all__),
        fix=f"write weft.helpers.{guess}" if guess else "",
    )

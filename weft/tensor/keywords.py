"""Keyword arguments under the names of PyTorch and NumPy: `dim` for `axis`, `min` for `min_`.

`accept_other_names` wraps those methods of a class that have such an argument. A name that is
unknown under all of them is refused with the nearest one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from types import FunctionType
from typing import Any, Final

from weft.support.errors import ArgumentError
from weft.support.message import nearest

# What an argument is called elsewhere, by what it is called here.
_OTHER_NAMES: Final = {
    "axis": "dim",
    "dim": "axis",
    "keepdim": "keepdims",
    "min_": "min",
    "max_": "max",
    "sorted_": "sorted",
    "x": "other",
    "neg_slope": "negative_slope",
    "correction": "ddof",
    "Y": "target",
}
# Arguments of PyTorch that have no other name here: what to write.
_ELSEWHERE: Final = {
    "unbiased": "write correction=0 for unbiased=False, and nothing for True",
    "out": "write result.assign(...), or use the tensor that is returned",
    "inplace": "leave it out, or write the method with an underscore, as x.relu_()",
    "half_to_float": "write dtype=",
}


def accept_other_names(cls: type) -> None:
    """Let the methods of a class take keyword arguments by their other names."""
    for name, function in list(vars(cls).items()):
        if isinstance(function, FunctionType) and not name.startswith("_"):
            # Decorators hand arguments on as they are, but those that read the names themselves.
            code = unwrap(function, stop=lambda each: hasattr(each, "reads_names")).__code__
            known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
            others = {
                _OTHER_NAMES[each]: each
                for each in known
                if each in _OTHER_NAMES and _OTHER_NAMES[each] not in known
            }
            if others and not code.co_flags & 0x08:  # it takes no further keywords
                setattr(cls, name, _renaming(name, function, known, others))


def _renaming(
    name: str, function: Callable[..., Any], known: tuple[str, ...], others: dict[str, str]
) -> Callable[..., Any]:
    @wraps(function)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            for keyword in kwargs:
                if keyword not in known and keyword not in others:
                    raise _unknown(name, keyword, known, others)
            kwargs = {others.get(keyword, keyword): kwargs[keyword] for keyword in kwargs}
        return function(self, *args, **kwargs)

    return wrapped


def _unknown(
    name: str, keyword: str, known: tuple[str, ...], others: dict[str, str]
) -> ArgumentError:
    guess = nearest(keyword, (*known, *others))
    fix = _ELSEWHERE.get(keyword, f"write {guess}=" if guess else "")
    rule = "the arguments are " + ", ".join(known)
    return ArgumentError(f"{name}: unknown argument {keyword!r}", rule=rule, fix=fix)

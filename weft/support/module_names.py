"""Answers of a module that is asked for a name it does not have."""

from __future__ import annotations

import sys
from collections.abc import Callable

from weft.support.errors import UnknownAttribute
from weft.support.message import nearest


def missing_name(module: str) -> Callable[[str], object]:
    """The `__getattr__` of a module: it raises, with the name that was most likely meant."""

    def missing(name: str) -> object:
        what = f"module {module!r} has no attribute {name!r}"
        if name.startswith("_"):
            raise UnknownAttribute(what)
        known = [each for each in vars(sys.modules[module]) if not each.startswith("_")]
        guess = nearest(name, known)
        raise UnknownAttribute(what, fix=f"write {module}.{guess}" if guess else "")

    return missing

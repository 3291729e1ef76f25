"""Opts as text: those of a kernel in JSON, for caches and other processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import astuple
from typing import Any

from weft.codegen.opts.table import OPTS, Opt


def to_json(opts: Iterable[Opt]) -> str:
    """Opts as text, for caches and other processes.

    >>> from weft.codegen.opts.table import Split, Unroll
    >>> to_json((Split(0, 4), Unroll(1)))
    '[["Split", 0, 4, "clamp"], ["Unroll", 1, false]]'
    """
    return json.dumps([[type(opt).__name__, *astuple(opt)] for opt in opts])


def from_json(text: str) -> tuple[Opt, ...]:
    """The opts of a text.

    >>> from_json('[["Order", [1, 0]]]')
    (Order(ranges=(1, 0)),)
    >>> from_json('[["Stage", ["factor", 2, 1], [0, [1, 2]]]]')
    (Stage(node=('factor', 2, 1), ranges=(0, (1, 2)), space='local', layout=()),)
    """
    kinds: dict[str, Callable[..., Opt]] = {kind.__name__: kind for kind in OPTS}
    return tuple(kinds[name](*map(_as_tuples, details)) for name, *details in json.loads(text))


def _as_tuples(detail: Any) -> Any:
    return tuple(map(_as_tuples, detail)) if isinstance(detail, list) else detail

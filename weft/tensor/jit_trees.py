"""Nested arguments and results as a flat list of leaves and the structure around them.

Lists, tuples, dicts and dataclasses are structure; everything else is a leaf. A structure is
hashable, says where its leaves go, and makes the same containers anew.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple


class Structure(NamedTuple):
    """A container: its type, the keys of a dict or the fields of a dataclass, and its parts.

    The type of a leaf is None.
    """

    kind: type | None
    names: tuple[Any, ...] = ()
    parts: tuple[Structure, ...] = ()


LEAF = Structure(None)


def flatten(tree: Any, leaves: list[Any]) -> Structure:
    """The structure of a tree; its leaves are added to the list.

    >>> leaves = []
    >>> structure = flatten({"a": [1, 2], "b": 3}, leaves)
    >>> leaves, build(structure, iter(leaves))
    ([1, 2, 3], {'a': [1, 2], 'b': 3})
    """
    kind = type(tree)
    if kind is tuple or kind is list:
        return Structure(kind, (), tuple([flatten(part, leaves) for part in tree]))
    if isinstance(tree, dict):
        return Structure(kind, tuple(tree), tuple([flatten(tree[key], leaves) for key in tree]))
    if isinstance(tree, (tuple, list)):
        return Structure(kind, (), tuple([flatten(part, leaves) for part in tree]))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = tuple(field.name for field in dataclasses.fields(tree))
        parts = tuple([flatten(getattr(tree, name), leaves) for name in names])
        return Structure(kind, names, parts)
    leaves.append(tree)
    return LEAF


def build(structure: Structure, leaves: Iterator[Any]) -> Any:
    """The tree of a structure with these leaves."""
    kind, names, parts = structure
    if kind is None:
        return next(leaves)
    made = [build(part, leaves) for part in parts]
    if kind is tuple:
        return tuple(made)
    if kind is list:
        return made
    if issubclass(kind, dict):
        # A kind of dict may ask for arguments, such as a default factory.
        filled: Any = dict.__new__(kind)
        filled.update(zip(names, made, strict=True))
        return filled
    if names or dataclasses.is_dataclass(kind):
        copied: Any = object.__new__(kind)
        for name, value in zip(names, made, strict=True):
            object.__setattr__(copied, name, value)
        return copied
    make: Any = kind
    return make(*made) if hasattr(kind, "_fields") else make(made)


def paths(structure: Structure, name: str = "") -> Iterator[str]:
    """What each leaf is called: `batch[0]`, `options['rate']`, `state.weight`."""
    kind, names, parts = structure
    if kind is None:
        yield name
        return
    for number, part in enumerate(parts):
        if not names:
            yield from paths(part, f"{name}[{number}]")
        elif issubclass(kind, dict):
            yield from paths(part, f"{name}[{names[number]!r}]")
        else:
            yield from paths(part, f"{name}.{names[number]}")

"""Nested arguments and results as a flat list of leaves and the structure around them.

Lists, tuples, dicts and dataclasses are structure; everything else is a leaf. A structure is
hashable, says where its leaves go, and makes the same containers anew. Whatever takes or returns
tensors in containers (`jit`, `function`, the transforms, optimizers) uses this.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from weft.tensor.tensor import Tensor


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
    if kind is not Tensor and dataclasses.is_dataclass(tree) and not isinstance(tree, type):
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


def map_tensors(tree: Any, change: Callable[[Tensor], Any]) -> Any:
    """The same containers with every tensor changed; what is not a tensor stays."""
    leaves: list[Any] = []
    structure = flatten(tree, leaves)
    changed = [change(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    return build(structure, iter(changed))


def tensors_in(tree: Any) -> list[Tensor]:
    """All tensors of a tree, in order."""
    leaves: list[Any] = []
    flatten(tree, leaves)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def refill(tree: Any, values: Sequence[Any]) -> Any:
    """The tree with these values instead of its tensors, in order."""
    waiting = iter(values)
    return map_tensors(tree, lambda _: next(waiting))

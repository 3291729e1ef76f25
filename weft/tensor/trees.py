"""Tuples, lists and dicts of tensors, to any depth: what functions take and return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.tensor.tensor import Tensor


def map_tensors(tree: Any, change: Callable[[Tensor], Any]) -> Any:
    """The same tuples, lists and dicts with every tensor changed; what is no tensor stays."""
    if isinstance(tree, Tensor):
        return change(tree)
    if isinstance(tree, (tuple, list)):
        parts = [map_tensors(part, change) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if isinstance(tree, dict):
        return {key: map_tensors(part, change) for key, part in tree.items()}
    return tree


def tensors_in(tree: Any) -> list[Tensor]:
    """All tensors of a tree, in order."""
    found: list[Tensor] = []
    map_tensors(tree, found.append)
    return found


def refill(tree: Any, values: Sequence[Any]) -> Any:
    """The tree with these values in the places of its tensors, in order."""
    waiting = iter(values)
    return map_tensors(tree, lambda _: next(waiting))

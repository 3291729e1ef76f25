"""`rearrange`: shapes written as a formula of named axes, such as "b (h w) c -> b c h w"."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import known

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

Group = tuple[str, ...]
# What ... is outside of parentheses; inside it is a name.
_REST: Final[Group] = ("... alone",)


def rearrange(self: Tensor, formula: str, **sizes: int) -> Tensor:
    """Split, reorder and merge axes as a formula says; einops: rearrange.

    Names in parentheses are one axis of the tensor; 1 is an axis of size 1 and ... stands for the
    axes that have no name. A size that cannot be worked out is given by keyword.

    >>> from weft.tensor import Tensor
    >>> Tensor.zeros(2, 6, 3).rearrange("b (h w) c -> b c h w", h=2).shape
    (2, 3, 2, 3)
    """
    left, right = _sides(formula)
    left, right = _without_ellipsis(formula, left, right, self.ndim)
    _require_same_names(formula, left, right)
    if len(left) != self.ndim:
        raise ShapeError(
            f"rearrange: the formula has {len(left)} axes and the tensor {self.ndim}",
            facts=[("formula", formula), ("shape", self.shape)],
            rule="each group on the left is an axis of the tensor",
        )
    found: dict[str, int] = {}
    for group, size in zip(left, self.shape, strict=True):
        found |= _group_sizes(formula, group, known(size), sizes)
    for name in sizes:
        if name not in found:
            raise ArgumentError(
                f"rearrange: the formula has no axis {name!r}", facts=[("formula", formula)]
            )
    names = [name for group in left for name in group]
    split = self.reshape([found[name] for name in names])
    order = [names.index(name) for group in right for name in group]
    moved = split.permute(order) if order else split
    return moved.reshape([math.prod(found[name] for name in group) for group in right])


def _sides(formula: str) -> tuple[list[Group], list[Group]]:
    parts = formula.split("->")
    if len(parts) != 2:
        raise _no_formula(formula, "expected exactly one arrow")
    return _groups(formula, parts[0]), _groups(formula, parts[1])


def _groups(formula: str, side: str) -> list[Group]:
    """The axes of one side; an axis of size 1 is a group without names."""
    groups: list[Group] = []
    inner: list[str] | None = None
    for token in re.findall(r"\.\.\.|[A-Za-z_]\w*|1|\(|\)|\S", side):
        if token == "(" and inner is None:
            inner = []
        elif token == ")" and inner is not None:
            groups.append(tuple(inner))
            inner = None
        elif not (token.isidentifier() or token in ("...", "1")):
            raise _no_formula(formula, f"{token!r} stands where a name is expected")
        elif inner is not None:
            inner += [] if token == "1" else [token]
        else:
            groups.append(() if token == "1" else _REST if token == "..." else (token,))
    if inner is not None:
        raise _no_formula(formula, "a parenthesis is not closed")
    return groups


def _no_formula(formula: str, why: str) -> ArgumentError:
    return ArgumentError(
        f"rearrange: {why}",
        facts=[("formula", formula)],
        rule='a formula is "names -> names"; names in parentheses are one axis',
    )


def _without_ellipsis(
    formula: str, left: list[Group], right: list[Group], rank: int
) -> tuple[list[Group], list[Group]]:
    """Both sides with names for the axes that ... stands for."""
    count = left.count(_REST)
    if any("..." in group for group in left):
        raise _no_formula(formula, "... is inside parentheses on the left")
    if count > 1 or count != right.count(_REST) + sum(group.count("...") for group in right):
        raise _no_formula(formula, "... stands once on each side, or on none")
    hidden = tuple(f"...{i}" for i in range(rank - len(left) + 1))
    opened: list[Group] = []
    for group in left:
        opened += [(name,) for name in hidden] if group == _REST else [group]
    closed: list[Group] = []
    for group in right:
        if group == _REST:
            closed += [(name,) for name in hidden]
        else:
            spread = [hidden if name == "..." else (name,) for name in group]
            closed.append(tuple(name for names in spread for name in names))
    return opened, closed


def _require_same_names(formula: str, left: list[Group], right: list[Group]) -> None:
    sides = [sorted(name for group in side for name in group) for side in (left, right)]
    for side in sides:
        for name in side:
            if side.count(name) > 1:
                raise _no_formula(formula, f"the axis {name!r} is named twice on one side")
    for name in sorted(set(sides[0]) ^ set(sides[1])):
        raise _no_formula(formula, f"the axis {name!r} is on one side only")


def _group_sizes(formula: str, group: Group, size: int, sizes: dict[str, int]) -> dict[str, int]:
    """The sizes of the names that make up one axis; one of them may be worked out."""
    unknown = [name for name in group if name not in sizes]
    product = math.prod(sizes[name] for name in group if name in sizes)
    found = {name: sizes[name] for name in group if name in sizes}
    fits = product == size if not unknown else product > 0 and size % product == 0
    if len(unknown) > 1:
        raise ArgumentError(
            f"rearrange: the sizes of {' and '.join(unknown)} are not known",
            facts=[("formula", formula), ("axis", size)],
            rule="of the names in one parenthesis, all but one have a size",
            fix=f"give them by keyword: rearrange(..., {unknown[0]}=...)",
        )
    if not fits:
        raise ShapeError(
            f"rearrange: an axis of size {size} does not split as ({' '.join(group) or '1'})",
            facts=[("formula", formula), ("sizes", found)],
            rule="the sizes in a parenthesis multiply to that of the axis",
        )
    return found | dict.fromkeys(unknown, size // product)

"""Which named dimensions of a model are symbolic sizes, and the calls that run with them.

With limits that the user gives they are symbolic in every call. Without, the first sizes have a
trace of their own, so nobody pays for sizes that never change; with the first call of other sizes
all names become symbolic that can be, and that trace runs all sizes from then on. Sizes that come
often get a trace of their own too. What stands against a name is found by building the graph of
the model with symbolic sizes, which computes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from weft.ir.build import variable
from weft.ir.rooms import class_of
from weft.ir.sizes import normal_size
from weft.onnx.graph import Described
from weft.support.errors import ShapeError
from weft.tensor.tensor import Tensor
from weft.tensor.trace.sizes import resized, settle_sizes


class Limit(NamedTuple):
    """The least and the greatest value of a name, which are multiples of a number as all are."""

    least: int
    most: int
    multiple: int = 1

    def holds(self, size: int) -> bool:
        return self.least <= size <= self.most and size % self.multiple == 0


Limits = dict[str, Limit]
Sizes = Mapping[str, tuple[int, int]] | int
# The greatest size of a name where nobody says one. Memory follows the sizes of a call.
MOST: Final = 1 << 16
# Calls after which sizes get a trace of their own, and how many sizes may.
_OFTEN, _MOST_OFTEN, _MOST_COUNTED = 32, 8, 1024

# What is tried where windows do not fit into an axis of one element, or where an axis is halved
# and doubled again.
_LEAST, _MULTIPLES = (2, 4, 8, 16, 32, 64, 128), (2, 4, 8, 16, 32, 64)


class Problem(NamedTuple):
    """What stands against symbolic sizes, and what kind of limits could help."""

    reason: str
    kind: str = ""  # "least" or "multiple"


# Builds the graph for limits of names, with the sizes of now for all others, and keeps it if it is
# to be run; says what is wrong, or nothing.
Probe = Callable[[Limits, bool], Problem | None]


class NamedSizes:
    """The named dimensions of the inputs of a model, and which of them are symbolic."""

    def __init__(self, inputs: list[Described], given: Sizes | None) -> None:
        self._inputs = [_with_names(each) for each in inputs if each.shape is not None]
        names = {n: None for each in self._inputs for n in each.shape or () if isinstance(n, str)}
        self.names = list(names)
        self.is_given = given is not None
        self.limits: Limits = {}
        if isinstance(given, int):
            self.limits = dict.fromkeys(self.names, Limit(1, given))
        elif given is not None:
            self.limits = {name: Limit(*ends) for name, ends in given.items()}
        self.problems: dict[str, str] = {}  # what stands against a name
        self._variables = _identifiers(self.names)
        self._is_probed = self.is_given
        self._first: dict[str, int] | None = None
        self._calls: Counter[tuple[int, ...]] = Counter()
        self._often: set[tuple[int, ...]] = set()

    def sizes_of(self, values: Mapping[str, Any]) -> dict[str, int] | None:
        """The size of each name in these inputs; None where a name has two, or a symbolic one."""
        found: dict[str, int] = {}
        for said in self._inputs:
            value = values.get(said.name)
            if not isinstance(value, Tensor):
                continue
            for name, size in zip(said.shape or (), value.shape, strict=True):
                if not isinstance(name, str):
                    continue
                if not isinstance(size, int):
                    return None
                if found.setdefault(name, size) != size:
                    if self.is_given and name in self.limits:
                        raise ShapeError(f"onnx: {name!r} has the sizes {found[name]} and {size}")
                    return None
        return found

    def for_call(self, values: Mapping[str, Any], probe: Probe) -> dict[str, int]:
        """The names that are symbolic in a call, with their sizes; none if it is traced alone."""
        sizes = self.sizes_of(values)
        if sizes is None or not self.names:
            return {}
        if self.is_given:
            return self._within(sizes)
        if self._first is None:
            self._first = sizes
        if sizes == self._first:
            return {}
        if not self._is_probed and all(1 <= size <= MOST for size in sizes.values()):
            self.find_limits(sizes, probe)
        chosen = {name: size for name, size in sizes.items() if name in self.limits}
        is_new = any(self._first.get(name) != size for name, size in chosen.items())
        is_inside = all(self.limits[name].holds(size) for name, size in chosen.items())
        return {} if not is_new or not is_inside or self._is_often(sizes) else chosen

    def _within(self, sizes: dict[str, int]) -> dict[str, int]:
        chosen = {name: size for name, size in sizes.items() if name in self.limits}
        for name, size in chosen.items():
            if not self.limits[name].holds(size):
                low, high, _ = self.limits[name]
                raise ShapeError(
                    f"onnx: size {size} of {name!r}", rule=f"sizes of {name!r} are {low} to {high}"
                )
        return chosen

    def _is_often(self, sizes: dict[str, int]) -> bool:
        """Count a call; whether its sizes have a trace of their own."""
        key = tuple(sizes.values())
        if key not in self._often and len(self._often) < _MOST_OFTEN:
            if len(self._calls) > _MOST_COUNTED:
                self._calls.clear()
            self._calls[key] += 1
            if self._calls[key] >= _OFTEN:
                self._often.add(key)
                del self._calls[key]
        return key in self._often

    # ---- what can be symbolic

    def give_up(self, reason: str) -> None:
        """Trace each size alone from now on: what was built could not be run."""
        self.problems.update(dict.fromkeys(self.limits, reason))
        self.limits = {}

    def forget_problems(self) -> None:
        """Look for limits once more with the next sizes, where these gave none."""
        if not self.limits and not self.is_given:
            self._is_probed, self.problems = False, {}

    def find_limits(self, sizes: Mapping[str, int], probe: Probe) -> None:
        """Find the names that can be symbolic, and how large each may be."""
        self._is_probed = True
        every, problem = _fitting(sizes, probe)
        if problem is None:
            self.limits = every
            return
        found: Limits = {}
        for name in sizes:
            limit, self.problems[name] = self._most(name, sizes[name], probe)
            if limit is not None:
                found[name] = limit
                del self.problems[name]
        problem = probe(found, True) if found else None
        if problem is None:
            self.limits = found
        else:
            self.problems.update(dict.fromkeys(found, problem.reason))

    def _most(self, name: str, size: int, probe: Probe) -> tuple[Limit | None, str]:
        """The limits of a name, up to the greatest power of two; and what stands against more."""
        limits, why = _fitting({name: size}, lambda limits, _: probe(limits, False))
        if why is None:
            return limits[name], ""
        low, high = class_of(size), class_of(MOST)
        if low == high or probe({name: Limit(1, 1 << low)}, False):
            return None, why.reason
        while high - low > 1:
            middle = (low + high) // 2
            if probe({name: Limit(1, 1 << middle)}, False):
                high = middle
            else:
                low = middle
        return Limit(1, 1 << low), why.reason

    # ---- symbolic inputs, and results with the sizes of now

    def bound_inputs(
        self, values: Mapping[str, Any], sizes: Mapping[str, int], limits: Limits
    ) -> dict[str, Any]:
        """The inputs with symbolic sizes, bound to those of now."""
        bound = {
            name: _bound(self._variables[name], limit, sizes[name])
            for name, limit in limits.items()
        }
        result = dict(values)
        for said in self._inputs:
            value, names = values.get(said.name), said.shape or ()
            if isinstance(value, Tensor) and any(name in bound for name in names):
                shape = [
                    bound.get(name, size) if isinstance(name, str) else size
                    for name, size in zip(names, value.shape, strict=True)
                ]
                result[said.name] = resized(value, tuple(shape))
        return result


def _with_names(said: Described) -> Described:
    """An input whose dimensions without a name have one: that of their position."""
    shape = said.shape or ()
    named = [f"axis {axis}" if name is None else name for axis, name in enumerate(shape)]
    return replace(said, shape=tuple(named))


def _fitting(sizes: Mapping[str, int], probe: Probe) -> tuple[Limits, Problem | None]:
    """Limits with which these names are symbolic together, and what stands against the last.

    The least values grow while windows do not fit, and the multiples while sizes do not meet.
    """
    limits = dict.fromkeys(sizes, Limit(1, MOST))
    problem = probe(limits, True)
    while problem is not None:
        changed = {
            name: _tightened(limit, problem.kind, sizes[name]) for name, limit in limits.items()
        }
        if changed == limits:
            return limits, problem
        limits, problem = changed, probe(changed, False)
    tight = [name for name, limit in limits.items() if limit != Limit(1, MOST)]
    for name in tight if len(limits) > 1 else ():
        wider = {**limits, name: Limit(1, MOST)}
        if probe(wider, False) is None:
            limits = wider
    return limits, probe(limits, True) if tight else None


def _tightened(limit: Limit, kind: str, size: int) -> Limit:
    """The next limits to try; the same where there are none for such a size."""
    low, high, by = limit
    if kind == "least":
        larger = [each for each in _LEAST if low < each <= size]
        return Limit(max(larger[0], by), high, by) if larger else limit
    if kind == "multiple":
        larger = [each for each in _MULTIPLES if by < each and size % each == 0]
        return Limit(max(low, larger[0]), high, larger[0]) if larger else limit
    return limit


def _bound(name: str, limit: Limit, size: int) -> Any:
    """A size of now as a symbolic one: a variable, or a multiple of one."""
    low, high, by = limit
    return normal_size(variable(name, -(-low // by), high // by).bind(size // by) * by)


def settled(results: list[Any], inputs: Mapping[str, Any], given: Mapping[str, Any]) -> list[Any]:
    """The results of a symbolic call with the sizes of now; an input that comes back is itself."""
    same = {
        id(value._storage): given[name]
        for name, value in inputs.items()
        if isinstance(value, Tensor)
    }
    passed = [None if each._steps else same.get(id(each._storage)) for each in results]
    made = [each for each, own in zip(results, passed, strict=True) if own is None]
    ready = iter(settle_sizes(made))
    return [next(ready) if own is None else own for own in passed]


def _identifiers(names: list[str]) -> dict[str, str]:
    """A name of a variable for each dimension; dimensions may have names of any letters."""
    found: dict[str, str] = {}
    for name in names:
        plain = "".join(letter if letter.isalnum() else "_" for letter in name)
        while plain in found.values():
            plain += "_"
        found[name] = plain
    return found

"""Loops of a user's own over an axis: `scan` sequentially, `associative_scan` in parallel.

`associative_reduce` is the last prefix alone. All are graphs like any other: they nest,
differentiate, batch and jit. None unrolls: `scan` calls a body of one iteration twice for two,
that twice for four, and so on, so that a graph of n iterations has about log2(n) bodies;
`associative_scan` halves its axis until one element is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from weft.ir.build import call_results, param, tuple_of
from weft.ir.shapes import same_shape, shape_of
from weft.ir.uop import UOp
from weft.support.errors import ArgumentError, ArgumentTypeError, NotSupported, ShapeError
from weft.tensor.checks import axis_of, known
from weft.tensor.tensor import Tensor
from weft.tensor.trace.doubling import doubled, in_powers
from weft.tensor.trace.function import function
from weft.tensor.trace.linear_scans import try_linear_scan
from weft.tensor.trace.pure import Outside
from weft.tensor.trace.state import tracing
from weft.tensor.trace.tracing import Traced, close_over
from weft.tensor.trees import build, flatten, refill, tensors_in

# Neighbors that one kernel of a reduction combines: the data is read once, and little more.
NEIGHBORS: Final = 8


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, axis: int = 0, reverse: bool = False
) -> Any:
    """Return the reductions of all prefixes along an axis by an associative function.

    y[0] = x[0] and y[i] = fn(y[i - 1], x[i]). `elems` is a tensor, or a tree of tensors of one
    size along the axis; fn takes two such trees, whose slices it combines independently, and
    returns one with the same shapes and dtypes. The work is that of 2 n calls for one slice, in
    about 2 log2(n) kernels. The name in JAX is jax.lax.associative_scan.

    >>> associative_scan(lambda a, b: a + b, Tensor([1, 2, 3, 4])).tolist()
    [1, 3, 6, 10]

    A linear recurrence h[i] = a[i] h[i - 1] + b[i]:

    >>> def join(first, then):
    ...     return first[0] * then[0], then[0] * first[1] + then[1]
    >>> a, b = Tensor([0.5, 0.5, 0.5]), Tensor([1.0, 1.0, 1.0])
    >>> associative_scan(join, (a, b))[1].tolist()
    [1.0, 1.5, 1.75]
    """
    leaves: list[Any] = []
    structure = flatten(elems, leaves)
    tensors = _require_tensors("associative_scan", leaves)
    axes = [axis_of("associative_scan", axis, each.ndim) for each in tensors]
    size = _common_size("associative_scan", tensors, axes)
    rows = [each.movedim(at, 0) for each, at in zip(tensors, axes, strict=True)]
    rows = [each.flip(0) for each in rows] if reverse else rows

    def combined(first: list[Tensor], then: list[Tensor]) -> list[Tensor]:
        made = fn(build(structure, iter(first)), build(structure, iter(then)))
        found = tensors_in(made)
        _require_alike("associative_scan: fn", then, found)
        return found

    done = try_linear_scan(combined, rows, size) or _prefixes(combined, rows, size)
    done = [each.flip(0) for each in done] if reverse else done
    moved = [each.movedim(0, at) for each, at in zip(done, axes, strict=True)]
    return build(structure, iter(moved))


def _prefixes(
    fn: Callable[[list[Tensor], list[Tensor]], list[Tensor]], rows: list[Tensor], size: int
) -> list[Tensor]:
    """The scan along axis 0: of pairs first, whose scan is every second element of the result.

    Each level is a call, forward and backward, so that no level is computed inside another one.
    """
    if size < 2:
        return rows

    @function
    def pairs(rows: list[Tensor]) -> list[Tensor]:
        return fn([each[: size - 1 : 2] for each in rows], [each[1::2] for each in rows])

    @function
    def between(rows: list[Tensor], odd: list[Tensor]) -> list[Tensor]:
        even = [each[:1] for each in rows]
        if size > 2:
            before = [each[: (size - 1) // 2] for each in odd]
            rest = fn(before, [each[2::2] for each in rows])
            even = [a.cat(b) for a, b in zip(even, rest, strict=True)]
        return [_interleaved(a, b, size) for a, b in zip(even, odd, strict=True)]

    found: list[Tensor] = between(rows, _prefixes(fn, pairs(rows), size // 2))
    return found


def associative_reduce(fn: Callable[[Any, Any], Any], elems: Any, axis: int = 0) -> Any:
    """Return the reduction along an axis by an associative function of your own.

    `elems` is a tensor, or a tree of tensors of one size along the axis, which is dropped. fn
    takes two such trees, whose slices it combines independently, in the order of the axis, and
    returns one with the same shapes and dtypes. A kernel combines eight neighbors, so there are
    about log8(n) kernels. `jax.lax.reduce` is the nearest in JAX; in PyTorch it is the last
    element of `associative_scan`.

    >>> associative_reduce(lambda a, b: a * b, Tensor([1, 2, 3, 4])).item()
    24

    The greatest element and where it is:

    >>> def join(a, b):
    ...     is_first = a[0] >= b[0]
    ...     return is_first.where(a[0], b[0]), is_first.where(a[1], b[1])
    >>> values = Tensor([3.0, 7.0, 1.0])
    >>> [x.item() for x in associative_reduce(join, (values, Tensor.arange(3)))]
    [7.0, 1]
    """
    leaves: list[Any] = []
    structure = flatten(elems, leaves)
    tensors = _require_tensors("associative_reduce", leaves)
    axes = [axis_of("associative_reduce", axis, each.ndim) for each in tensors]
    size = _common_size("associative_reduce", tensors, axes)
    if not size:
        raise ShapeError(
            "associative_reduce: an empty axis has no reduction",
            facts=[("shape", each.shape) for each in tensors],
            rule="there is at least one element along the axis",
        )

    def combined(first: list[Tensor], then: list[Tensor]) -> list[Tensor]:
        made = fn(build(structure, iter(first)), build(structure, iter(then)))
        found = tensors_in(made)
        _require_alike("associative_reduce: fn", then, found)
        return found

    rows = [each.movedim(at, 0) for each, at in zip(tensors, axes, strict=True)]
    while size > 1:
        rows = _combined_neighbors(combined, rows, size)
        size = -(-size // NEIGHBORS)
    return build(structure, iter([each.squeeze(0) for each in rows]))


def _combined_neighbors(
    fn: Callable[[list[Tensor], list[Tensor]], list[Tensor]], rows: list[Tensor], size: int
) -> list[Tensor]:
    """Neighbors combined into one element each, those that are left over into another.

    Each level is a call, forward and backward, so that no level is computed inside another one.
    """
    whole = size - size % NEIGHBORS

    def tree(parts: list[list[Tensor]]) -> list[Tensor]:
        while len(parts) > 1:
            pairs = [fn(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
            parts = pairs + parts[len(parts) & ~1 :]
        return parts[0]

    @function
    def level(rows: list[Tensor]) -> list[Tensor]:
        found: list[list[Tensor]] = []
        if whole:
            apart = [
                each[:whole].reshape([whole // NEIGHBORS, NEIGHBORS, *each.shape[1:]])
                for each in rows
            ]
            found.append(tree([[each[:, at] for each in apart] for at in range(NEIGHBORS)]))
        if whole < size:
            found.append(tree([[each[at : at + 1] for each in rows] for at in range(whole, size)]))
        return [_joined(list(each)) for each in zip(*found, strict=True)]

    made: list[Tensor] = level(rows)
    return made


def _interleaved(even: Tensor, odd: Tensor, size: int) -> Tensor:
    """The elements of both interleaved, beginning with `even`, which may have one more."""
    missing = known(even.shape[0]) - known(odd.shape[0])
    odd = odd.pad([(0, missing), *[(0, 0)] * (odd.ndim - 1)])
    return even.stack(odd, dim=1).flatten(0, 1)[:size]


def scan(
    fn: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Call carry, y = fn(carry, x) for each x of `xs` along axis 0; return the carry and all y.

    Carry, x and y are trees of tensors, and xs and ys have one axis more, in front. Without xs
    there are `length` iterations and x is None. In reverse the last x is first, and ys stay in
    place. fn is traced once: what it reads besides is the same in every iteration, and it writes
    to nothing. The gradient computes carries again, n log2(n) times in all, instead of keeping
    them. The name in JAX is jax.lax.scan.

    >>> total, sums = scan(lambda c, x: (c + x, c * x), Tensor(0.0), Tensor([1.0, 2.0, 3.0]))
    >>> total.item(), sums.tolist()
    (6.0, [0.0, 2.0, 9.0])
    """
    states, inputs = tensors_in(carry), tensors_in(xs)
    if not states and not inputs:
        raise ArgumentTypeError("scan: there is no tensor", rule="carry or xs hold a tensor")
    size = _common_size("scan", inputs, [0] * len(inputs), length)
    inputs = [each.flip(0) for each in inputs] if reverse else inputs
    iteration = _traced(fn, carry, xs)
    values = [each.uop for each in states]
    parts: list[list[Tensor]] = []
    bodies = doubled(iteration.body, size, partial(_twice, iteration))
    for bit, first in in_powers(size):
        chunk = [each[first : first + (1 << bit)] for each in inputs]
        results = _called(bodies[bit], iteration, values, chunk)
        values = [each.uop for each in results[: iteration.states]]
        parts.append(results[iteration.states :])
    final = [each._new(value) for each, value in zip(states, values, strict=True)]
    made = (
        [_joined(list(each)) for each in zip(*parts, strict=True)] if parts else iteration.empty()
    )
    made = [each.flip(0) for each in made] if reverse else made
    return refill(carry, final), refill(iteration.results, made)


class _Iteration(NamedTuple):
    """One iteration as a body over (carry, x with an axis of size 1, what else it reads)."""

    body: UOp
    results: Any  # the tree of y
    outputs: list[Tensor]
    parameters: list[UOp]
    states: int
    others: list[UOp]
    like: Tensor

    def empty(self) -> list[Tensor]:
        return [
            each.__class__.zeros(0, *each.shape, dtype=each.dtype, device=each.device)
            for each in self.outputs
        ]


def _traced(fn: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any) -> _Iteration:
    traced = Traced()
    states, inputs = tensors_in(carry), tensors_in(xs)
    outside = Outside()
    inside = [each._new(traced.enter(each.uop)) for each in states]
    rows = [each._new(param_like(traced, each)) for each in inputs]
    tracing.depth += 1  # a jitted function inside is part of this one
    try:
        made = fn(refill(carry, inside), refill(xs, [each.squeeze(0) for each in rows]))
    finally:
        tracing.depth -= 1
    if not isinstance(made, tuple) or len(made) != 2:
        raise ArgumentTypeError(
            f"scan: fn returned {type(made).__name__}", rule="fn returns a carry and a y"
        )
    if outside.written(traced.parameters):
        outside.undo(traced.parameters)  # as if it had not been called
        raise NotSupported(
            "scan: fn writes to a tensor",
            rule="an iteration gives its carry and y, and nothing else",
        )
    after, outputs = tensors_in(made[0]), tensors_in(made[1])
    _require_alike("scan: the carry", states, after)
    nodes = [each.uop for each in after] + [each.unsqueeze(0).uop for each in outputs]
    bodies, arguments = close_over(nodes, traced)
    body = tuple_of(bodies)
    others = arguments[len(traced.arguments) :]
    parameters = [
        param(slot, each.dtype, each.shape) for slot, each in enumerate([*inside, *rows])
    ]
    like = (states or inputs)[0]
    return _Iteration(body, made[1], outputs, parameters, len(states), others, like)


def param_like(traced: Traced, rows: Tensor) -> UOp:
    """What stands for one x inside: a slice of size 1."""
    return traced.enter(rows[:1].uop if known(rows.shape[0]) else rows.pad(_one_more(rows)).uop)


def _one_more(rows: Tensor) -> list[tuple[int, int]]:
    return [(0, 1), *[(0, 0)] * (rows.ndim - 1)]


def _twice(iteration: _Iteration, body: UOp, half: int) -> UOp:
    """The body of 2 * half iterations."""
    state, rows = (
        iteration.parameters[: iteration.states],
        iteration.parameters[iteration.states :],
    )
    others = [
        param(slot, each.dtype, shape_of(each))
        for slot, each in enumerate(iteration.others, len(iteration.parameters))
    ]
    whole = [
        iteration.like._new(param(slot, each.dtype, (2 * half, *shape_of(each)[1:])))
        for slot, each in enumerate(rows, iteration.states)
    ]
    inner = iteration._replace(others=others)
    done = _called(body, inner, state, [each[:half] for each in whole])
    middle = [each.uop for each in done[: iteration.states]]
    then = _called(body, inner, middle, [each[half:] for each in whole])
    pairs = zip(done[iteration.states :], then[iteration.states :], strict=True)
    results = [*then[: iteration.states], *(a.cat(b) for a, b in pairs)]
    return tuple_of(each.uop for each in results)


def _called(
    body: UOp, iteration: _Iteration, state: Sequence[UOp], rows: list[Tensor]
) -> list[Tensor]:
    """The results of a body: the carry, then the ys."""
    arguments = (*state, *(each.uop for each in rows), *iteration.others)
    return [iteration.like._new(part) for part in call_results(body, *arguments)]


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0].cat(*parts[1:]) if len(parts) > 1 else parts[0]


def _require_tensors(name: str, leaves: list[Any]) -> list[Tensor]:
    if not leaves or not all(isinstance(each, Tensor) for each in leaves):
        other = next(
            (type(each).__name__ for each in leaves if not isinstance(each, Tensor)), None
        )
        raise ArgumentTypeError(
            f"{name}: expected tensors, got {other or 'none'}", rule="elems is a tree of tensors"
        )
    return leaves


def _common_size(
    name: str, tensors: list[Tensor], axes: list[int], length: int | None = None
) -> int:
    """The size along the axis, which all tensors share, and which `length` is if it is given."""
    sizes = {
        known(each.shape[axis]) if each.ndim else 0
        for each, axis in zip(tensors, axes, strict=True)
    }
    if any(not each.ndim for each in tensors):
        raise ShapeError(f"{name}: a tensor without axes", rule="every tensor has the axis")
    sizes |= set() if length is None else {length}
    if len(sizes) != 1:
        raise ArgumentError(
            f"{name}: the sizes along the axis are {sorted(sizes)}"
            if sizes
            else f"{name}: nothing says how many iterations there are",
            facts=[("shape", each.shape) for each in tensors],
            rule="all tensors have one size along the axis, and length is that size",
        )
    return sizes.pop()


def _require_alike(name: str, given: list[Tensor], made: list[Tensor]) -> None:
    if len(given) != len(made):
        raise ArgumentError(
            f"{name}: {len(given)} tensors went in and {len(made)} came out",
            rule="what comes out is a tree like the one that goes in",
        )
    for before, after in zip(given, made, strict=True):
        if not same_shape(before.shape, after.shape) or before.dtype is not after.dtype:
            raise ShapeError(
                f"{name}: a shape or dtype changes",
                facts=[
                    ("goes in", before.shape, before.dtype.name),
                    ("comes out", after.shape, after.dtype.name),
                ],
                rule="what comes out has the shapes and dtypes of what goes in",
            )

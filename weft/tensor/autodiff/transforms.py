"""Functions of functions: `grad`, `value_and_grad`, `vjp`, `jvp`, `jacobian`, `hessian`, `vmap`,
`checkpoint`, with the meaning they have in jax and torch.func.

A function is traced on parameters that stand for its arguments, so that only the arguments count:
a tensor that the function reads besides is a constant, even if it is also an argument. The graph
that comes out is differentiated or batched, and then the arguments replace the
parameters. So what one transform makes is ordinary tensor code to the next, and all of them nest,
also with `function`. Arguments and results are tensors, or tuples, lists and dicts of them;
whatever else is passed stays as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft.gradient.batch import batch
from weft.gradient.reverse import gradients
from weft.ir import movement
from weft.ir.dtypes import FLOAT
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import substitute
from weft.support.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from weft.tensor.checks import axis_of, known
from weft.tensor.tensor import Tensor
from weft.tensor.trace.function import function
from weft.tensor.trace.pure import Outside, pure
from weft.tensor.trace.tracing import Traced, placeholder
from weft.tensor.trees import map_tensors, refill, tensors_in

Function = Callable[..., Any]
Argnums = int | Sequence[int]


class _Trace:
    """A function called on placeholders: its results, and what the placeholders stand for."""

    def __init__(self, wrapped: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self._traced = Traced()
        self._outside = Outside()
        try:
            results = wrapped(*[map_tensors(each, self._enter) for each in args], **kwargs)
        except BaseException:  # what it wrote before stays written
            self._outside.settle(self._traced.stands_for)
            raise
        self.stands_for = self._traced.stands_for
        # Values of their own: `settle_writes` must not reach them through memory.
        self.results = map_tensors(results, lambda t: t._new(t.uop))

    def _enter(self, tensor: Tensor) -> Tensor:
        made = tensor._new(self._traced.enter(tensor.uop))
        made.requires_grad = tensor._wants
        return made

    def settled(self, tree: Any, also: dict[UOp, UOp] | None = None) -> Any:
        """A tree of results in terms of the arguments."""
        mapping = {**self.stands_for, **(also or {})}
        return map_tensors(tree, lambda t: t._new(substitute(t.uop, mapping)))

    def purify(self) -> None:
        """Have results without writes: as values they are linear in what was written, too."""
        results = tensors_in(self.results)
        made = pure([each.uop for each in results], self.stands_for)
        values = [each._new(node) for each, node in zip(results, made, strict=True)]
        self.results = refill(self.results, values)

    def settle_writes(self) -> None:
        """What the function wrote to tensors of others is in terms of the arguments, too."""
        self._outside.settle(self.stands_for)


def _chosen(name: str, args: Sequence[Any], argnums: Argnums) -> list[int]:
    """The positions of the arguments to differentiate."""
    wanted = [argnums] if isinstance(argnums, int) else list(argnums)
    for position in wanted:
        if not -len(args) <= position < len(args):
            raise ArgumentError(
                f"{name}: there is no argument {position}",
                facts=[("arguments", str(len(args)))],
                rule="argnums are positions of arguments that are passed by position",
            )
        for tensor in tensors_in(args[position]):
            if not tensor.dtype.is_inexact:
                raise DTypeError(
                    f"{name}: argument {position} has a tensor of {tensor.dtype.name}",
                    rule="only floats have gradients",
                )
        if not tensors_in(args[position]):
            raise ArgumentTypeError(
                f"{name}: argument {position} is {type(args[position]).__name__}",
                rule="what is differentiated is a tensor, or a tuple, list or dict of tensors",
            )
    return [position % len(args) for position in wanted]


class _Differentiated:
    """A trace whose parameters, those of the chosen arguments, are the targets of gradients."""

    def __init__(
        self, name: str, wrapped: Function, args: Sequence[Any], argnums: Argnums, **kwargs: Any
    ) -> None:
        self.positions = _chosen(name, args, argnums)
        self.is_one = isinstance(argnums, int)
        self.args = args
        inner = list(args)

        def partial(*chosen: Any) -> Any:
            for position, value in zip(self.positions, chosen, strict=True):
                inner[position] = value
            return wrapped(*inner, **kwargs)

        self.trace = _Trace(partial, [args[position] for position in self.positions], {})
        self.targets = list(self.trace.stands_for)

    def gradients(self, outputs: Sequence[Tensor], seeds: Sequence[UOp]) -> list[UOp]:
        """The gradient for each target of sum(seed * output) over all outputs; zeros for none."""
        total: list[UOp | None] = [None] * len(self.targets)
        for output, seed in zip(outputs, seeds, strict=True):
            for number, part in enumerate(gradients(output.uop, self.targets, seed)):
                known_part = total[number]
                if part is not None:
                    total[number] = part if known_part is None else known_part + part
        return [
            movement.full(target.dtype, 0, shape_of(target)) if part is None else part
            for part, target in zip(total, self.targets, strict=True)
        ]

    def arranged(self, values: Sequence[Any]) -> Any:
        """One value for each target, in the structure of the chosen arguments."""
        chosen = tuple(self.args[position] for position in self.positions)
        filled = refill(chosen, values)
        return filled[0] if self.is_one else filled

    def tensors(self, found: Sequence[UOp]) -> list[Tensor]:
        """Gradients of the targets as tensors beside the arguments."""
        own = [t for position in self.positions for t in tensors_in(self.args[position])]
        return [t._new(node) for t, node in zip(own, found, strict=True)]


def _scalar_output(name: str, results: Any) -> Tensor:
    if not isinstance(results, Tensor):
        raise ArgumentTypeError(
            f"{name}: the function returned {type(results).__name__}",
            rule=f"{name} differentiates a function that returns one number as a tensor",
            fix="return (value, other) and pass has_aux=True to return more",
        )
    if results.numel() != 1 or results.dtype.kind != FLOAT:
        raise ShapeError(
            f"{name}: the function returned {results.dtype.name} {results.shape}",
            rule=f"{name} differentiates a function whose result is one float",
            fix="reduce it, for example with sum() or mean(), or use jacobian",
        )
    return results


def value_and_grad(
    wrapped: Function, argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """Make a function that returns the value of another and its gradient.

    The gradient has the structure of the argument `argnums`; of several, it is a tuple. With
    `has_aux` the function returns (value, other), and so does the first of the pair.

    >>> value, slope = value_and_grad(lambda x: (x * x).sum())(Tensor([1.0, 3.0]))
    >>> value.item(), slope.tolist()
    (10.0, [2.0, 6.0])
    """

    @functools.wraps(wrapped)
    def transformed(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        found = _Differentiated("grad", wrapped, args, argnums, **kwargs)
        results = found.trace.results
        output = _scalar_output("grad", results[0] if has_aux else results)
        seed = movement.full(output.dtype, 1, output.shape)
        slopes = found.tensors(found.gradients([output], [seed]))
        found.trace.settle_writes()
        value, settled = found.trace.settled((results, tuple(slopes)))
        return value, found.arranged(settled)

    return transformed


def grad(wrapped: Function, argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Make a function that returns the gradient of another, whose result is one number.

    With `has_aux` the function returns (value, other), and the new one (gradient, other).

    >>> grad(grad(lambda x: x * x * x))(Tensor(2.0)).item()
    12.0
    """
    both = value_and_grad(wrapped, argnums, has_aux)

    @functools.wraps(wrapped)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        value, slopes = both(*args, **kwargs)
        return (slopes, value[1]) if has_aux else slopes

    return transformed


def vjp(wrapped: Function, *primals: Any) -> tuple[Any, Callable[..., tuple[Any, ...]]]:
    """Return the results of a function, and a function from their gradients to those of primals.

    The second takes what has the structure of the results, and returns a tuple with a gradient for
    each of the primals.

    >>> value, pull_back = vjp(lambda x, y: x * y, Tensor([2.0]), Tensor([3.0]))
    >>> [part.tolist() for part in pull_back(Tensor([10.0]))]
    [[30.0], [20.0]]
    """
    found = _Differentiated("vjp", wrapped, primals, tuple(range(len(primals))))
    outputs = tensors_in(found.trace.results)
    found.trace.settle_writes()

    def pull_back(cotangents: Any) -> tuple[Any, ...]:
        seeds = _seeds("vjp", outputs, tensors_in(cotangents))
        slopes = found.tensors(found.gradients(outputs, seeds))
        arranged: tuple[Any, ...] = found.arranged(found.trace.settled(tuple(slopes)))
        return arranged

    return found.trace.settled(found.trace.results), pull_back


def _seeds(name: str, outputs: Sequence[Tensor], given: Sequence[Tensor]) -> list[UOp]:
    """Gradients of outputs, or changes of inputs, in the dtypes of what they belong to."""
    if [each.shape for each in given] != [each.shape for each in outputs]:
        raise ShapeError(
            f"{name}: what is given does not fit",
            facts=[
                ("given", tuple(each.shape for each in given)),
                ("needed", tuple(each.shape for each in outputs)),
            ],
            rule="there is a tensor of the same shape for each",
        )
    return [each.cast(out.dtype).uop for each, out in zip(given, outputs, strict=True)]


def jvp(wrapped: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return the results of a function, and how they change when the primals change by tangents.

    It is found by two reverse passes: the gradient is linear in what it starts from, and the
    gradient of that is the change.

    >>> value, change = jvp(lambda x: x * x, (Tensor([3.0]),), (Tensor([1.0]),))
    >>> value.tolist(), change.tolist()
    ([9.0], [6.0])
    """
    found = _Differentiated("jvp", wrapped, tuple(primals), tuple(range(len(primals))))
    own = [t for each in primals for t in tensors_in(each)]
    changes = _seeds("jvp", own, tensors_in(tuple(tangents)))
    found.trace.settle_writes()
    found.trace.purify()
    outputs = tensors_in(found.trace.results)
    floats = [each for each in outputs if each.dtype.is_inexact]
    seeds = [placeholder(each.uop) for each in floats]
    # A linear function has one slope, and some are written in a way that has none at 0.
    ones = {seed: movement.full(seed.dtype, 1, shape_of(seed)) for seed in seeds}
    slopes = found.gradients(floats, seeds)
    moved: dict[UOp, UOp | None] = dict.fromkeys(seeds)
    for slope, change in zip(slopes, changes, strict=True):
        for seed, part in zip(seeds, gradients(slope, seeds, change), strict=True):
            before = moved[seed]
            if part is not None:
                moved[seed] = part if before is None else before + part
    by_output = {id(each): moved[seed] for each, seed in zip(floats, seeds, strict=True)}
    results = []
    for each in outputs:
        node = by_output.get(id(each))
        results.append(each.zeros_like() if node is None else each._new(node))
    trace = found.trace
    return trace.settled(trace.results), trace.settled(refill(trace.results, results), ones)


def jacobian(wrapped: Function, argnums: Argnums = 0) -> Callable[..., Any]:
    """Make a function that returns all derivatives of the results of another.

    For a result of shape s and an argument of shape t they are a tensor of shape (*s, *t). Several
    results give a structure of those of each. One reverse pass runs for all elements of a result
    at once, as a batch. The name in jax and torch.func is jacrev.

    >>> jacobian(lambda x: x * x)(Tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    @functools.wraps(wrapped)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        found = _Differentiated("jacobian", wrapped, args, argnums, **kwargs)
        found.trace.settle_writes()

        def of_output(output: Tensor) -> Any:
            size = output.numel()
            seed = placeholder(output.uop)
            slopes = found.gradients([output], [seed])
            basis = Tensor.eye(size, dtype=output.dtype, device=output.device)
            rows = batch(slopes, {seed: basis.reshape((size, *output.shape)).uop}, size)
            shaped = [movement.reshape(row, (*output.shape, *shape_of(row)[1:])) for row in rows]
            settled = found.trace.settled(tuple(found.tensors(shaped)))
            return found.arranged(settled)

        return map_tensors(found.trace.results, of_output)

    return transformed


def hessian(wrapped: Function, argnums: Argnums = 0) -> Callable[..., Any]:
    """Make a function that returns all second derivatives: the jacobian of the jacobian.

    >>> hessian(lambda x: (x * x * x).sum())(Tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacobian(jacobian(wrapped, argnums), argnums)


def vmap(wrapped: Function, in_dims: Any = 0, out_dims: Any = 0) -> Function:
    """Make a function of batches out of a function of one example.

    `in_dims` names the axis of the batch for each argument, or for each tensor in a structure like
    the arguments; None means that an argument is the same for all examples. `out_dims` is where
    the results have it. The function is traced on one example, and its graph becomes one for all:
    there is no loop. Random numbers that the function draws are the same for all examples; draw
    them outside and map over them to have different ones. Writing to tensors of others inside
    needs values that are the same for all.

    >>> dot = vmap(lambda x, y: (x * y).sum(), in_dims=(0, None))
    >>> dot(Tensor([[1, 2], [3, 4]]), Tensor([1, 1])).tolist()
    [3, 7]
    """

    @functools.wraps(wrapped)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        axes = _axes_of(args, in_dims)
        size = _batch_size(args, axes)
        traced = Traced()
        rest = iter(axes)

        def enter(tensor: Tensor) -> Tensor:
            axis = next(rest)
            if axis is None:
                return tensor
            front = tensor.movedim(axis_of("vmap", axis, tensor.ndim), 0).uop
            return tensor._new(traced.enter(front, shape_of(front)[1:]))

        outside = Outside()
        try:
            results = wrapped(*[map_tensors(each, enter) for each in args], **kwargs)
            batched = traced.stands_for
            _require_no_writes(outside, batched)
        except BaseException:
            outside.undo(traced.parameters)
            raise
        outputs = tensors_in(results)
        made = batch(pure([each.uop for each in outputs], batched), batched, size)
        ends = _spread(out_dims, results)
        moved = [
            each._new(node).movedim(0, axis)._same()
            for each, node, axis in zip(outputs, made, ends, strict=True)
        ]
        return refill(results, moved)

    return transformed


def _spread(dims: Any, tree: Any) -> list[Any]:
    """An axis for each tensor of a tree: one for all, or in a structure like the tree's."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(tensors_in(tree))
    if isinstance(dims, dict) and isinstance(tree, dict) and dims.keys() == tree.keys():
        return [axis for key, part in tree.items() for axis in _spread(dims[key], part)]
    is_sequence = isinstance(dims, (tuple, list)) and isinstance(tree, (tuple, list))
    if is_sequence and len(dims) == len(tree):
        return [axis for one, part in zip(dims, tree, strict=True) for axis in _spread(one, part)]
    raise ArgumentError(
        "vmap: in_dims or out_dims has another structure than the values",
        facts=[("axes", repr(dims)), ("values", type(tree).__name__)],
        rule="it is an int or None for all, or a tuple, list or dict as the values are",
    )


def _axes_of(args: tuple[Any, ...], in_dims: Any) -> list[int | None]:
    return _spread(list(in_dims) if isinstance(in_dims, tuple) else in_dims, list(args))


def _batch_size(args: tuple[Any, ...], axes: Sequence[int | None]) -> int:
    """The size that all batched axes have."""
    sizes: list[int] = []
    for tensor, axis in zip(tensors_in(list(args)), axes, strict=True):
        if axis is not None:
            if not tensor.ndim:
                raise ShapeError(
                    "vmap: an argument without axes has no batch",
                    rule="a batched argument has an axis for the batch",
                    fix="pass None in in_dims for what is the same for all examples",
                )
            sizes.append(known(tensor.shape[axis_of("vmap", axis, tensor.ndim)]))
    if not sizes:
        raise ArgumentError(
            "vmap: no argument is batched", rule="at least one tensor has an axis in in_dims"
        )
    if len(set(sizes)) > 1:
        raise ShapeError(
            f"vmap: batches differ in size ({' and '.join(map(str, dict.fromkeys(sizes)))})",
            rule="all batched axes have one size",
        )
    return sizes[0]


def _require_no_writes(outside: Outside, batched: dict[UOp, UOp]) -> None:
    """Refuse a write to memory of a value that differs between examples."""
    for storage in outside.written(batched):
        storage.take_memory()
        batch([storage.uop], batched, 1)  # says what cannot be batched, and where


def checkpoint(wrapped: Function) -> Function:
    """Make a function whose inner values are computed again for its gradient, not kept.

    The forward pass keeps the arguments and the results alone: memory for time. A call is a
    boundary that nothing is shared across, and the derivative of a call is another call, with the
    arguments and what it needs of the first computed anew; so this is `function`, said for its
    effect on memory.

    >>> layer = checkpoint(lambda x: (x.exp() + 1).log())
    >>> x = Tensor([0.0])
    >>> layer(x).sum().gradient(x)[0].tolist()
    [0.5]
    """
    return function(wrapped)

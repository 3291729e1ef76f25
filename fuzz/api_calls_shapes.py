"""Calls of `fuzz.api` that move, pick, join and write elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fuzz.api_calls import MAKERS, add_maker, method, nn, torch
from fuzz.api_draw import EVERY, Call, Draw, Function, show
from weft.tensor import Tensor


def _views(x: Any) -> str:
    return f"{x.dtype} {x.shape}"


def _movement(
    name: str, draw_arguments: Callable[[Draw, Any], tuple[Any, ...]], **limits: Any
) -> None:
    def make(draw: Draw) -> Call:
        x = draw.values(draw.shape(**limits), draw.choice(("float32", "int64", "bool")))
        args = draw_arguments(draw, x)
        theirs = method(name, *args)
        text = f"{_views(x)} {show(*args)}"
        return Call(name, method(name, *args), theirs, [x], text, 0, x.dtype.kind == "f")

    MAKERS[name] = make


def _factors(draw: Draw, x: Any) -> tuple[Any, ...]:
    """A shape with as many elements; one size may be -1."""
    sizes: list[int] = []
    rest = x.size
    while rest > 1 and len(sizes) < 4:
        factor = draw.choice([f for f in range(1, rest + 1) if rest % f == 0])
        sizes.append(factor)
        rest //= factor
    shape = [*sizes, rest]
    if x.size and draw.flag():
        shape[draw.integer(0, len(shape) - 1)] = -1
    return (tuple(shape),)


def _permutation(draw: Draw, x: Any) -> tuple[Any, ...]:
    return (tuple(draw.random.sample(range(x.ndim), x.ndim)),)


def _expansion(draw: Draw, x: Any) -> tuple[Any, ...]:
    front = draw.shape(0, 2, empty=False)
    sizes = [
        draw.integer(1, 4) if n == 1 and draw.flag() else draw.choice((n, -1)) for n in x.shape
    ]
    return ((*front, *sizes),)


_movement("reshape", _factors)
_movement("permute", _permutation)
_movement("expand", _expansion)
_movement("transpose", lambda d, x: (d.axis(x.ndim), d.axis(x.ndim)))
_movement("swapaxes", lambda d, x: (d.axis(x.ndim), d.axis(x.ndim)))
_movement("movedim", lambda d, x: (d.axis(x.ndim), d.axis(x.ndim)))
_movement("flip", lambda d, x: (tuple(d.random.sample(range(x.ndim), d.integer(0, x.ndim))),))
_movement("squeeze", lambda d, x: () if d.flag() else (d.axis(x.ndim),))
_movement("unsqueeze", lambda d, x: (d.axis(x.ndim + 1),))
_movement("flatten", lambda d, x: () if d.flag() else (d.integer(0, max(x.ndim - 1, 0)), -1))
_movement(
    "repeat",
    lambda d, x: (tuple(d.integer(1, 3) for _ in range(x.ndim + d.integer(0, 1))),),
    least=1,
    most=3,
)
_movement("tile", lambda d, x: (tuple(d.integer(0, 2) for _ in range(d.integer(1, 4))),), most=3)
_movement(
    "repeat_interleave",
    lambda d, x: (d.integer(1, 3), *((d.axis(x.ndim),) if d.flag() else ())),
    least=1,
)
_movement(
    "roll", lambda d, x: (d.integer(-6, 6), *((d.axis(x.ndim),) if d.flag() else ())), least=1
)
_movement("tril", lambda d, x: (d.integer(-3, 3),), least=2)
_movement("triu", lambda d, x: (d.integer(-3, 3),), least=2)
_movement("diagonal", lambda d, x: (d.integer(-2, 2), *d.random.sample(range(x.ndim), 2)), least=2)
_movement("diag", lambda d, x: (d.integer(-2, 2),), least=1, most=2)
_movement(
    "diag_embed",
    lambda d, x: (d.integer(-2, 2), *d.random.sample(range(x.ndim + 1), 2)),
    least=1,
    most=3,
)
_movement(
    "rot90", lambda d, x: (d.integer(-2, 5), tuple(d.random.sample(range(x.ndim), 2))), least=2
)
_movement("fliplr", lambda d, x: (), least=2)
_movement("flipud", lambda d, x: (), least=1)
_movement("unbind", lambda d, x: (d.axis(x.ndim),), least=1)
_movement("chunk", lambda d, x: (d.integer(1, 4), d.axis(x.ndim)), least=1)
_movement("split", lambda d, x: (d.integer(1, 4), d.axis(x.ndim)), least=1)
_movement(
    "tensor_split",
    lambda d, x: (
        d.integer(1, 4) if d.flag() else tuple(d.integer(-5, 5) for _ in range(3)),
        d.axis(x.ndim),
    ),
    least=1,
)


@add_maker("narrow")
def _narrow(draw: Draw) -> Call:
    x = draw.values(draw.shape(1), "float32")
    axis = draw.axis(x.ndim)
    start = draw.integer(0, x.shape[axis])
    args = (axis, start, draw.integer(0, x.shape[axis] - start))
    function = method("narrow", *args)
    return Call("narrow", function, function, [x], f"{x.shape} {args}", 0, True)


@add_maker("unfold")
def _unfold(draw: Draw) -> Call:
    x = draw.values(draw.shape(1, empty=False), "float32")
    axis = draw.axis(x.ndim)
    args = (axis, draw.integer(1, x.shape[axis]), draw.integer(1, 3))
    function = method("unfold", *args)
    return Call("unfold", function, function, [x], f"{x.shape} {args}", 0, True)


@add_maker("cat")
def _cat(draw: Draw) -> Call:
    name = draw.choice(("cat", "stack", "hstack", "vstack", "dstack"))
    shape = list(draw.shape(1))
    axis = draw.integer(0, len(shape) - 1)
    arrays = []
    dtypes = [draw.choice(EVERY)] * 3 if draw.flag() else [draw.choice(EVERY) for _ in range(3)]
    for number in range(draw.integer(1, 3)):
        if name == "cat":
            shape[axis] = draw.integer(0, 3)
        arrays.append(draw.values(tuple(shape), dtypes[number]))
    kwargs = {"dim": axis} if name in ("cat", "stack") else {}
    theirs: Function = lambda *xs: getattr(torch(), name)(xs, **kwargs)  # noqa: E731
    ours: Function = lambda *xs: getattr(Tensor, name)(*xs, **kwargs)  # noqa: E731
    text = f"{[(a.shape, a.dtype.name) for a in arrays]} {kwargs}"
    return Call(name, ours, theirs, arrays, text)


@add_maker("pad")
def _pad(draw: Draw) -> Call:
    x = draw.values(draw.shape(1, empty=False), "float32")
    mode = draw.choice(("constant", "constant", "reflect", "replicate", "circular"))
    if mode == "constant":
        pads = tuple(draw.integer(-1, 3) for _ in range(2 * draw.integer(1, x.ndim)))
        if any(
            size + pads[2 * i] + pads[2 * i + 1] < 0
            for i, size in enumerate(x.shape[::-1][: len(pads) // 2])
        ):
            pads = (1, 2)
    else:
        x = draw.values((2, 3, *draw.shape(1, 2, empty=False)), "float32")
        most = 1 if mode == "reflect" else 0
        pads = tuple(draw.integer(0, x.shape[-1 - i // 2] - most) for i in range(2 * (x.ndim - 2)))
    ours = method("pad", pads, mode=mode)
    return Call(
        "pad", ours, lambda y: nn().pad(y, pads, mode), [x], f"{x.shape} {pads} {mode}", 0, True
    )


@add_maker("getitem")
def _getitem(draw: Draw) -> Call:
    x = draw.values(draw.shape(1), "float32")
    key: list[Any] = []
    for size in x.shape[: draw.integer(1, x.ndim)]:
        kind = draw.integer(0, 3)
        if kind == 0 and size:
            key.append(draw.integer(-size, size - 1))
        elif kind == 1:
            key.append(None)
            key.append(slice(None))
        elif kind == 2 and size:
            key.append([draw.integer(-size, size - 1) for _ in range(2)])
        else:
            bounds = [draw.choice((None, draw.integer(-6, 6))) for _ in range(2)]
            key.append(slice(*bounds, draw.choice((None, 1, 2, 3))))
    if draw.flag() and len(key) < 4:
        key.insert(draw.integer(0, len(key)), Ellipsis)
    # An ellipsis may leave a list at a later, smaller axis.
    found = tuple(key)
    function: Function = lambda y: y[found]  # noqa: E731
    return Call("getitem", function, function, [x], f"{x.shape} {found}", 0, True)


@add_maker("gather")
def _gather(draw: Draw) -> Call:
    x = draw.values(draw.shape(1, 3, empty=False), draw.choice(("float32", "int32")))
    axis = draw.axis(x.ndim)
    shape = [draw.integer(1, size) for size in x.shape]
    shape[axis] = draw.integer(0, 5)
    index = draw.index(tuple(shape), x.shape[axis])
    function: Function = lambda y, i: y.gather(axis, i)  # noqa: E731
    text = f"{x.shape} {axis} {index.shape}"
    return Call("gather", function, function, [x, index], text, 0, x.dtype.kind == "f")


@add_maker("scatter_add")
def _scatter_add(draw: Draw) -> Call:
    x = draw.values(draw.shape(1, 3, empty=False), draw.choice(("float32", "int64")))
    axis = draw.axis(x.ndim)
    shape = [draw.integer(1, size) for size in x.shape]
    shape[axis] = draw.integer(1, 5)
    index = draw.index(tuple(shape), x.shape[axis])
    source = draw.values(tuple(shape), x.dtype.name)
    reduce = draw.choice((None, "sum", "amax", "amin", "prod"))
    function: Function
    if reduce is None:
        function = lambda y, i, s: y.scatter_add(axis, i, s)  # noqa: E731
    else:
        keep = draw.flag()
        function = lambda y, i, s: y.scatter_reduce(axis, i, s, reduce, include_self=keep)  # noqa: E731
    text = f"{x.shape} {axis} {index.shape} {reduce}"
    gradient = x.dtype.kind == "f" and reduce in (None, "sum")
    return Call("scatter_add", function, function, [x, index, source], text, 16, gradient)


@add_maker("scatter")
def _scatter(draw: Draw) -> Call:
    x = draw.values(draw.shape(1, 1, empty=False), draw.choice(("float32", "int64")))
    count = draw.integer(1, x.shape[0])
    arrays = [x, draw.distinct_index(count, x.shape[0]), draw.values((count,), x.dtype.name)]
    name = draw.choice(("scatter", "index_copy"))
    function: Function = lambda y, i, s: getattr(y, name)(0, i, s)  # noqa: E731
    return Call(name, function, function, arrays, f"{x.shape}", 0, x.dtype.kind == "f")


@add_maker("index_add")
def _index_add(draw: Draw) -> Call:
    x = draw.values(draw.shape(1, 3, empty=False), draw.choice(("float32", "int64")))
    axis, count = draw.axis(x.ndim), draw.integer(1, 6)
    shape = list(x.shape)
    shape[axis] = count
    arrays = [x, draw.index((count,), x.shape[axis]), draw.values(tuple(shape), x.dtype.name)]
    function: Function = lambda y, i, s: y.index_add(axis, i, s)  # noqa: E731
    return Call(
        "index_add", function, function, arrays, f"{x.shape} {axis}", 16, x.dtype.kind == "f"
    )


@add_maker("index_put")
def _index_put(draw: Draw) -> Call:
    x = draw.values(draw.shape(1, 3, empty=False), "float32")
    count, depth = draw.integer(1, 5), draw.integer(1, x.ndim)
    indices = [draw.index((count,), size, True) for size in x.shape[:depth]]
    values = draw.values((count, *x.shape[depth:]), "float32")
    function: Function = lambda y, v, *i: y.index_put(i, v, accumulate=True)  # noqa: E731
    return Call("index_put", function, function, [x, values, *indices], f"{x.shape}", 16, True)


@add_maker("index_select")
def _index_select(draw: Draw) -> Call:
    x = draw.values(draw.shape(1, 3, empty=False), "float32")
    axis = draw.axis(x.ndim)
    index = draw.index((draw.integer(0, 6),), x.shape[axis])
    function: Function = lambda y, i: y.index_select(axis, i)  # noqa: E731
    return Call("index_select", function, function, [x, index], f"{x.shape} {axis}", 0, True)


@add_maker("take")
def _take(draw: Draw) -> Call:
    x = draw.values(draw.shape(0, 3, empty=False), "float32")
    index = draw.index(draw.shape(0, 2), x.size, True)
    function: Function = lambda y, i: y.take(i)  # noqa: E731
    return Call("take", function, function, [x, index], f"{x.shape} {index.shape}", 0, True)


@add_maker("take_along_dim")
def _take_along_dim(draw: Draw) -> Call:
    x = draw.values(draw.shape(1, 3, empty=False), "float32")
    axis = draw.axis(x.ndim)
    shape = [1 if draw.flag() else size for size in x.shape]
    shape[axis] = draw.integer(1, 4)
    index = draw.index(tuple(shape), x.shape[axis])
    function: Function = lambda y, i: y.take_along_dim(i, axis)  # noqa: E731
    text = f"{x.shape} {axis} {index.shape}"
    return Call("take_along_dim", function, function, [x, index], text, 0, True)


@add_maker("put")
def _put(draw: Draw) -> Call:
    x = draw.values(draw.shape(0, 3, empty=False), draw.choice(("float32", "int64")))
    accumulate = draw.flag()
    count = draw.integer(0, x.size)
    index = draw.index((count,), x.size) if accumulate else draw.distinct_index(count, x.size)
    arrays = [x, index, draw.values((count,), x.dtype.name)]
    function: Function = lambda y, i, v: y.put(i, v, accumulate=accumulate)  # noqa: E731
    text = f"{x.shape} {count} {accumulate}"
    return Call("put", function, function, arrays, text, 16, x.dtype.kind == "f")


@add_maker("index_fill")
def _index_fill(draw: Draw) -> Call:
    x = draw.values(draw.shape(1, 3, empty=False), draw.choice(("float32", "int64")))
    axis = draw.axis(x.ndim)
    index = draw.index((draw.integer(0, 4),), x.shape[axis])
    function: Function = lambda y, i: y.index_fill(axis, i, 2)  # noqa: E731
    text = f"{x.shape} {axis}"
    return Call("index_fill", function, function, [x, index], text, 0, x.dtype.kind == "f")


@add_maker("select")
def _select(draw: Draw) -> Call:
    x = draw.values(draw.shape(1, 4, empty=False), "float32")
    axis = draw.axis(x.ndim)
    address = draw.integer(-x.shape[axis], x.shape[axis] - 1)
    function = method("select", axis, address)
    return Call("select", function, function, [x], f"{x.shape} {axis} {address}", 0, True)


@add_maker("unflatten")
def _unflatten(draw: Draw) -> Call:
    sizes = draw.shape(1, 3, empty=False)
    lead = draw.shape(0, 2, empty=False)
    total = 1
    for size in sizes:
        total *= size
    x = draw.values((*lead, total, *draw.shape(0, 1, empty=False)), "float32")
    asked = list(sizes)
    if draw.flag():
        asked[draw.integer(0, len(asked) - 1)] = -1
    function = method("unflatten", len(lead), tuple(asked))
    return Call("unflatten", function, function, [x], f"{x.shape} {asked}", 0, True)


@add_maker("meshgrid")
def _meshgrid(draw: Draw) -> Call:
    arrays = [draw.values((draw.integer(0, 4),), "float32") for _ in range(draw.integer(1, 3))]
    indexing = draw.choice(("ij", "xy")) if len(arrays) > 1 else "ij"
    theirs: Function = lambda *xs: torch().meshgrid(*xs, indexing=indexing)  # noqa: E731
    ours: Function = lambda *xs: Tensor.meshgrid(*xs, indexing=indexing)  # noqa: E731
    return Call("meshgrid", ours, theirs, arrays, indexing, 0, True)


@add_maker("create")
def _create(draw: Draw) -> Call:
    n, m, k = draw.integer(0, 4), draw.integer(1, 4), draw.integer(-2, 2)
    name = draw.choice(("eye", "tril_indices", "triu_indices", "arange", "linspace", "full"))
    args: tuple[object, ...]
    args = {"eye": (n, m), "full": ((n, m), 2.5)}.get(name, (n, m, k))
    kwargs: dict[str, object] = {}
    if name == "arange":
        args = (draw.integer(-5, 0), draw.integer(0, 9), draw.integer(1, 3))
    if name == "linspace":
        args = (draw.integer(-5, 0), draw.integer(1, 9), draw.integer(0, 7))
    ours: Function = lambda: getattr(Tensor, name)(*args, **kwargs)  # noqa: E731
    theirs: Function = lambda: getattr(torch(), name)(*args, **kwargs)  # noqa: E731
    if name == "arange":
        ours = lambda: Tensor.arange(*args, dtype="int64")  # type: ignore[arg-type]  # noqa: E731
    return Call(name, ours, theirs, [], show(*args), 4)

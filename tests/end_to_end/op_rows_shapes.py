"""Rows of ops that move, convert, pick, write and create elements, and compute nothing."""

from importlib import import_module
from typing import Any

from tests.end_to_end.op_row import (
    EVERY,
    NUMBERS,
    SMALL,
    SUM,
    Function,
    Row,
    Shape,
    method,
    nn,
    pt,
    put,
)
from weft.tensor import Tensor


def casts() -> tuple[Row, ...]:
    """Every dtype to every other."""
    rows = []
    for to in EVERY:

        def theirs(x: Any, to: str = to) -> Any:
            return x.to(getattr(import_module("torch"), to))

        rows.append(
            Row(f"cast into {to}", method("cast", to), ("numbers",), (((19,),),), theirs, EVERY)
        )
    words = ("bool", "half", "bfloat16", "float", "double", "short", "int", "long")
    rows += [
        Row(word, method(word), ("numbers",), SMALL, dtypes=("float32", "int32")) for word in words
    ]
    bits = lambda x: x.view(import_module("torch").int32)  # noqa: E731
    rows.append(Row("bitcast", method("bitcast", "int32"), ("edges",), (((19,),),), bits))
    return tuple(rows)


def moved(name: str, ours: Function, *shapes: Shape, theirs: Function | None = None) -> Row:
    """A movement of one tensor, whose gradient moves back."""
    variants = tuple((shape,) for shape in shapes)
    return Row(name, ours, ("edges",), variants, theirs, ("float32", "int64", "bool"), True)


MOVEMENT = (
    moved("reshape", lambda x: x.reshape(5, -1), (3, 5), (5, 1, 3)),
    moved("view", lambda x: x.view(2, 1, 7), (14,)),
    moved("expand", lambda x: x.expand(2, 3, 4), (3, 1), (2, 3, 4)),
    moved("broadcast_to", lambda x: x.broadcast_to((2, 3)), (3,)),
    moved("permute", lambda x: x.permute(2, 0, 1), (2, 3, 5), (0, 3, 1)),
    moved("transpose", lambda x: x.transpose(0, -1), (2, 3, 5), (2,)),
    moved("T", lambda x: x.T, (3, 5)),
    moved("movedim", lambda x: x.movedim(0, 2), (2, 3, 5)),
    moved("flip", lambda x: x.flip((0, 2)), (2, 3, 5)),
    moved("shrink", lambda x: x.shrink(((1, 3), None)), (3, 5), theirs=lambda x: x[1:3]),
    moved("pad", lambda x: x.pad((1, 2, 0, 1)), (3, 5), theirs=nn("pad", pad=(1, 2, 0, 1))),
    moved(
        "pad less",
        lambda x: x.pad((-1, 2), value=3.0),
        (3, 5),
        theirs=nn("pad", pad=(-1, 2), value=3.0),
    ),
    *(
        Row(
            f"pad {mode}",
            method("pad", (2, 1), mode=mode),
            ("numbers",),
            (((2, 3, 5),),),
            nn("pad", pad=(2, 1), mode=mode),
            ("float32",),
            True,
            1,
            True,
        )
        for mode in ("reflect", "replicate", "circular")
    ),
    moved("squeeze", lambda x: x.squeeze(1), (3, 1, 5), (3, 2)),
    moved("squeeze all", lambda x: x.squeeze(), (3, 1, 5, 1), ()),
    moved("unsqueeze", lambda x: x.unsqueeze(-2), (3, 5), (1,)),
    moved("flatten", lambda x: x.flatten(1), (2, 3, 5), (2, 0, 3)),
    moved("unflatten", lambda x: x.unflatten(1, (3, -1)), (2, 6)),
    moved("repeat", lambda x: x.repeat(2, 1, 3), (3, 2)),
    moved("repeat_interleave", lambda x: x.repeat_interleave(3, 1), (2, 3)),
    moved("roll", lambda x: x.roll((2, -1), (0, 1)), (3, 5), (0, 5)),
    moved("unfold", lambda x: x.unfold(1, 3, 2), (2, 8)),
    moved("diagonal", lambda x: x.diagonal(1, 0, 2), (3, 2, 5)),
    moved("tril", lambda x: x.tril(1), (3, 5), (2, 3, 3)),
    moved("triu", lambda x: x.triu(-1), (3, 5)),
    moved("split", lambda x: x.split((1, 0, 3), 1), (3, 4)),
    moved("chunk", lambda x: x.chunk(3, 0), (7, 2)),
    moved("iteration", lambda x: list(x), (3, 2)),
    moved("contiguous clone", lambda x: x.T.contiguous() + x.T.clone(), (3, 5)),
    Row(
        "cat",
        lambda x, y: Tensor.cat(x, y, x, dim=1),
        ("edges", "numbers"),
        (((3, 5), (3, 2)), ((3, 0), (3, 1))),
        lambda x, y: pt("cat")([x, y, x], 1),
        EVERY,
        True,
    ),
    Row(
        "stack",
        lambda x, y: Tensor.stack(x, y, dim=-1),
        ("edges", "numbers"),
        (((3, 5), (3, 5)), ((), ())),
        lambda x, y: pt("stack")([x, y], -1),
        EVERY,
        True,
    ),
    Row(
        "meshgrid",
        lambda x, y: Tensor.meshgrid(x, y),
        ("numbers",) * 2,
        (((3,), (2,)),),
        pt("meshgrid", indexing="ij"),
    ),
    Row(
        "one_hot",
        lambda x: x.one_hot(6),
        ("below 6",),
        (((7,),), ((),)),
        nn("one_hot", num_classes=6),
    ),
)

INDEXING = (
    moved("getitem steps", lambda x: x[1:, ::2], (5, 7)),
    Row(
        "getitem backwards",
        lambda x: x[::-2, :, ::-1],
        ("edges",),
        (((5, 2, 3),),),
        lambda x: x.flip((0, 2))[::2],
        EVERY,
        True,
        numpy=lambda x: x[::-2, :, ::-1],
    ),
    moved("getitem none and ints", lambda x: x[1, None, ..., -1], (3, 2, 4)),
    moved("getitem list", lambda x: x[[2, 0, -1, 2]], (3, 5)),
    moved("getitem lists", lambda x: x[[2, 0], :, [1, 1]], (3, 2, 4)),
    moved("getitem of nothing", lambda x: x[2:1], (3, 5)),
    Row(
        "getitem tensor",
        lambda x, i: x[:, i],
        ("numbers", "below 5"),
        (((3, 5), (2, 2)),),
        None,
        ("float32", "int32", "bool"),
        True,
    ),
    Row(
        "setitem slice",
        put((slice(1, None), slice(None, None, 2))),
        ("numbers",) * 2,
        (((3, 5), (3,)),),
        None,
        NUMBERS,
        True,
    ),
    Row("setitem number", lambda x: put(1)(x, 7), ("numbers",), SMALL, None, NUMBERS, True),
    Row("setitem list", put(([2, 0],)), ("numbers",) * 2, (((3, 5), (2, 5)),)),
    Row(
        "setitem mask",
        lambda x, m: put(m)(x, 2),
        ("numbers", "bools"),
        (((3, 5), (3, 5)),),
        None,
        NUMBERS,
        True,
    ),
    Row(
        "gather",
        lambda x, i: x.gather(1, i),
        ("numbers", "below 5"),
        (((3, 5), (3, 7)),),
        None,
        ("float32", "int32", "bool"),
        True,
    ),
    Row(
        "scatter",
        lambda x, i, y: x.scatter(1, i, y),
        ("numbers", "below 1", "numbers"),
        (((3, 5), (3, 1), (3, 1)),),
        None,
        ("float32", "int32"),
        True,
    ),
    Row(
        "scatter add",
        lambda x, i, y: x.scatter(0, i, y, reduce="add"),
        ("numbers", "below 5", "numbers"),
        (((5, 3), (4, 3), (4, 3)),),
        None,
        ("float32", "int32"),
        False,
        SUM,
        True,
    ),
    *(
        Row(f"scatter_reduce {reduce}", method("scatter_reduce"), (), ())._replace(
            ours=lambda x, i, y, r=reduce: x.scatter_reduce(0, i, y, r),
            kinds=("numbers", "below 5", "numbers"),
            shapes=(((5, 3), (4, 3), (4, 3)),),
            dtypes=("float32", "int32"),
            ulps=SUM,
            of_largest=True,
        )
        for reduce in ("sum", "prod", "amax", "amin")
    ),
    Row(
        "assign",
        lambda x, y: x.clone().assign(y),
        ("numbers", "edges"),
        (((3, 5), (5,)),),
        lambda x, y: x.clone().copy_(y),
        NUMBERS,
    ),
)


def created(name: str, ours: Function, theirs: Function, ulps: float = 0.0) -> Row:
    return Row(name, ours, theirs=theirs, ulps=ulps)


CREATION = (
    created("full", lambda: Tensor.full((2, 3), 2.5), lambda: pt("full")((2, 3), 2.5)),
    created("zeros", lambda: Tensor.zeros(2, 0), lambda: pt("zeros")(2, 0)),
    created("ones", lambda: Tensor.ones(()), lambda: pt("ones")(())),
    created(
        "arange", lambda: Tensor.arange(7, -4, -3, dtype="int64"), lambda: pt("arange")(7, -4, -3)
    ),
    created(
        "arange of floats",
        lambda: Tensor.arange(0.0, 2.0, 0.25),
        lambda: pt("arange")(0.0, 2.0, 0.25),
    ),
    created("linspace", lambda: Tensor.linspace(-1, 2, 13), lambda: pt("linspace")(-1, 2, 13), 1),
    created("eye", lambda: Tensor.eye(3, 5), lambda: pt("eye")(3, 5)),
    Row(
        "full_like zeros_like ones_like",
        lambda x: (x.full_like(3), x.zeros_like(), x.ones_like()),
        ("numbers",),
        SMALL,
        lambda x: (pt("full_like")(x, 3), pt("zeros_like")(x), pt("ones_like")(x)),
        EVERY,
    ),
)

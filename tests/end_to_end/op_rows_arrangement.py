"""Rows of shapes by name, of selection by number, and of pools and resampling."""

from typing import Any

from tests.end_to_end.op_row import (
    FLOATS,
    PRECISE,
    SUM,
    Function,
    Row,
    Shape,
    nn,
    pt,
)
from tests.end_to_end.op_rows_shapes import created, moved
from weft.tensor import Tensor


def joined(name: str, *shapes: tuple[Shape, ...]) -> Row:
    return Row(
        name,
        lambda *all_: getattr(Tensor, name)(*all_),
        ("edges", "numbers"),
        shapes,
        lambda *all_: pt(name)(all_),
        ("float32", "int32"),
        True,
    )


ARRANGEMENT = (
    moved("movedim several", lambda x: x.movedim((0, 2), (1, 0)), (2, 3, 5)),
    moved("moveaxis swapaxes", lambda x: x.moveaxis(0, 2).swapaxes(0, 1), (2, 3, 5)),
    moved("swapdims", lambda x: x.swapdims(0, -1), (2, 3, 5)),
    moved("t mT", lambda x: (x.t(), x.mT), (3, 5)),
    moved("ravel", lambda x: x.ravel(), (3, 5), ()),
    moved("fliplr", lambda x: x.fliplr(), (3, 5)),
    moved("flipud", lambda x: x.flipud(), (3,), (3, 5)),
    moved("rot90", lambda x: [x.rot90(k, (0, 2)) for k in range(-1, 4)], (2, 3, 5)),
    moved("tile", lambda x: (x.tile((2,)), x.tile((2, 1, 3))), (3, 2)),
    *(
        moved(
            f"atleast_{rank}d",
            lambda x, rank=rank: getattr(Tensor, f"atleast_{rank}d")(x),
            (),
            (3,),
            (2, 3),
            (2, 3, 1, 2),
            theirs=pt(f"atleast_{rank}d"),
        )
        for rank in (1, 2, 3)
    ),
    moved("tensor_split", lambda x: x.tensor_split(3, 1), (2, 7), (2, 1)),
    moved("tensor_split at", lambda x: x.tensor_split((1, 4, 3, -1)), (7, 2)),
    moved("unbind", lambda x: x.unbind(1), (2, 3), (2, 0)),
    moved("diag_embed", lambda x: x.diag_embed(-1, 0, 2), (2, 3)),
    moved("diag_embed last", lambda x: x.diag_embed(2), (3,), (0,)),
    moved("diag", lambda x: x.diag(1), (3,), (3, 5)),
    moved("diagflat", lambda x: x.diagflat(-2), (2, 2), theirs=pt("diagflat", offset=-2)),
    moved(
        "rearrange",
        lambda x: x.rearrange("b (h w) c -> (c b) 1 w h", h=2),
        (2, 6, 3),
        theirs=lambda x: x.reshape(2, 2, 3, 3).permute(3, 0, 2, 1).reshape(6, 1, 3, 2),
    ),
    moved(
        "rearrange the rest",
        lambda x: x.rearrange("a ... b -> b (... a)"),
        (2, 3, 4, 5),
        theirs=lambda x: x.permute(3, 1, 2, 0).reshape(5, 24),
    ),
    joined("hstack", ((3,), (2,)), ((2, 3), (2, 1))),
    joined("vstack", ((3,), (3,)), ((2, 3), (1, 3))),
    joined("row_stack", ((3,), (3,)))._replace(theirs=lambda *all_: pt("vstack")(all_)),
    joined("dstack", ((3,), (3,)), ((2, 3), (2, 3))),
    joined("column_stack", ((3,), (3,)), ((2, 3), (2, 1))),
    joined("concat", ((3, 2), (1, 2))),
    joined("concatenate", ((3, 2), (1, 2))),
    Row(
        "reshape_as view_as expand_as",
        lambda x, y: (x.reshape_as(y), x.view_as(y), y.reshape(-1)[:1].expand_as(x)),
        ("edges", "numbers"),
        (((2, 3), (3, 2)),),
        None,
        ("float32", "int32"),
        True,
    ),
    created(
        "tril_indices triu_indices",
        lambda: (Tensor.tril_indices(3, 4, 1), Tensor.triu_indices(3, 4, -1)),
        lambda: (pt("tril_indices")(3, 4, 1), pt("triu_indices")(3, 4, -1)),
    ),
    Row(
        "amax amin count_nonzero",
        lambda x: (x.amax((0, 2)), x.amin(1, keepdim=True), x.count_nonzero(0)),
        ("numbers",),
        (((2, 3, 5),),),
        None,
        ("float32", "int32"),
    ),
)


def picked(
    name: str, ours: Function, index: str, *shapes: tuple[Shape, ...], **changes: Any
) -> Row:
    """A selection from one tensor by an index."""
    found = {"dtypes": ("float32", "int32", "bool"), "has_gradient": True, **changes}
    return Row(name, ours, ("numbers", index), shapes, **found)


def put_in(
    name: str, ours: Function, index: str, *shapes: tuple[Shape, ...], **changes: Any
) -> Row:
    """Values that go into a tensor by an index."""
    found = {"dtypes": ("float32", "int64"), "has_gradient": True, **changes}
    return Row(name, ours, ("numbers", index, "numbers"), shapes, **found)


SELECTION = (
    picked("take", lambda x, i: x.take(i), "below 15", ((3, 5), (4, 2))),
    picked("take_along_dim", lambda x, i: x.take_along_dim(i, 1), "below 5", ((3, 5), (1, 2))),
    picked("take_along_dim flat", lambda x, i: x.take_along_dim(i), "below 15", ((3, 5), (2, 3))),
    moved("select", lambda x: (x.select(1, 2), x.select(-1, -1)), (3, 5)),
    moved("narrow", lambda x: (x.narrow(1, 1, 3), x.narrow(0, -2, 2)), (3, 5)),
    picked(
        "index_select",
        lambda x, i: x.index_select(1, i),
        "below 5",
        ((3, 5), (7,)),
        ((5, 5), (0,)),
    ),
    put_in(
        "index_add",
        lambda x, i, y: x.index_add(1, i, y, alpha=2),
        "below 4",
        ((3, 4), (6,), (3, 6)),
        ulps=SUM,
        of_largest=True,
    ),
    put_in("index_copy", lambda x, i, y: x.index_copy(1, i, y), "below 1", ((3, 4), (1,), (3, 1))),
    picked(
        "index_fill",
        lambda x, i: x.index_fill(1, i, 3),
        "below 5",
        ((3, 5), (2,)),
        dtypes=("float32", "int32"),
    ),
    put_in(
        "index_put",
        lambda x, i, y: x.index_put((i, i + 1), y),
        "below 1",
        ((3, 4), (1,), (1,)),
        ((3, 4, 2), (1,), (2,)),
    ),
    put_in(
        "index_put accumulate",
        lambda x, i, y: x.index_put((i, i), y, accumulate=True),
        "below 3",
        ((3, 4), (7,), (7,)),
        ((3, 4, 2), (5,), (2,)),
        ulps=SUM,
        of_largest=True,
    ),
    put_in(
        "index_put by a mask",
        lambda x, m, y: (x.index_put((m,), y), x.index_put((m,), y, accumulate=True)),
        "bools",
        ((3, 4), (3, 4), ()),
        ((3, 4, 2), (3,), (4, 2)),
    ),
    put_in("put", lambda x, i, y: x.put(i, y), "below 1", ((3, 4), (1, 1), (1, 1))),
    put_in(
        "put accumulate",
        lambda x, i, y: x.put(i, y, accumulate=True),
        "below 12",
        ((3, 4), (7,), (7,)),
        ulps=SUM,
        of_largest=True,
    ),
    put_in(
        "scatter_add",
        lambda x, i, y: x.scatter_add(0, i, y),
        "below 5",
        ((5, 3), (4, 2), (4, 3)),
        ulps=SUM,
        of_largest=True,
        has_gradient=False,
    ),
)


def resized(name: str, shape: Shape, ulps: float = 8, **kwargs: Any) -> Row:
    theirs = dict(kwargs)
    if theirs.get("align_corners") is False:
        theirs.pop("align_corners")
    return Row(
        f"interpolate {name}",
        lambda x: x.interpolate(**kwargs),
        ("numbers",),
        ((shape,),),
        nn("interpolate", **theirs),
        FLOATS,
        True,
        ulps,
        True,
    )


def pooled(name: str, ours: Function, theirs: Function, *shapes: Shape) -> Row:
    return Row(
        name,
        ours,
        ("numbers",),
        tuple((shape,) for shape in shapes),
        theirs,
        PRECISE,
        True,
        SUM,
        True,
    )


def _unpooled(pool: Function, unpool: Function) -> Function:
    def function(x: Any) -> Any:
        values, indices = pool(x)
        return unpool(values, indices)

    return function


POOLS = (
    resized("nearest", (1, 2, 5, 4), 0, size=(7, 3), mode="nearest"),
    resized("nearest-exact", (1, 2, 5, 4), 0, size=(7, 3), mode="nearest-exact"),
    resized("linear", (2, 2, 5), size=8, mode="linear"),
    resized("linear corners", (2, 2, 5), size=8, mode="linear", align_corners=True),
    resized("bilinear", (1, 2, 5, 4), size=(7, 3), mode="bilinear"),
    resized("bilinear factor", (1, 2, 5, 4), scale_factor=1.5, mode="bilinear"),
    resized("trilinear", (1, 1, 3, 4, 2), size=(5, 2, 4), mode="trilinear", align_corners=True),
    resized("bicubic", (1, 2, 5, 4), 24, size=(7, 3), mode="bicubic"),
    resized("bicubic corners", (1, 2, 5, 4), 24, size=(3, 8), mode="bicubic", align_corners=True),
    resized("area", (1, 2, 5, 4), SUM, size=(3, 2), mode="area"),
    Row(
        "max_pool2d indices",
        lambda x: x.max_pool2d(3, 2, padding=1, return_indices=True),
        ("numbers",),
        (((2, 2, 6, 7),),),
        nn("max_pool2d", kernel_size=3, stride=2, padding=1, return_indices=True),
        PRECISE,
    ),
    Row(
        "max_unpool2d",
        _unpooled(
            lambda x: x.max_pool2d(2, return_indices=True),
            lambda x, i: x.max_unpool2d(i, 2, output_size=(5, 6)),
        ),
        ("numbers",),
        (((2, 2, 5, 6),),),
        _unpooled(
            nn("max_pool2d", kernel_size=2, return_indices=True),
            nn("max_unpool2d", kernel_size=2, output_size=(5, 6)),
        ),
        PRECISE,
        True,
    ),
    pooled(
        "max_pool2d of one axis",
        lambda x: x.max_pool2d((3,), 2),
        nn("max_pool1d", kernel_size=3, stride=2),
        (2, 3, 8),
    ),
    pooled(
        "max_pool2d of three axes",
        lambda x: x.max_pool2d((2, 1, 2)),
        nn("max_pool3d", kernel_size=(2, 1, 2)),
        (1, 2, 4, 3, 4),
    ),
    pooled(
        "avg_pool2d of one axis",
        lambda x: x.avg_pool2d((3,), 2, padding=1),
        nn("avg_pool1d", kernel_size=3, stride=2, padding=1),
        (2, 3, 8),
    ),
    pooled(
        "avg_pool2d of three axes",
        lambda x: x.avg_pool2d((2, 1, 2)),
        nn("avg_pool3d", kernel_size=(2, 1, 2)),
        (1, 2, 4, 3, 4),
    ),
    pooled(
        "adaptive_avg_pool2d",
        lambda x: x.adaptive_avg_pool2d((3, 2)),
        nn("adaptive_avg_pool2d", output_size=(3, 2)),
        (2, 2, 7, 5),
        (1, 6, 4),
    ),
    pooled(
        "adaptive_max_pool2d",
        lambda x: x.adaptive_max_pool2d((3, 2)),
        nn("adaptive_max_pool2d", output_size=(3, 2)),
        (2, 2, 7, 5),
    ),
)

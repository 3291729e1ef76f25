"""Rows of ops that reduce: reductions, norms, products of matrices, convolutions, losses."""

from importlib import import_module
from typing import Any

from tests.end_to_end.op_row import (
    EVERY,
    FLOATS,
    INTS,
    NUMBERS,
    PRECISE,
    SMALL,
    SUM,
    Function,
    Row,
    Shape,
    in_place,
    method,
    nn,
    pt,
)
from weft.tensor import Tensor

AXES: tuple[tuple[Shape, ...], ...] = (((3, 17),), ((2, 40),), ((1, 1),))


def reduced(name: str, ours: Function, theirs: Function | None = None, **changes: Any) -> Row:
    """A reduction along axis 1."""
    found: dict[str, Any] = {"dtypes": ("float32",), "has_gradient": True, **changes}
    kind = found.pop("kind", "numbers")
    shapes = found.pop("shapes", AXES)
    return Row(name, ours, (kind,), shapes, theirs, **found)


REDUCTIONS = (
    reduced(
        "sum",
        lambda x: x.sum(1),
        dtypes=EVERY,
        ulps=SUM,
        of_largest=True,
        numpy=lambda x: x.sum(1),
    ),
    reduced(
        "sum of edges",
        lambda x: x.sum(1),
        kind="edges",
        has_zero_sign=False,
        shapes=(((13, 1),), ((2, 13),)),
        has_gradient=False,
        dtypes=FLOATS,
    ),
    reduced(
        "sum all",
        lambda x: x.sum(),
        ulps=SUM,
        of_largest=True,
        shapes=(((3, 5),), ((),), ((0, 2),)),
    ),
    reduced(
        "sum axes kept",
        lambda x: x.sum((0, 2), keepdim=True),
        shapes=(((3, 2, 9),),),
        ulps=SUM,
        of_largest=True,
        dtypes=("float32", "int32"),
    ),
    reduced(
        "sum of nothing", lambda x: x.sum(0), has_gradient=False, shapes=(((0, 3),), ((2, 0),))
    ),
    reduced(
        "sum in int32",
        lambda x: x.sum(1, dtype="int32"),
        lambda x: x.sum(1).to(import_module("torch").int32),
        dtypes=("bool", "uint8", "int32"),
        has_gradient=False,
    ),
    reduced(
        "prod",
        lambda x: x.prod(1),
        dtypes=("int32", "uint8", "bool", *PRECISE),
        kind="unit",
        shapes=(((3, 7),), ((2, 0),)),
        ulps=8,
    ),
    reduced("mean", lambda x: x.mean(1), dtypes=FLOATS, ulps=SUM, of_largest=True),
    reduced("max", lambda x: x.max(1), lambda x: x.amax(1), dtypes=EVERY, kind="edges"),
    reduced("min", lambda x: x.min(1), lambda x: x.amin(1), dtypes=EVERY, kind="edges"),
    reduced("max all", lambda x: x.max(), shapes=(((3, 5),), ((),))),
    reduced(
        "max of equals",
        lambda x: (x * 0).max(1),
        lambda x: (x * 0).amax(1),
        has_zero_sign=False,
    ),
    reduced(
        "any",
        lambda x: x.any(1),
        dtypes=("bool", "int32", "float32"),
        has_gradient=False,
        kind="edges",
        shapes=(((3, 5),), ((2, 0),)),
    ),
    reduced(
        "all",
        lambda x: x.all(1),
        dtypes=("bool", "int32", "float32"),
        has_gradient=False,
        kind="edges",
        shapes=(((3, 5),), ((2, 0),)),
    ),
    reduced("argmax", lambda x: x.argmax(1), dtypes=NUMBERS, has_gradient=False, kind="edges"),
    reduced("argmin", lambda x: x.argmin(1), dtypes=NUMBERS, has_gradient=False, kind="edges"),
    reduced("argmax all", lambda x: x.argmax(), has_gradient=False, shapes=SMALL),
    reduced("var", lambda x: x.var(1), dtypes=PRECISE, ulps=SUM, shapes=AXES[:2]),
    reduced("std", lambda x: x.std(1, correction=0), dtypes=PRECISE, ulps=SUM, shapes=AXES[:2]),
    reduced(
        "var_mean",
        lambda x: x.var_mean(1),
        pt("var_mean", dim=1),
        ulps=SUM,
        of_largest=True,
        shapes=AXES[:1],
        has_gradient=False,
    ),
    reduced(
        "std_mean",
        lambda x: x.std_mean(1),
        pt("std_mean", dim=1),
        ulps=SUM,
        of_largest=True,
        shapes=AXES[:1],
        has_gradient=False,
    ),
    reduced("softmax", lambda x: x.softmax(1), dtypes=FLOATS, ulps=SUM),
    reduced("softmin", lambda x: x.softmin(1), nn("softmin", dim=1), dtypes=PRECISE, ulps=SUM),
    reduced("log_softmax", lambda x: x.log_softmax(1), dtypes=PRECISE, ulps=SUM, of_largest=True),
    reduced("logsumexp", lambda x: x.logsumexp(1), dtypes=PRECISE, ulps=SUM, of_largest=True),
    reduced(
        "logsumexp of edges",
        lambda x: x.logsumexp(1),
        kind="edges",
        has_gradient=False,
        shapes=(((13, 1),), ((2, 13),)),
        ulps=8,
    ),
    reduced(
        "layernorm",
        lambda x: x.layernorm(),
        lambda x: nn("layer_norm")(x, x.shape[-1:]),
        dtypes=FLOATS,
        ulps=SUM,
        of_largest=True,
        shapes=AXES[:2],
    ),
    reduced(
        "normalize",
        lambda x: x.normalize(),
        nn("normalize"),
        dtypes=PRECISE,
        ulps=SUM,
        shapes=AXES[:2],
    ),
    reduced(
        "normalize by 3",
        lambda x: x.normalize(p=3.0),
        nn("normalize", p=3.0),
        ulps=SUM,
        shapes=AXES[:1],
    ),
)

MATRICES = (
    ((3, 17), (17, 5)),
    ((2, 1, 3, 4), (3, 4, 2)),
    ((5,), (5,)),
    ((3, 5), (5,)),
    ((0, 4), (4, 2)),
    ((2, 0), (0, 3)),
)


def product(name: str, ours: Function, kinds: int, *shapes: Any, **changes: Any) -> Row:
    """Products and sums of products."""
    found: dict[str, Any] = {"has_gradient": True, "ulps": SUM, "of_largest": True, **changes}
    return Row(name, ours, ("numbers",) * kinds, tuple(shapes), **found)


IMAGE = ((2, 4, 7, 6), (6, 4, 3, 2), (6,))

PRODUCTS = (
    product(
        "matmul",
        lambda x, y: x.matmul(y),
        2,
        *MATRICES,
        dtypes=(*INTS, *FLOATS),
        numpy=lambda x, y: x @ y,
    ),
    product("dot", lambda x, y: x.dot(y), 2, MATRICES[0], theirs=pt("matmul")),
    product("in place matmul", in_place("__imatmul__"), 2, ((3, 3), (3, 3)), theirs=pt("matmul")),
    product(
        "linear",
        lambda x, w, b: x.linear(w, b),
        3,
        ((2, 3, 4), (4, 5), (5,)),
        theirs=lambda x, w, b: nn("linear")(x, w.T, b),
    ),
    product(
        "einsum",
        lambda x, y: Tensor.einsum("bij,kj->bik", x, y),
        2,
        ((2, 3, 4), (5, 4)),
        theirs=lambda x, y: pt("einsum")("bij,kj->bik", x, y),
    ),
    product(
        "einsum trace",
        lambda x: Tensor.einsum("ii->", x),
        1,
        ((4, 4),),
        theirs=lambda x: pt("einsum")("ii->", x),
    ),
    product(
        "conv2d",
        lambda x, w, b: x.conv2d(w, b),
        3,
        IMAGE,
        theirs=nn("conv2d"),
        dtypes=("float32", "float64"),
    ),
    product(
        "conv2d sizes",
        lambda x, w: x.conv2d(w, stride=2, padding=(1, 2), dilation=2),
        2,
        IMAGE[:2],
        theirs=nn("conv2d", stride=2, padding=(1, 2), dilation=2),
    ),
    product(
        "conv2d groups",
        lambda x, w: x.conv2d(w, groups=2),
        2,
        ((1, 4, 5, 5), (6, 2, 3, 3)),
        theirs=nn("conv2d", groups=2),
    ),
    product(
        "conv2d of one axis",
        lambda x, w: x.conv2d(w, padding=1),
        2,
        ((2, 3, 9), (4, 3, 3)),
        theirs=nn("conv1d", padding=1),
    ),
    product(
        "conv_transpose2d",
        lambda x, w: x.conv_transpose2d(w, stride=2, padding=1, output_padding=1),
        2,
        ((1, 4, 3, 5), (4, 2, 3, 3)),
        theirs=nn("conv_transpose2d", stride=2, padding=1, output_padding=1),
    ),
    product(
        "max_pool2d",
        lambda x: x.max_pool2d((3, 2), stride=2, padding=1),
        1,
        ((2, 3, 7, 6),),
        theirs=nn("max_pool2d", kernel_size=(3, 2), stride=2, padding=1),
    ),
    product(
        "max_pool2d ceil",
        lambda x: x.max_pool2d(2, ceil_mode=True),
        1,
        ((1, 2, 5, 7),),
        theirs=nn("max_pool2d", kernel_size=2, ceil_mode=True),
    ),
    product(
        "avg_pool2d",
        lambda x: x.avg_pool2d(3, stride=2, padding=1),
        1,
        ((2, 3, 7, 6),),
        theirs=nn("avg_pool2d", kernel_size=3, stride=2, padding=1),
    ),
    product(
        "avg_pool2d inside",
        lambda x: x.avg_pool2d(2, padding=1, count_include_pad=False),
        1,
        ((1, 2, 5, 5),),
        theirs=nn("avg_pool2d", kernel_size=2, padding=1, count_include_pad=False),
    ),
    product(
        "scaled_dot_product_attention",
        lambda q, k, v: q.scaled_dot_product_attention(k, v),
        3,
        ((2, 2, 5, 4),) * 3,
        theirs=nn("scaled_dot_product_attention"),
        ulps=4 * SUM,
    ),
    product(
        "scaled_dot_product_attention causal",
        lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
        3,
        ((1, 2, 5, 4),) * 3,
        theirs=nn("scaled_dot_product_attention", is_causal=True),
        ulps=4 * SUM,
    ),
    product(
        "sequential",
        lambda x: x.sequential([Tensor.square, Tensor.sum]),
        1,
        ((3, 5),),
        theirs=lambda x: x.square().sum(),
    ),
)


def loss(
    name: str, kinds: tuple[str, ...], shapes: tuple[Shape, ...], theirs: Function, **kwargs: Any
) -> Row:
    """A loss, whose gradient is the one of the predictions."""
    return Row(
        name,
        method(name.split()[0], **kwargs),
        kinds,
        (shapes,),
        theirs,
        PRECISE,
        True,
        2 * SUM,
        True,
    )


LOSSES = (
    loss(
        "binary_crossentropy",
        ("positive", "bools"),
        ((3, 5), (3, 5)),
        lambda x, y: nn("binary_cross_entropy")(x / 5, y.to(x.dtype)),
    )._replace(ours=lambda x, y: (x / 5).binary_crossentropy(y.cast(x.dtype))),
    loss(
        "binary_crossentropy_logits",
        ("numbers", "bools"),
        ((3, 5), (3, 5)),
        lambda x, y: nn("binary_cross_entropy_with_logits")(x, y.to(x.dtype)),
    )._replace(ours=lambda x, y: x.binary_crossentropy_logits(y.cast(x.dtype))),
    loss("cross_entropy", ("numbers", "below 5"), ((4, 5), (4,)), nn("cross_entropy")),
    loss(
        "cross_entropy smooth",
        ("numbers", "below 3"),
        ((2, 3, 4), (2, 4)),
        nn("cross_entropy", label_smoothing=0.1),
        label_smoothing=0.1,
    ),
    loss(
        "sparse_categorical_crossentropy",
        ("numbers", "below 5"),
        ((4, 5), (4,)),
        nn("cross_entropy"),
    ),
    loss("nll_loss", ("numbers", "below 5"), ((4, 5), (4,)), nn("nll_loss")),
    loss(
        "nll_loss none",
        ("numbers", "below 3"),
        ((2, 3, 4), (2, 4)),
        nn("nll_loss", reduction="none"),
        reduction="none",
    ),
)

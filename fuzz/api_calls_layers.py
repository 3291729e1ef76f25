"""Calls of `fuzz.api` that layers are made of: windows, losses, norms; and in-place forms."""

from __future__ import annotations

import math
from typing import Any

from fuzz.api_calls import add_maker, method, nn, torch
from fuzz.api_draw import FLOATS, Call, Draw, Function
from weft.tensor import Tensor


@add_maker("conv2d")
def _conv(draw: Draw) -> Call:
    rank, groups = draw.integer(1, 3), draw.integer(1, 2)
    kernel = tuple(draw.integer(1, 3) for _ in range(rank))
    stride, dilation, padding = draw.integer(1, 2), draw.integer(1, 2), draw.integer(0, 2)
    x = draw.values((draw.integer(1, 2), 2 * groups, *(draw.integer(5, 6),) * rank), "float32")
    weight = draw.values((groups * draw.integer(1, 2), 2, *kernel), "float32")
    kwargs = {"stride": stride, "dilation": dilation, "padding": padding, "groups": groups}
    theirs: Function = lambda y, w: getattr(nn(), f"conv{rank}d")(y, w, **kwargs)  # noqa: E731
    text = f"{x.shape} {weight.shape} {kwargs}"
    return Call("conv2d", method("conv2d", **kwargs), theirs, [x, weight], text, 64, True)


@add_maker("conv_transpose2d")
def _conv_transpose(draw: Draw) -> Call:
    rank, groups = draw.integer(1, 2), draw.integer(1, 2)
    kernel = tuple(draw.integer(1, 3) for _ in range(rank))
    stride = draw.integer(1, 3)
    kwargs = {
        "stride": stride,
        "dilation": draw.integer(1, 2),
        "padding": draw.integer(0, min(kernel) - 1),
        "output_padding": draw.integer(0, stride - 1),
        "groups": groups,
    }
    x = draw.values((2, 2 * groups, *(draw.integer(3, 5),) * rank), "float32")
    weight = draw.values((2 * groups, draw.integer(1, 2), *kernel), "float32")
    theirs: Function = lambda y, w: getattr(nn(), f"conv_transpose{rank}d")(y, w, **kwargs)  # noqa: E731
    ours = method("conv_transpose2d", **kwargs)
    return Call(
        "conv_transpose2d",
        ours,
        theirs,
        [x, weight],
        f"{x.shape} {weight.shape} {kwargs}",
        64,
        True,
    )


@add_maker("pool")
def _pool(draw: Draw) -> Call:
    rank = draw.integer(1, 3)
    kernel = tuple(draw.integer(1, 3) for _ in range(rank))
    padding = draw.integer(0, min(kernel) // 2)
    kwargs = {"stride": draw.integer(1, 3), "padding": padding, "ceil_mode": draw.flag()}
    x = draw.values((2, 2, *(draw.integer(3, 6),) * rank), "float32", "distinct")
    name = draw.choice(("max", "avg"))
    if name == "max":
        kwargs["dilation"] = draw.integer(1, 2) if min(x.shape[2:]) > 4 else 1
    else:
        kwargs["count_include_pad"] = draw.flag()
    theirs: Function = lambda y: getattr(nn(), f"{name}_pool{rank}d")(y, kernel, **kwargs)  # noqa: E731
    ours = method(f"{name}_pool2d", kernel, **kwargs)
    return Call(f"{name}_pool2d", ours, theirs, [x], f"{x.shape} {kernel} {kwargs}", 32, True)


@add_maker("adaptive pool")
def _adaptive(draw: Draw) -> Call:
    name = draw.choice(("adaptive_avg_pool2d", "adaptive_max_pool2d"))
    x = draw.values((1, 2, draw.integer(2, 7), draw.integer(2, 7)), "float32", "distinct")
    size = (draw.integer(1, 8), draw.integer(1, 5))
    theirs: Function = lambda y: getattr(nn(), name)(y, size)  # noqa: E731
    return Call(name, method(name, size), theirs, [x], f"{x.shape} {size}", 32, True)


@add_maker("interpolate")
def _interpolate(draw: Draw) -> Call:
    mode = draw.choice(("nearest", "nearest-exact", "bilinear", "bicubic", "area"))
    x = draw.values((1, 2, draw.integer(1, 6), draw.integer(1, 6)), "float32")
    kwargs: dict[str, Any] = {"size": (draw.integer(1, 8), draw.integer(1, 8)), "mode": mode}
    if mode in ("bilinear", "bicubic"):
        kwargs["align_corners"] = draw.flag()
    theirs: Function = lambda y: nn().interpolate(y, **kwargs)  # noqa: E731
    return Call(
        "interpolate",
        method("interpolate", **kwargs),
        theirs,
        [x],
        f"{x.shape} {kwargs}",
        64,
        True,
    )


@add_maker("layernorm")
def _layernorm(draw: Draw) -> Call:
    x = draw.values(draw.shape(2, empty=False), "float32", "distinct")
    count = draw.integer(1, x.ndim)
    axes = tuple(range(x.ndim - count, x.ndim))
    theirs: Function = lambda y: nn().layer_norm(y, x.shape[x.ndim - count :])  # noqa: E731
    gradient = math.prod(x.shape[x.ndim - count :]) > 2
    return Call(
        "layernorm", method("layernorm", axes), theirs, [x], f"{x.shape} {axes}", 64, gradient
    )


@add_maker("losses")
def _losses(draw: Draw) -> Call:
    reduction = draw.choice(("mean", "sum", "none"))
    classes = draw.integer(2, 5)
    rest = draw.shape(0, 2, empty=False)
    x = draw.values((3, classes, *rest), "float32")
    target = draw.index((3, *rest), classes)
    smoothing = draw.choice((0.0, 0.25))
    kwargs = {"reduction": reduction, "label_smoothing": smoothing}
    theirs: Function = lambda y, t: nn().cross_entropy(y, t, **kwargs)  # noqa: E731
    ours = method("cross_entropy", **kwargs)
    return Call("cross_entropy", ours, theirs, [x, target], f"{x.shape} {kwargs}", 64, True)


@add_maker("in place")
def _in_place(draw: Draw) -> Call:
    name = draw.choice(("add_", "mul_", "sub_", "div_", "clamp_min_", "copy_", "atan2_"))
    shape = draw.shape()
    dtype = draw.choice(FLOATS)
    arrays = [draw.values(shape, dtype), draw.values(shape, dtype, "positive")]
    function: Function = lambda x, y: getattr(x.clone(), name)(y)  # noqa: E731
    return Call(name, function, function, arrays, f"{dtype} {shape}", 8, False)


@add_maker("setitem")
def _setitem(draw: Draw) -> Call:
    x = draw.values(draw.shape(1, 3), "float32")
    key = tuple(
        draw.integer(-size, size - 1)
        if size and draw.flag()
        else slice(draw.integer(0, 2), None, draw.choice((None, 2)))
        for size in x.shape[: draw.integer(1, x.ndim)]
    )
    value = draw.values(draw.broadcast(x[key].shape), "float32")

    def function(y: Any, v: Any) -> Any:
        y = y.clone()
        y[key] = v
        return y

    return Call(
        "setitem", function, function, [x, value], f"{x.shape} {key} {value.shape}", 0, True
    )


@add_maker("lerp")
def _lerp(draw: Draw) -> Call:
    dtype = draw.choice(FLOATS)
    shape = draw.shape()
    arrays = [draw.values(shape, dtype) for _ in range(3)]
    name = draw.choice(("lerp", "addcmul", "addcdiv", "masked_fill", "clamp"))
    if name == "masked_fill":
        arrays = [arrays[0], draw.values(draw.broadcast(shape), "bool")]
        function = method("masked_fill", 2.5)
    elif name == "addcdiv":
        arrays[2] = draw.values(shape, dtype, "positive")
        function = method(name)
    else:
        function = method(name)
    return Call(name, function, function, arrays, f"{dtype} {shape}", 8, name != "clamp")


@add_maker("einsum")
def _einsum(draw: Draw) -> Call:
    sizes = {letter: draw.integer(1, 4) for letter in "abcd"}
    terms = [
        "".join(draw.random.sample("abcd", draw.integer(1, 3))) for _ in range(draw.integer(1, 3))
    ]
    used = sorted(set("".join(terms)))
    out = "".join(draw.random.sample(used, draw.integer(0, len(used))))
    formula = ",".join(terms) + "->" + out
    arrays = [draw.values(tuple(sizes[each] for each in term), "float32") for term in terms]
    ours: Function = lambda *xs: Tensor.einsum(formula, *xs)  # noqa: E731
    theirs: Function = lambda *xs: torch().einsum(formula, *xs)  # noqa: E731
    return Call("einsum", ours, theirs, arrays, formula, 64, True)


@add_maker("attention")
def _attention(draw: Draw) -> Call:
    lead = draw.shape(1, 2, empty=False)
    length, keys, size = draw.integer(1, 4), draw.integer(1, 4), draw.integer(1, 4)
    arrays = [
        draw.values((*lead, length, size), "float32"),
        draw.values((*lead, keys, size), "float32"),
        draw.values((*lead, keys, draw.integer(1, 3)), "float32"),
    ]
    kwargs = {"is_causal": draw.flag() and length == keys}
    theirs: Function = lambda q, k, v: nn().scaled_dot_product_attention(q, k, v, **kwargs)  # noqa: E731
    ours = method("scaled_dot_product_attention", **kwargs)
    text = f"{[a.shape for a in arrays]} {kwargs}"
    return Call("scaled_dot_product_attention", ours, theirs, arrays, text, 64, True)


@add_maker("binary losses")
def _binary_losses(draw: Draw) -> Call:
    shape = draw.shape(0, 3, empty=False)
    reduction = draw.choice(("mean", "sum", "none"))
    target = draw.values(shape, "bool").astype("float32")
    if draw.flag():
        x = draw.values(shape, "float32")
        peer, name = "binary_cross_entropy_with_logits", "binary_crossentropy_logits"
    else:
        x = abs(draw.values(shape, "float32", "unit"))
        peer, name = "binary_cross_entropy", "binary_crossentropy"
    theirs: Function = lambda y, t: getattr(nn(), peer)(y, t.to(y.dtype), reduction=reduction)  # noqa: E731
    ours: Function = lambda y, t: getattr(y, name)(t.cast(y.dtype).detach(), reduction=reduction)  # noqa: E731
    # The gradient of the target is left out: it is data.
    return Call(name, ours, theirs, [x, target.astype(bool)], f"{shape} {reduction}", 64, True)


@add_maker("distances")
def _distance(draw: Draw) -> Call:
    """Losses of two tensors of one shape."""
    shape = tuple(draw.integer(1, 4) for _ in range(draw.integer(1, 3)))
    x, y = draw.values(shape, "float32"), draw.values(shape, "float32")
    name = draw.choice(("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss"))
    kwargs: dict[str, Any] = {"reduction": draw.choice(("mean", "sum", "none"))}
    if name == "huber_loss":
        kwargs["delta"] = draw.choice((0.5, 1.0, 2.0))
    theirs: Function = lambda a, b: getattr(nn(), name)(a, b, **kwargs)  # noqa: E731
    return Call(name, method(name, **kwargs), theirs, [x, y], f"{shape} {kwargs}", 64, True)


@add_maker("masked_scatter")
def _masked_scatter(draw: Draw) -> Call:
    shape = tuple(draw.integer(0, 4) for _ in range(draw.integer(1, 3)))
    x = draw.values(shape, draw.choice(FLOATS))
    mask = draw.values(shape[draw.integer(0, len(shape) - 1) :], "bool")
    source = draw.values((math.prod(shape) + draw.integer(0, 2),), x.dtype.name)
    function = method("masked_scatter")
    return Call(
        "masked_scatter", function, function, [x, mask, source], f"{shape} {mask.shape}", 0, True
    )


@add_maker("nll_loss")
def _nll_loss(draw: Draw) -> Call:
    classes, reduction = draw.integer(2, 5), draw.choice(("mean", "sum", "none"))
    x = draw.values((4, classes), "float32")
    target = draw.index((4,), classes)
    weight = draw.values((classes,), "float32", "positive")
    ours: Function = lambda y, t, w: y.nll_loss(t, w.detach(), reduction=reduction)  # noqa: E731
    theirs: Function = lambda y, t, w: nn().nll_loss(y, t, w.detach(), reduction=reduction)  # noqa: E731
    return Call("nll_loss", ours, theirs, [x, target, weight], reduction, 64, True)


@add_maker("gates")
def _gates(draw: Draw) -> Call:
    name = draw.choice(("glu", "normalize", "prelu", "threshold", "one_hot"))
    shape = draw.shape(2, 4, empty=False)
    axis = draw.axis(len(shape))
    x = draw.values(shape, "float32")
    if name == "glu":
        x = draw.values((*shape[:-1], 2 * shape[-1]), "float32")
        return Call(name, method(name), lambda y: nn().glu(y), [x], f"{x.shape}", 16, True)
    if name == "normalize":
        p = draw.choice((1.0, 2.0, 3.0))
        theirs: Function = lambda y: nn().normalize(y, p=p, dim=axis)  # noqa: E731
        return Call(name, method(name, p, axis), theirs, [x], f"{shape} {p} {axis}", 64, True)
    if name == "prelu":
        weight = draw.values((shape[1],), "float32")
        return Call(name, method(name), nn().prelu, [x, weight], f"{shape}", 4, True)
    if name == "one_hot":
        index = draw.index(shape, 4)
        return Call(name, method(name, 4), lambda y: nn().one_hot(y, 4), [index], f"{shape}")
    return Call(
        name,
        method(name, 0.5, 2.0),
        lambda y: nn().threshold(y, 0.5, 2.0),
        [x],
        f"{shape}",
        0,
        True,
    )


@add_maker("unpool")
def _unpool(draw: Draw) -> Call:
    x = draw.values((1, 2, draw.integer(2, 6), draw.integer(2, 6)), "float32", "distinct")

    def function(pool: Function, unpool: Function) -> Function:
        def both(y: Any) -> Any:
            values, indices = pool(y)
            return unpool(values, indices), indices

        return both

    ours = function(
        lambda y: y.max_pool2d(2, return_indices=True), lambda v, i: v.max_unpool2d(i, 2)
    )
    theirs = function(
        lambda y: nn().max_pool2d(y, 2, return_indices=True),
        lambda v, i: nn().max_unpool2d(v, i, 2),
    )
    return Call("max_unpool2d", ours, theirs, [x], f"{x.shape}")

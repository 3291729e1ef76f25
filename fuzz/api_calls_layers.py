"""Calls of `fuzz.api` that layers are made of: windows, losses, norms; and in-place forms."""

from __future__ import annotations

import math
from typing import Any

from fuzz.api_calls import add_maker, method, nn
from fuzz.api_draw import FLOATS, Call, Draw, Function


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

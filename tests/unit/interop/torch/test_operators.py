"""Every row of the table of ATen operators against PyTorch itself, as a graph of one node."""

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from weft.interop.torch.compiled import Compiled  # noqa: E402
from weft.interop.torch.graph import read_graph  # noqa: E402
from weft.interop.torch.table import operators  # noqa: E402

pytestmark = pytest.mark.peers("torch")
GENERATOR = torch.Generator()


def x(*shape):
    return torch.rand(shape, generator=GENERATOR) * 0.8 + 0.1


def z(*shape):
    """Both signs."""
    return torch.rand(shape, generator=GENERATOR) * 4 - 2


def n(*shape, below=5):
    return torch.randint(0, below, shape, generator=GENERATOR)


def b(*shape):
    return torch.rand(shape, generator=GENERATOR) < 0.5


UNARY = [
    "acos",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logit",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
SIGNED = [
    "abs",
    "ceil",
    "floor",
    "frac",
    "isfinite",
    "isinf",
    "isnan",
    "logical_not",
    "neg",
    "relu",
    "round",
    "sgn",
    "sign",
    "signbit",
    "square",
    "trunc",
    "hardsigmoid",
    "hardswish",
    "mish",
    "silu",
    "gelu",
    "elu",
    "leaky_relu",
    "hardtanh",
    "softplus",
    "deg2rad",
    "nan_to_num",
]
SCALAR = ["eq", "fmod", "ge", "gt", "le", "lt", "mul", "ne", "remainder", "add", "sub", "div"]
SAME = ["clone", "alias", "detach", "lift_fresh_copy", "lift"]


def cases():
    GENERATOR.manual_seed(0)
    for name in UNARY:
        yield name, x(2, 3)
    yield "acosh", x(2, 3) + 1
    for name in SIGNED:
        yield name, z(2, 3)
    yield "sqrt", n(3)
    for name in SAME:
        yield name, z(2, 3)
    for name in SCALAR:
        yield f"{name}.Scalar", z(2, 3), 0.5
        yield f"{name}.Tensor", z(2, 3), z(3)
        yield f"{name}.Tensor", n(2, 3), z()  # an int and a float of no axes
        yield f"{name}.Tensor", n(2, 3) + 1, n(3) + 1
        yield f"{name}.Scalar", n(2, 3) + 1, 2
    for name in ("atan2", "copysign.Tensor", "fmax", "fmin", "hypot", "logaddexp", "nextafter"):
        yield name, z(2, 3), z(3)
    yield "maximum", z(2, 3), z(3)
    yield "minimum", n(2, 3), n(3)
    yield "copysign.Scalar", z(3), -1.0
    for kind in ("Tensor", "Scalar_Self"):
        yield f"xlogy.{kind}", *((x(2, 3), x(3)) if kind == "Tensor" else (2.0, x(3)))
    yield "xlogy.Scalar_Other", x(3), 2.0
    yield "remainder.Scalar_Tensor", 7, n(3) + 1
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield f"{name}.Tensor", n(2, 3), n(3)
        yield f"{name}.Scalar", n(2, 3), 3
        yield f"{name}.Scalar_Tensor", 3, n(2, 3)
    yield "bitwise_not", n(3)
    yield "bitwise_not", b(3)
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield name, z(2, 3), b(3)
    for side in ("left", "right"):
        yield f"bitwise_{side}_shift.Tensor", n(3), n(3)
        yield f"bitwise_{side}_shift.Tensor_Scalar", n(3), 2
    yield "add.Tensor", z(3), z(3), {"alpha": 2}
    yield "rsub.Scalar", z(3), 2, 3
    yield "rsub.Tensor", z(3), z(3)
    for mode in ("trunc", "floor", None):
        yield "div.Tensor_mode", z(4), z(4), {"rounding_mode": mode}
        yield "div.Scalar_mode", n(4) - 2, 2, {"rounding_mode": mode}
    yield "floor_divide", n(4) - 2, n(4) + 1
    yield "pow.Tensor_Tensor", x(3), z(3)
    yield "pow.Tensor_Scalar", z(3), 3
    yield "pow.Tensor_Scalar", n(3), 2
    yield "pow.Scalar", 2, z(3)
    yield "where.self", b(2, 3), z(3), n(2, 1)
    yield "where.ScalarOther", b(2, 3), z(3), 1.0
    yield "where.ScalarSelf", b(2, 3), 1.0, z(3)
    yield "clamp", z(5), -0.5, None
    yield "clamp", n(5), 1, 3
    yield "clamp.Tensor", z(2, 5), z(5), None
    yield "clamp_min", z(5), 0.0
    yield "clamp_min.Tensor", z(5), z(5)
    yield "clamp_max", z(5), 0.0
    yield "clamp_max.Tensor", z(5), z(5)
    yield "gelu", z(5), {"approximate": "tanh"}
    yield "elu", z(5), 0.7, 1.1, 0.9
    yield "leaky_relu", z(5), 0.2
    yield "softplus", z(5) * 20, 2.0, 5.0
    yield "round.decimals", z(5), {"decimals": 1}
    yield "lerp.Scalar", z(3), z(3), 0.3
    yield "lerp.Tensor", z(3), z(3), x(3)
    yield "addcmul", z(3), z(3), z(3), {"value": 2}
    yield "addcdiv", z(3), z(3), x(3), {"value": 2}
    # Reductions.
    for name in ("sum", "prod", "any", "all", "mean", "max", "min", "amax", "amin"):
        yield name, z(2, 3)
    yield "sum", n(2, 3)
    yield "any", n(2, 3, below=2)
    for name in ("sum.dim_IntList", "mean.dim", "amax", "amin", "any.dims", "all.dims"):
        yield name, z(2, 3, 4), [0, -1], True
    yield "mean.dim", z(2, 3), [1], {"dtype": torch.float64}
    yield "prod.dim_int", n(2, 3), 1
    for name in ("any.dim", "all.dim", "max.dim", "min.dim", "argmax", "argmin"):
        yield name, z(2, 3), 1, True
    yield "argmax", z(2, 3)
    yield "argmin", z(2, 3)
    yield "var.correction", z(2, 3), [1], {"correction": 0}
    yield "var.dim", z(2, 3), [1], True
    yield "var_mean.correction", z(2, 3), [0]
    yield "logsumexp", z(2, 3), [1]
    for p in (0, 1, 2, 3, float("inf"), -float("inf")):
        yield "linalg_vector_norm", z(2, 3), p, [1]
    for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
        yield name, z(2, 5), 1
    yield "cumsum", n(2, 5), 0
    yield "sort", z(2, 5), 1, True
    yield "sort.stable", n(2, 5), {"stable": True, "dim": 0}
    yield "topk", z(2, 5), 3
    yield "_softmax", z(2, 5), 1, False
    yield "_log_softmax", z(2, 5), 0, False
    yield "_softmax_backward_data", z(2, 5), x(2, 5), 1, torch.float32
    yield "_log_softmax_backward_data", z(2, 5), -x(2, 5), 1, torch.float32
    # Views.
    for name in ("view", "reshape", "_unsafe_view", "view_copy"):
        yield name, z(2, 6), [3, 4]
    yield "_reshape_copy", z(2, 6), [-1]
    yield "view.dtype", z(2, 6), torch.int32
    yield "permute", z(2, 3, 4), [2, 0, 1]
    yield "permute_copy", z(2, 3, 4), [2, 0, 1]
    yield "t", z(2, 3)
    yield "transpose.int", z(2, 3, 4), 0, -1
    yield "expand", z(2, 1), [4, -1, 3]
    yield "expand_copy", z(2, 1), [2, 3]
    yield "unsqueeze", z(2, 3), -1
    yield "unsqueeze_copy", z(2, 3), 0
    yield "squeeze", z(2, 1, 3, 1)
    yield "squeeze.dim", z(2, 1, 3), 1
    yield "squeeze.dims", z(2, 1, 3, 1), [0, -1]
    yield "squeeze_copy.dims", z(2, 1, 3, 1), [1]
    for suffix in ("", "_copy"):
        yield f"select{suffix}.int", z(2, 3), 1, -1
        yield f"slice{suffix}.Tensor", z(2, 9), 1, 1, 9223372036854775807, 3
        yield f"split_with_sizes{suffix}", z(2, 5), [2, 3], 1
        yield f"diagonal{suffix}", z(3, 4), 1
    yield "slice_scatter", z(2, 5), z(2, 2), 1, 1, 5, 2
    yield "select_scatter", z(2, 5), z(2), 1, 3
    yield "split.Tensor", z(5, 2), 2
    yield "unbind.int", z(2, 3), 1
    yield "cat", [z(2, 3), n(1, 3), z(0)]
    yield "stack", [z(2), z(2)], 1
    yield "flip", z(2, 3), [0, 1]
    yield "roll", z(2, 3), [1, -1], [0, 1]
    yield "roll", z(6), [2]
    yield "repeat", z(2, 3), [2, 1, 3]
    yield "tril", z(3, 4), -1
    yield "triu", z(3, 4), 1
    yield "constant_pad_nd", z(2, 3), [1, 2, 0, -1], 7.0
    yield "as_strided", z(3, 4), [2, 3], [1, 4], 1
    yield "as_strided", z(4, 3).t(), [2, 3], [3, 1]
    yield "_to_copy", z(3) * 9, {"dtype": torch.int64}
    yield "to.dtype", z(3), torch.float64
    yield "contiguous", z(2, 3).t()
    yield "copy", z(2, 3), n(3)
    yield "fill.Scalar", z(2, 3), 4
    yield "fill.Tensor", n(2, 3), z()
    for name in ("full_like", "fill.Scalar"):
        yield name, n(2, 3), 2
    for name in ("zeros_like", "ones_like"):
        yield name, z(2, 3), {"dtype": torch.int32}
    yield "full", [2, 3], 1.5
    yield "scalar_tensor", 3
    yield "zeros", [2, 3]
    yield "ones", [2, 3], {"dtype": torch.bool}
    yield "new_zeros", z(1), [2]
    yield "new_ones", n(1), [2]
    yield "new_full", z(1), [2], 3.0
    yield "eye", 3
    yield "eye.m", 2, 3
    yield "arange", 4
    yield "arange.start", 2, 7
    yield "arange.start_step", 1, 2, 0.25
    # Indices.
    yield "index.Tensor", z(4, 5), [n(3, below=4), None]
    yield "index.Tensor", z(4, 5, 2), [None, n(3), n(3, below=2)]
    yield "_unsafe_index.Tensor", z(4, 5), [n(2, 1, below=4), n(3)]
    for accumulate in (False, True):
        yield "index_put", z(4, 5), [torch.tensor([2, 0])], z(2, 5), accumulate
        yield "_unsafe_index_put", z(4, 5), [None, torch.tensor([2, 0])], z(4, 2), accumulate
    yield "index_put", z(4, 5), [n(6, below=4), n(6)], z(6), True
    yield "index_put", z(4, 5), [b(4, 5)], z()
    yield "index_put", z(4, 5), [b(4)], z(1)
    yield "index_select", z(2, 5), 1, n(3)
    yield "index_add", z(2, 5), 1, n(3), z(2, 3), {"alpha": 2}
    yield "gather", z(2, 5), 1, n(2, 3)
    yield "scatter.value", z(2, 5), 1, torch.tensor([[1], [3]]), 7.0
    yield "scatter.src", z(2, 5), 1, torch.tensor([[1, 0], [3, 2]]), z(2, 3)
    yield "scatter_add", z(2, 5), 1, n(2, 3), z(2, 3)
    yield "scatter_reduce.two", z(2, 5), 1, n(2, 3), z(2, 3), "amax", {"include_self": False}
    yield "masked_fill.Scalar", z(2, 3), b(2, 3), -1.0
    yield "masked_fill.Tensor", z(2, 3), b(3), z()
    yield "masked_scatter", z(2, 3), b(2, 3), z(6)
    yield "embedding", z(5, 3), n(2, 4)
    for by_frequency, padding in ((False, -1), (True, 2)):
        yield "embedding_dense_backward", z(2, 4, 3), n(2, 4), 5, padding, by_frequency
    # Products.
    yield "mm", z(2, 3), z(3, 4)
    yield "bmm", z(2, 2, 3), z(2, 3, 4)
    yield "matmul", z(2, 2, 3), z(3, 4)
    yield "mv", z(2, 3), z(3)
    yield "dot", z(3), z(3)
    yield "addmm", z(4), z(2, 3), z(3, 4), {"beta": 2, "alpha": 3}
    yield "addmm", z(2, 4), z(2, 3), z(3, 4), {"beta": 0}
    yield "baddbmm", z(2, 2, 4), z(2, 2, 3), z(2, 3, 4)
    yield "_cdist_forward", z(3, 4), z(2, 4), 2.0, None
    attention = "_scaled_dot_product_flash_attention_for_cpu"
    q, k, v = z(2, 2, 5, 4), z(2, 2, 6, 4), z(2, 2, 6, 4)
    for how in ({}, {"attn_mask": z(5, 6)}, {"scale": 0.3}):
        yield attention, q, k, v, how
        out, logs = getattr(torch.ops.aten, attention)(q, k, v, **how)
        yield f"{attention}_backward", z(2, 2, 5, 4), q, k, v, out, logs, 0.0, False, how
    out, logs = getattr(torch.ops.aten, attention)(q, q, q, 0.0, True)
    yield attention, q, q, q, 0.0, True
    yield f"{attention}_backward", z(2, 2, 5, 4), q, q, q, out, logs, 0.0, True
    # Layers.
    for how in ([1], [0], [1]), ([2], [1], [1]), ([1], [2], [2]):
        stride, padding, dilation = (each * 2 for each in how)
        yield (
            "convolution",
            z(2, 3, 7, 6),
            z(4, 3, 3, 2),
            z(4),
            stride,
            padding,
            dilation,
            False,
            [0],
            1,
        )
    wide = ([1], [1], [1])
    for rank in (1, 3):
        shape = (5, 4, 6)[:rank]
        yield "convolution", z(2, 3, *shape), z(4, 3, *[3] * rank), None, *wide, False, [0], 1
    yield "convolution", z(2, 4, 5), z(4, 2, 3), None, *wide, False, [0], 2
    for wanted in ([True, True, True], [False, True, False], [True, False, True]):
        yield (
            "convolution_backward",
            z(2, 4, 3),
            z(2, 3, 5),
            z(4, 3, 3),
            [4],
            [2],
            [1],
            [1],
            False,
            [0],
            1,
            wanted,
        )
    yield (
        "convolution_backward",
        z(2, 4, 5),
        z(2, 4, 5),
        z(4, 2, 3),
        [4],
        *wide,
        False,
        [0],
        2,
        [True] * 3,
    )
    yield "convolution", z(2, 4, 5), z(4, 3, 3), z(3), [2], [1], [1], True, [1], 1
    yield (
        "convolution_backward",
        z(2, 3, 10),
        z(2, 4, 5),
        z(4, 3, 3),
        [3],
        [2],
        [1],
        [1],
        True,
        [1],
        1,
        [True] * 3,
    )
    pool = ([3, 2], [2, 2], [1, 0])
    image = z(2, 3, 7, 6)
    for ceil_mode in (False, True):
        how = (*pool, [1, 1], ceil_mode)
        yield "max_pool2d_with_indices", image, *how
        value, where = torch.ops.aten.max_pool2d_with_indices(image, *how)
        yield "max_pool2d_with_indices_backward", z(*value.shape), image, *how, where
        yield "avg_pool2d", image, *pool, ceil_mode, False
        yield "avg_pool2d_backward", z(*value.shape), image, *pool, ceil_mode, False, None
    yield "avg_pool2d", image, [2, 2], [2, 2], [0, 0], False, True, 3
    cube = z(1, 2, 4, 4, 4)
    yield "max_pool3d_with_indices", cube, [2, 2, 2]
    value, where = torch.ops.aten.max_pool3d_with_indices(cube, [2, 2, 2])
    yield (
        "max_pool3d_with_indices_backward",
        z(*value.shape),
        cube,
        [2] * 3,
        [2] * 3,
        [0] * 3,
        [1] * 3,
        False,
        where,
    )
    yield "avg_pool3d", cube, [2, 2, 2]
    yield (
        "avg_pool3d_backward",
        z(*value.shape),
        cube,
        [2] * 3,
        [2] * 3,
        [0] * 3,
        False,
        True,
        None,
    )
    yield "_adaptive_avg_pool2d", image, [3, 4]
    yield "_adaptive_avg_pool2d_backward", z(2, 3, 3, 4), image
    yield "_adaptive_avg_pool3d", cube, [2, 3, 1]
    yield "_adaptive_avg_pool3d_backward", z(1, 2, 2, 3, 1), cube
    yield "native_layer_norm", z(2, 3, 4), [3, 4], z(3, 4), z(3, 4), 1e-5
    yield "native_layer_norm", z(2, 3, 4), [4], None, None, 1e-5
    yield "native_group_norm", z(2, 4, 5), z(4), None, 2, 4, 5, 2, 1e-5
    for training in (True, False):
        yield (
            "_native_batch_norm_legit_functional",
            z(4, 3, 2),
            z(3),
            z(3),
            z(3),
            x(3),
            training,
            0.1,
            1e-5,
        )
    yield "_native_batch_norm_legit.no_stats", z(4, 3), None, None, True, 0.1, 1e-5
    yield "_native_batch_norm_legit_no_training", z(4, 3), z(3), z(3), z(3), x(3), 0.1, 1e-5
    yield "grid_sampler_2d", image, z(2, 3, 4, 2) / 2, 0, 0, False
    yield "upsample_nearest2d", image, [14, 12], 2.0, 2.0
    yield "upsample_bilinear2d", image, [9, 4], True
    yield "upsample_bilinear2d", image, [10, 12], False, 1.5, 2.0
    encoder = (z(12, 4), z(12), z(4, 4), z(4))
    for mask in ((), (b(5, 5).triu(1), 0), (torch.zeros(2, 5, dtype=torch.bool), 1)):
        for norm_first in (False, True):
            rest = (z(4), z(4), z(4), z(4), z(8, 4), z(8), z(4, 8), z(4), *mask)
            yield (
                "_transformer_encoder_layer_fwd",
                z(2, 5, 4),
                4,
                2,
                *encoder,
                norm_first,
                norm_first,
                1e-5,
                *rest,
            )


CASES = [(f"{name}" if "." in name else f"{name}.default", args) for name, *args in cases()]
# What PyTorch draws first, what is empty memory, what needs no values, and other tests.
ELSEWHERE = {
    "bernoulli.drawn", "native_dropout.default", "_embedding_bag.default",
    "_embedding_bag_backward.default", "_embedding_bag_forward_only.default",
    "_embedding_bag_dense_backward.default", "sym_size.int", "sym_numel.default",
    "empty.memory_format", "empty_strided.default", "empty_permuted.default", "empty_like.default",
    "new_empty.default", "new_empty_strided.default", "_native_multi_head_attention.default",
}  # fmt: skip


def flat_tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return (
        [each for part in value for each in flat_tensors(part)]
        if isinstance(value, (list, tuple))
        else []
    )


def refilled(value, tensors):
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, (list, tuple)):
        return [refilled(each, tensors) for each in value]
    return value


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: f"{CASES[i][0]}-{i}")
def test_operator(number):
    name, args = CASES[number]
    base, overload = name.split(".")
    operator = getattr(getattr(torch.ops.aten, base), overload)
    kwargs = args[-1] if args and isinstance(args[-1], dict) else {}
    args = [each for each in args if not isinstance(each, dict)]
    given = flat_tensors(args) + flat_tensors(list(kwargs.values()))

    def function(*tensors):
        values = iter(tensors)
        own = refilled(args, values)
        named = {key: refilled(value, values) for key, value in kwargs.items()}
        found = operator(*own, **named)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    graph = make_fx(function, tracing_mode="fake")(*given)
    found, wanted = Compiled(read_graph(graph))(list(given)), function(*given)
    for own, other in zip(found, wanted, strict=True):
        if own is None:  # what was not asked for, which PyTorch may give all the same
            assert base == "convolution_backward"
            continue
        assert own.shape == other.shape and own.dtype == other.dtype
        if other.numel():
            torch.testing.assert_close(own, other, rtol=2e-5, atol=2e-5)


def test_every_row_has_a_case():
    tested = {name for name, _ in CASES} | ELSEWHERE
    aliases = {name for name in operators() if not _exists(name)}
    assert set(operators()) - tested - aliases == set()


def _exists(name):
    base, overload = name.split(".")
    return hasattr(torch.ops.aten, base) and overload in getattr(torch.ops.aten, base).overloads()

"""The array API standard, function by function, with NumPy, which follows it, as the oracle."""

import itertools
import math

import numpy as np
import pytest

import weft
from weft import Tensor
from weft import array_api as xp

SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
INTEGERS, FLOATS = (*SIGNED, *UNSIGNED), ("float32", "float64")
NUMERIC = (*INTEGERS, *FLOATS)
COMPLEX = ("complex64", "complex128")
ALL = ("bool", *NUMERIC)
RANDOM = np.random.default_rng(0)


def array(dtype, *shape, low=-4, high=5):
    """Values that every dtype holds, with zeros, both signs where there are two, and fractions."""
    if dtype == "bool":
        return RANDOM.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        return RANDOM.uniform(low, high, shape).astype(dtype)
    return RANDOM.integers(0 if dtype in UNSIGNED else low, high, shape).astype(dtype)


def to_ours(value):
    if isinstance(value, np.ndarray):
        return xp.asarray(value)
    if isinstance(value, (list, tuple)):
        return type(value)(to_ours(each) for each in value)
    return value


def assert_same(found, wanted, checks_dtype=True, tolerance=None):
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for own, other in zip(found, wanted, strict=True):
            assert_same(own, other, checks_dtype, tolerance)
        return
    wanted = np.asarray(wanted)
    assert isinstance(found, Tensor)
    assert found.shape == wanted.shape
    if checks_dtype:
        assert found.dtype.name == wanted.dtype.name
    if tolerance is None:
        tolerance = 1e-5 if wanted.dtype == np.float32 or not checks_dtype else 1e-12
    np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=tolerance)


def check(name, *args, checks_dtype=True, tolerance=None, space="", **kwargs):
    """Call a function of both namespaces, and compare."""
    ours, theirs = (getattr(xp, space), getattr(np, space)) if space else (xp, np)
    with np.errstate(all="ignore"):
        wanted = getattr(theirs, name)(*args, **kwargs)
    own = {key: to_ours(value) for key, value in kwargs.items()}
    found = getattr(ours, name)(*map(to_ours, args), **own)
    assert_same(found, wanted, checks_dtype, tolerance)


# All names of the standard, by its pages.
CONSTANTS = "e inf nan newaxis pi"
CREATION = (
    "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones"
    " ones_like tril triu zeros zeros_like"
)
DATA_TYPES = "astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type"
IN_FLOATS = (
    "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal sin sinh"
    " sqrt tan tanh signbit"
)
UNARY = "abs ceil floor isfinite isinf isnan negative positive round sign square trunc conj real"
OF_COMPLEX = "imag"
ARITHMETIC = "add subtract multiply floor_divide remainder maximum minimum pow"
COMPARISONS = "equal not_equal less less_equal greater greater_equal"
BITWISE = (
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift bitwise_invert"
)
FLOAT_PAIRS = "divide atan2 copysign hypot logaddexp nextafter"
LOGICAL = "logical_and logical_or logical_xor logical_not"
OTHERS = "clip where"
MANIPULATION = (
    "concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack"
    " take take_along_axis matmul matrix_transpose tensordot vecdot"
)
SEARCHING = (
    "argmax argmin count_nonzero nonzero searchsorted unique_all unique_counts unique_inverse"
    " unique_values argsort sort"
)
STATISTICS = "cumulative_prod cumulative_sum max mean min prod std sum var all any diff"
NAMES = " ".join(
    (CONSTANTS, CREATION, DATA_TYPES, IN_FLOATS, UNARY, ARITHMETIC, COMPARISONS, BITWISE,
     FLOAT_PAIRS, LOGICAL, OTHERS, OF_COMPLEX, MANIPULATION, SEARCHING, STATISTICS)
).split()  # fmt: skip
LINALG = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def test_all_names_are_there_and_no_others():
    extra = {"linalg", "__array_api_version__", "__array_namespace_info__", *ALL, *COMPLEX}
    assert set(xp.__all__) == {*NAMES, *extra}
    assert all(hasattr(xp, name) for name in xp.__all__)
    assert set(xp.linalg.__all__) == set(LINALG)


def test_a_tensor_names_its_namespace():
    x = Tensor([1.0])
    assert x.__array_namespace__() is xp is weft.array_api
    assert x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match=r"version '2030\.1'"):
        x.__array_namespace__(api_version="2030.1")
    assert xp.__array_api_version__ == "2024.12"


def test_constants():
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(xp.nan)


# Promotion.
@pytest.mark.parametrize("kind", [SIGNED, UNSIGNED, INTEGERS, FLOATS, ("bool",)])
def test_promotion_within_a_kind(kind):
    for one, two in itertools.product(kind, repeat=2):
        if {one, two} & {"uint64"} and {one, two} & set(SIGNED):
            continue  # no dtype holds both
        wanted = np.result_type(np.dtype(one), np.dtype(two)).name
        pair = getattr(xp, one), getattr(xp, two)
        assert xp.result_type(*pair).name == wanted
        a, b = xp.ones((2,), dtype=pair[0]), xp.ones((1,), dtype=pair[1])
        for function in (xp.equal, xp.not_equal):
            assert function(a, b).dtype is xp.bool
        if one != "bool":
            assert (a + b).dtype.name == xp.add(a, b).dtype.name == wanted
            assert (a * b).dtype.name == xp.multiply(b, a).dtype.name == wanted
        assert xp.concat([a, b]).dtype.name == xp.where(a == b, a, b).dtype.name == wanted
        assert xp.can_cast(pair[0], pair[1]) == np.can_cast(one, two)


@pytest.mark.parametrize("dtype", ALL)
def test_scalars_are_weak(dtype):
    x = xp.asarray(array(dtype, 3))
    if dtype in NUMERIC:
        assert (x + 1).dtype is x.dtype and (1 + x).dtype is x.dtype
        assert xp.add(x, 2).dtype is x.dtype and xp.multiply(2, x).dtype is x.dtype
        assert xp.result_type(x, 3) is x.dtype
    if dtype in FLOATS:
        assert (x * 0.5).dtype is x.dtype and xp.result_type(x, 1.5) is x.dtype
        assert xp.maximum(x, 0.5).dtype is x.dtype
    if dtype == "bool":
        assert (x & True).dtype is xp.bool and xp.logical_or(x, False).dtype is xp.bool
    with pytest.raises(ValueError, match="no array or dtype"):
        xp.result_type(1, 2.0)


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="add: expected an array or a number, got list"):
        xp.add(xp.ones(3), [1, 2, 3])
    with pytest.raises(TypeError, match="logical_and"):
        xp.logical_and(xp.ones(3), xp.ones(3))


def test_dtype_questions():
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "numeric",
             "complex floating")  # fmt: skip
    for dtype, kind in itertools.product((*ALL, *COMPLEX), kinds):
        assert xp.isdtype(getattr(xp, dtype), kind) == np.isdtype(np.dtype(dtype), kind)
    assert xp.isdtype(xp.int8, ("bool", xp.int8)) and not xp.isdtype(xp.int8, xp.int16)
    with pytest.raises(ValueError, match="unknown kind"):
        xp.isdtype(xp.int8, "number")
    for dtype in FLOATS:
        own, other = xp.finfo(getattr(xp, dtype)), np.finfo(dtype)
        assert (own.bits, own.eps, own.max, own.min, own.smallest_normal) == (
            other.bits, other.eps, other.max, other.min, other.smallest_normal
        )  # fmt: skip
    for dtype in INTEGERS:
        own, other = xp.iinfo(getattr(xp, dtype)), np.iinfo(dtype)
        assert (own.bits, own.max, own.min) == (other.bits, other.max, other.min)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(ALL, repeat=2)))
def test_astype(source, target):
    x = array(source, 5, low=0)
    assert_same(xp.astype(xp.asarray(x), getattr(xp, target)), x.astype(target))


# Elements.
@pytest.mark.parametrize("name", IN_FLOATS.split())
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(name, dtype):
    tolerance = {"float32": 2e-5, "float64": 1e-11}[dtype]
    check(name, np.concatenate([array(dtype, 7), array(dtype, 7, low=-1, high=1)]),
          tolerance=tolerance)  # fmt: skip
    check(name, np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0], dtype))


@pytest.mark.parametrize("name", UNARY.split())
@pytest.mark.parametrize("dtype", NUMERIC)
def test_unary(name, dtype):
    check(name, array(dtype, 2, 5))
    if dtype in FLOATS:
        check(name, np.array([0.5, 1.5, -2.5, np.inf, -np.inf, np.nan, -0.0], dtype))


@pytest.mark.parametrize("name", ARITHMETIC.split())
@pytest.mark.parametrize("dtype", NUMERIC)
def test_arithmetic(name, dtype):
    one, two = array(dtype, 3, 4), array(dtype, 4, low=1)
    one = np.abs(one) + np.asarray(1, dtype) if name == "pow" else one
    two = np.abs(two) + np.asarray(1, dtype)
    check(name, one, two)
    check(name, one, 2)
    if dtype in FLOATS:
        check(name, one, -two)
        check(name, -one, two) if name != "pow" else None


@pytest.mark.parametrize("name", COMPARISONS.split())
@pytest.mark.parametrize("dtype", ALL)
def test_comparisons(name, dtype):
    check(name, array(dtype, 3, 4), array(dtype, 4))
    if dtype in NUMERIC:
        check(name, array(dtype, 5), 1)


@pytest.mark.parametrize("dtype", ("bool", *INTEGERS))
def test_bitwise(dtype):
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        check(name, array(dtype, 3, 4), array(dtype, 4))
    check("bitwise_invert", array(dtype, 5))
    if dtype != "bool":
        for name in ("bitwise_left_shift", "bitwise_right_shift"):
            check(name, array(dtype, 3, 4), array(dtype, 4, low=0))


@pytest.mark.parametrize("name", FLOAT_PAIRS.split())
@pytest.mark.parametrize("dtype", FLOATS)
def test_pairs_of_floats(name, dtype):
    check(name, array(dtype, 3, 4), array(dtype, 4))
    edges = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], dtype)
    check(name, edges[:, None] + np.zeros(7, dtype), edges)
    check(name, array(dtype, 3), 1.0)


def test_logical():
    for name in ("logical_and", "logical_or", "logical_xor"):
        check(name, array("bool", 3, 4), array("bool", 4))
    check("logical_not", array("bool", 3))


@pytest.mark.parametrize("dtype", NUMERIC)
def test_clip_and_where(dtype):
    x = array(dtype, 3, 4)
    check("clip", x, 1, 3)
    check("clip", x, None, 2)
    check("clip", x, array(dtype, 4, high=1), array(dtype, 4, low=2))
    check("clip", x)
    check("where", array("bool", 3, 1), x, array(dtype, 4))
    assert_same(xp.where(xp.asarray(x) > 1, xp.asarray(x), 0), np.where(x > 1, x, x * 0))


# Shapes.
def test_manipulation():
    x, y = array("float32", 2, 3, 4), array("float32", 2, 3, 4)
    for axis in (0, -1):
        check("concat", [x, y], axis=axis)
        check("stack", [x, y], axis=axis)
        check("expand_dims", x, axis=axis)
        check("unstack", x, axis=axis)
        check("flip", x, axis=axis)
        check("repeat", x, 2, axis=axis)
        check("roll", x, 2, axis=axis)
        check("take", x, np.array([1, 0, 1]), axis=axis)
    check("concat", [x, y[0]], axis=None)
    check("concat", [array("int8", 2), array("int32", 3)])
    check("flip", x)
    check("flip", x, axis=(0, 2))
    check("moveaxis", x, 0, -1)
    check("moveaxis", x, (0, 1), (2, 0))
    check("permute_dims", x, (2, 0, 1))
    check("repeat", x, 3)
    check("repeat", x[0, 0], np.array([1, 0, 2, 3]), axis=0)
    check("reshape", x, (4, -1))
    check("reshape", x, (24,), copy=True)
    check("roll", x, 5)
    check("roll", x, (1, -2), axis=(0, 2))
    check("squeeze", x[:1, :, :1], (0, 2))
    check("tile", x, (2, 1))
    check("tile", x, (2, 1, 1, 2))
    check("take", x[0, 0], np.array([3, 1]))
    check("take_along_axis", x, array("int64", 2, 3, 2, low=0, high=4), axis=-1)
    check("take_along_axis", x, array("int64", 1, 3, 4, low=0, high=2), axis=0)
    check("broadcast_to", x[:, :1], (5, 2, 3, 4))
    check("broadcast_arrays", x[:, :1], y[0])
    check("matrix_transpose", x)
    with pytest.raises(ValueError, match="more than one element"):
        xp.squeeze(xp.ones((2, 1)), 0)
    with pytest.raises(ValueError, match="no axis"):
        xp.take(xp.ones((2, 2)), xp.asarray([0]))


@pytest.mark.parametrize("dtype", NUMERIC)
def test_products(dtype):
    x, y = array(dtype, 2, 3, 4), array(dtype, 4, 2)
    check("matmul", x, y)
    check("matmul", x, y[:, 0])
    check("tensordot", x, y, axes=1)
    check("tensordot", x, y, axes=((0, 2), (1, 0)))
    check("vecdot", x, x[0])
    check("vecdot", x, x, axis=-2)


# Making arrays.
@pytest.mark.parametrize("dtype", ALL)
def test_creation(dtype):
    own, other = getattr(xp, dtype), np.dtype(dtype)
    assert_same(xp.zeros((2, 3), dtype=own), np.zeros((2, 3), other))
    assert_same(xp.ones(3, dtype=own), np.ones(3, other))
    assert_same(xp.full((2,), 1, dtype=own), np.full((2,), 1, other))
    assert xp.empty((2, 0), dtype=own).shape == (2, 0)
    x = array(dtype, 3, 4)
    mine = xp.asarray(x)
    for name in ("zeros_like", "ones_like"):
        check(name, x)
    assert xp.empty_like(mine).shape == (3, 4) and xp.empty_like(mine).dtype is own
    check("full_like", x, 1)
    check("tril", x, k=1)
    check("triu", x, k=-1)
    assert_same(xp.eye(3, 4, k=1, dtype=own), np.eye(3, 4, k=1, dtype=other))
    assert_same(mine, x)
    assert_same(xp.asarray(x.tolist(), dtype=own), x)
    assert xp.asarray(mine) is mine and xp.asarray(mine, copy=True) is not mine
    assert_same(xp.from_dlpack(x), x)


def test_creation_has_default_dtypes():
    assert xp.asarray([1, 2]).dtype is xp.int64 and xp.asarray([True]).dtype is xp.bool
    assert xp.asarray(2**40).item() == 2**40
    assert xp.asarray([1.5, 2]).dtype is xp.zeros(2).dtype is xp.float32
    assert xp.asarray(np.ones(2)).dtype is xp.float64
    assert xp.full((2,), 3).dtype is xp.int64 and xp.full((2,), 3.0).dtype is xp.float32
    assert xp.arange(3).dtype is xp.int64 and xp.arange(3.0).dtype is xp.float32
    assert xp.linspace(0, 1, 3).dtype is xp.float32
    assert xp.asarray([0.1], dtype=xp.float64).item() == 0.1
    with pytest.raises(ValueError, match="by a copy only"):
        xp.asarray([1.0], copy=False)


def test_ranges_and_grids():
    for args in ((5,), (2, 9), (9, 2, -3), (3, 3)):
        check("arange", *args)
    assert_same(xp.arange(0.0, 1.0, 0.25), np.arange(0.0, 1.0, 0.25, dtype=np.float32))
    for endpoint in (True, False):
        found = xp.linspace(1, 3, 5, dtype=xp.float64, endpoint=endpoint)
        assert_same(found, np.linspace(1, 3, 5, endpoint=endpoint))
    for indexing in ("xy", "ij"):
        for count in (1, 2, 3):
            parts = [array("float32", 2 + number) for number in range(count)]
            check("meshgrid", *parts, indexing=indexing)


# Numbers of many.
@pytest.mark.parametrize("dtype", NUMERIC)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(dtype, axis, keepdims):
    x = array(dtype, 2, 3, 4, high=3)
    for name in ("sum", "prod", "max", "min", "all", "any", "count_nonzero"):
        check(name, x, axis=axis, keepdims=keepdims)
    if dtype in FLOATS:
        check("mean", x, axis=axis, keepdims=keepdims)
        for correction in (0, 1):
            check("var", x, axis=axis, keepdims=keepdims, correction=correction)
            check("std", x, axis=axis, keepdims=keepdims, correction=correction)
    if not isinstance(axis, tuple):
        check("argmax", x, axis=axis, keepdims=keepdims)
        check("argmin", x, axis=axis, keepdims=keepdims)


def test_reductions_in_another_dtype():
    x = array("int8", 5)
    assert_same(xp.sum(xp.asarray(x), dtype=xp.float64), np.sum(x, dtype=np.float64))
    assert_same(xp.prod(xp.asarray(x), dtype=xp.int32), np.prod(x, dtype=np.int32))
    big = xp.full((3,), 2**31 - 1, dtype=xp.int32)
    assert xp.sum(big).item() == 3 * (2**31 - 1)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_scans_and_differences(dtype):
    x = array(dtype, 2, 5, high=3)
    for name in ("cumulative_sum", "cumulative_prod"):
        for axis, initial in itertools.product((0, -1), (False, True)):
            check(name, x, axis=axis, include_initial=initial)
        check(name, x[0])
    for n in (1, 2):
        check("diff", x, n=n)
    check("diff", x, axis=0, prepend=x[:1], append=x[1:])


@pytest.mark.parametrize("dtype", NUMERIC)
def test_sorting_and_searching(dtype):
    x = array(dtype, 3, 6)
    for axis in (0, -1):
        check("sort", x, axis=axis)
        mine = xp.asarray(x)
        backwards = np.flip(np.sort(x, axis=axis), axis)
        assert_same(xp.sort(mine, axis=axis, descending=True), backwards)
        assert_same(xp.argsort(mine, axis=axis), np.argsort(x, axis=axis, stable=True))
        order = xp.argsort(mine, axis=axis, descending=True)
        assert_same(xp.take_along_axis(mine, order, axis=axis), backwards)
    check("nonzero", x)
    row = np.sort(array(dtype, 7))
    for side in ("left", "right"):
        check("searchsorted", row, x, side=side)
    mixed = RANDOM.permutation(row)
    check("searchsorted", mixed, x, sorter=np.argsort(mixed, stable=True))
    with pytest.raises(ValueError, match="without axes"):
        xp.nonzero(xp.asarray(1))


@pytest.mark.parametrize("dtype", ALL)
def test_sets(dtype):
    x = array(dtype, 3, 4).round()
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        check(name, x)
    assert_same(xp.unique_values(xp.asarray(x)), np.unique(x))  # NumPy gives them in any order


# The array itself.
def test_attributes_and_operators():
    x, y = array("int32", 2, 3), array("int32", 3, low=1)
    a, b = xp.asarray(x), xp.asarray(y)
    assert (a.ndim, a.shape, a.dtype) == (2, (2, 3), xp.int32)
    assert_same(a.T, x.T)
    assert_same(a.mT, x.mT)
    for found, wanted in (
        (a + b, x + y), (a - b, x - y), (a * b, x * y), (a // b, x // y), (a % b, x % y),
        (a & b, x & y), (a | b, x | y), (a ^ b, x ^ y), (a << b, x << y), (a >> b, x >> y),
        (-a, -x), (+a, +x), (~a, ~x), (abs(a), abs(x)), (b**2, y**2), (a @ b, x @ y),
        (a < b, x < y), (a == b, x == y), (a[0, 1:], x[0, 1:]), (a[..., -1], x[..., -1]),
        (a[None], x[None]),
        (a[a > 0], x[x > 0]), (a[::-1, ::2], x[::-1, ::2]),
    ):  # fmt: skip
        assert_same(found, wanted)
    a[0, :] = 7
    a += 1
    x[0, :] = 7
    x += 1
    assert_same(a, x)
    assert (int(b[0]), float(b[0]), bool(b[0]), [1, 2, 3, 4][xp.asarray(2)]) == (
        int(y[0]), float(y[0]), bool(y[0]), 3
    )  # fmt: skip
    assert a.to_device("PYTHON").device == "PYTHON"
    assert isinstance(a.device, str) and np.from_dlpack(a).shape == (2, 3)


def test_namespace_info():
    info = xp.__array_namespace_info__()
    assert info.default_dtypes() == {
        "real floating": xp.float32, "complex floating": xp.complex64, "integral": xp.int64,
        "indexing": xp.int64,
    }  # fmt: skip
    assert info.default_device() in info.devices()
    assert set(info.dtypes()) == {*ALL, *COMPLEX}
    assert set(info.dtypes(kind="complex floating")) == set(COMPLEX)
    assert info.dtypes(kind=("bool", "real floating")).keys() == {"bool", *FLOATS}
    assert set(info.capabilities()) == {
        "boolean indexing", "data-dependent shapes", "max dimensions"
    }  # fmt: skip
    with pytest.raises(ValueError, match="unknown kind"):
        info.dtypes(kind="int")

"""Rows of ops that scan, sort, search, select and count along an axis."""

from importlib import import_module
from typing import Any

from tests.end_to_end.op_row import EVERY, INTS, PRECISE, SUM, Function, Row, Shape, pt, put

ROWS: tuple[tuple[Shape, ...], ...] = (((3, 17),), ((2, 40),), ((1, 1),), ((0, 3),), ((2, 0),))
FULL = ROWS[:3]
INT32_TOO = ("float32", "int32", "bool")


def along(name: str, ours: Function, theirs: Function | None = None, **changes: Any) -> Row:
    """An op along axis 1 of one input."""
    found: dict[str, Any] = {"has_gradient": True, **changes}
    kind = found.pop("kind", "numbers")
    return Row(name, ours, (kind,), found.pop("shapes", ROWS), theirs, **found)


def counted(name: str, ours: Function, theirs: Function | None = None, **changes: Any) -> Row:
    """An op without a gradient."""
    return along(name, ours, theirs, has_gradient=False, **changes)


SCANS = (
    along("cumsum", lambda x: x.cumsum(1), dtypes=EVERY, ulps=SUM, of_largest=True),
    along(
        "cumsum backwards",
        lambda x: x.flip((0,)).cumsum(-2).flip((0,)),
        ulps=SUM,
        of_largest=True,
        shapes=(((17, 3),), ((4, 2, 5),)),
    ),
    along("cumsum of a number", lambda x: x.cumsum(0), shapes=(((),), ((1,),))),
    along(
        "cumsum of a long axis",
        lambda x: x.cumsum(0),
        kind="unit",
        ulps=SUM,
        of_largest=True,
        shapes=(((16387,),),),
        has_gradient=False,
    ),
    along(
        "cumsum in int32",
        lambda x: x.cumsum(1, dtype="int32"),
        lambda x: x.cumsum(1, dtype=import_module("torch").int32),
        dtypes=("bool", "uint8", "int32"),
        has_gradient=False,
    ),
    along("cumprod", lambda x: x.cumprod(1), kind="unit", ulps=SUM, of_largest=True),
    counted("cumprod of integers", lambda x: x.cumprod(1), dtypes=INTS),
    along("cumprod of zeros", lambda x: x.round().cumprod(1), kind="unit", ulps=SUM),
    along("cummax", lambda x: x.cummax(1), kind="edges", dtypes=EVERY, has_zero_sign=False),
    along("cummin", lambda x: x.cummin(1), kind="edges", dtypes=EVERY, has_zero_sign=False),
    along("cummax of a number", lambda x: x.cummax(0), shapes=(((),), ((0,),)), dtypes=INT32_TOO),
    along(
        "logcumsumexp", lambda x: x.logcumsumexp(1), dtypes=PRECISE, ulps=2 * SUM, of_largest=True
    ),
    along("diff", lambda x: x.diff(dim=1), dtypes=INT32_TOO, shapes=FULL),
    along("diff twice", lambda x: x.diff(2, 0), ulps=2, of_largest=True, shapes=(((5, 3),),)),
    Row(
        "diff with ends",
        lambda x, y: x.diff(1, 1, y, y),
        ("numbers",) * 2,
        (((2, 5), (2, 1)),),
        has_gradient=True,
    ),
    along(
        "cumulative_trapezoid",
        lambda x: x.cumulative_trapezoid(dx=0.5),
        pt("cumulative_trapezoid", dx=0.5),
        ulps=SUM,
        of_largest=True,
        shapes=FULL,
    ),
    Row(
        "cumulative_trapezoid at points",
        lambda y, x: y.cumulative_trapezoid(x),
        ("numbers",) * 2,
        (((3, 7), (7,)), ((3, 7), (3, 7))),
        pt("cumulative_trapezoid"),
        ulps=SUM,
        of_largest=True,
        has_gradient=True,
    ),
)

SORTING = (
    along("sort", lambda x: x.sort(1), pt("sort", dim=1, stable=True), kind="edges", dtypes=EVERY),
    along(
        "sort descending",
        lambda x: x.sort(0, descending=True),
        pt("sort", dim=0, descending=True, stable=True),
        kind="edges",
        dtypes=("float32", "float64", "int64", "uint8"),
    ),
    along("sort of a number", lambda x: x.sort(0), shapes=(((),), ((1,),))),
    counted(
        "sort of a long axis",
        lambda x: x.sort(1),
        pt("sort", dim=1, stable=True),
        kind="edges",
        dtypes=("float32", "int8"),
        shapes=(((2, 300),),),
    ),
    counted("argsort", lambda x: x.argsort(1), pt("argsort", dim=1, stable=True), kind="edges"),
    along("topk", lambda x: x.topk(3, 1), shapes=(((3, 17),), ((2, 3),))),
    along("topk least", lambda x: x.topk(2, 0, largest=False), shapes=(((7, 2),), ((2, 3),))),
    counted("topk of a long axis", lambda x: x.topk(9), shapes=(((2, 1000),),)),
    counted("topk of none", lambda x: x.topk(0), shapes=(((2, 5),),)),
    along("median", lambda x: x.median(1), dtypes=PRECISE, shapes=FULL),
    along("median of all", lambda x: x.median(), shapes=FULL),
    counted("median of edges", lambda x: x.median(1)[0], kind="edges", shapes=(((3, 13),),)),
    counted("median of integers", lambda x: x.median(0)[0], dtypes=INTS, shapes=FULL),
    along("kthvalue", lambda x: x.kthvalue(2, 1), shapes=(((3, 17),), ((2, 2),))),
    along("kthvalue kept", lambda x: x.kthvalue(1, 0, keepdim=True), shapes=FULL),
    counted("mode", lambda x: x.mode(1)[0], dtypes=("int32", "bool"), shapes=FULL),
    *(
        along(
            f"quantile {kind}",
            lambda x, kind=kind: x.quantile(0.3, 1, interpolation=kind),
            dtypes=PRECISE,
            ulps=4,
            of_largest=True,
            shapes=FULL,
        )
        for kind in ("linear", "lower", "higher", "midpoint", "nearest")
    ),
    Row(
        "quantile of several",
        lambda x, q: x.quantile(q.abs().clamp(0, 1), 0, keepdim=True),
        ("numbers", "unit"),
        (((7, 3), (4,)),),
        ulps=8,
        of_largest=True,
    ),
    counted("quantile of edges", lambda x: x.quantile(0.5), kind="edges", shapes=(((13,),),)),
)


def _found(right: bool) -> tuple[Function, Function]:
    def ours(x: Any, y: Any) -> Any:
        return x.sort(-1)[0].searchsorted(y, right=right)

    def theirs(x: Any, y: Any) -> Any:
        return import_module("torch").searchsorted(x.sort(-1)[0].contiguous(), y, right=right)

    return ours, theirs


def _put_all(x: Any, mask: Any) -> Any:
    x = x.clone()
    x[mask] = x[mask].flip((0,))
    return x


def _put_in_column(x: Any) -> Any:
    x = x.clone()
    x[x[:, 0] > 0, 1] = 5
    return x


ANY_COUNT = (((3, 17),), ((2, 2, 5),), ((),), ((0, 3),))
PAIRS = (((9,), (2, 5)), ((3, 9), (3, 4)), ((0,), (3,)))

COUNTING = (
    *(
        Row(
            f"searchsorted {'right' if right else 'left'}",
            _found(right)[0],
            ("numbers",) * 2,
            PAIRS,
            _found(right)[1],
            ("float32", "int32"),
        )
        for right in (False, True)
    ),
    counted("nonzero", lambda x: x.nonzero(), kind="edges", shapes=ANY_COUNT, dtypes=INT32_TOO),
    counted("argwhere", lambda x: x.argwhere(), shapes=ANY_COUNT, dtypes=("int32",)),
    along("masked_select", lambda x: x.masked_select(x > 0), shapes=ANY_COUNT),
    Row(
        "masked_select of rows",
        lambda x, mask: x.masked_select(mask),
        ("numbers", "bools"),
        (((3, 5), (3, 1)), ((1, 5), (3, 1))),
        has_gradient=True,
    ),
    counted(
        "unique",
        lambda x: x.unique(return_inverse=True, return_counts=True),
        kind="edges",
        dtypes=INT32_TOO,
        shapes=(((3, 17),), ((),), ((0, 3),)),
        has_zero_sign=False,
    ),
    counted("unique values", lambda x: x.unique(), dtypes=INTS),
    Row(
        "bincount",
        lambda x: x.bincount(),
        ("below 7",),
        (((40,),), ((1,),), ((0,),)),
        dtypes=("int64",),
    ),
    Row(
        "bincount of many",
        lambda x: x.bincount(minlength=300),
        ("below 200",),
        (((40,),),),
        dtypes=("int64",),
    ),
    Row(
        "bincount with weights",
        lambda x, y: x.bincount(y),
        ("below 7", "numbers"),
        (((40,), (40,)),),
        ulps=SUM,
        of_largest=True,
        dtypes=PRECISE,
    ),
    counted("histc", lambda x: x.histc(4, -2, 2), kind="numbers", dtypes=PRECISE, shapes=FULL),
    counted("histc of many", lambda x: x.histc(100, -2, 2), shapes=FULL),
    counted("histc between its ends", lambda x: x.histc(3), shapes=(((2, 8),), ((1,),))),
    counted(
        "isin",
        lambda x: x.isin([1, 2, 5]),
        lambda x: pt("isin")(x, import_module("torch").tensor([1, 2, 5], dtype=x.dtype)),
        dtypes=INTS,
    ),
    Row(
        "isin many",
        lambda x, y: x.isin(y, invert=True),
        ("numbers",) * 2,
        (((3, 17), (100,)), ((3,), (0,))),
        pt("isin", invert=True),
        ("float32", "int32"),
    ),
    along(
        "aminmax",
        lambda x: x.aminmax(dim=1),
        pt("aminmax", dim=1),
        kind="edges",
        dtypes=("float32", "int32"),
        shapes=FULL,
        has_zero_sign=False,
    ),
    along("nansum", lambda x: x.nansum(1), kind="edges", ulps=SUM, has_zero_sign=False),
    along("nanmean", lambda x: x.nanmean(1), kind="edges", ulps=SUM, has_zero_sign=False),
    along("indexing by a mask", lambda x: x[x > 0], shapes=(((3, 17),), ((2, 2, 5),), ((0, 3),))),
    along("indexing by a mask of rows", lambda x: x[x[:, 0] > 0, 1:3], shapes=(((9, 5),),)),
    Row(
        "writing by a mask",
        lambda x, mask: put(mask)(x, 7),
        ("numbers", "bools"),
        (((3, 5), (3,)), ((3, 5), (3, 5))),
    ),
    Row("writing each by a mask", _put_all, ("numbers", "bools"), (((5, 3), (5,)), ((7,), (7,)))),
    counted("writing by a mask of rows", _put_in_column, shapes=(((9, 5),),)),
)

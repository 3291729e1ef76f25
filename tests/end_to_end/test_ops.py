"""Every op of a tensor on every device: values, dtypes and gradients.

PyTorch is the reference, in float64 where ours is narrower, so that an error is ours alone and can
be counted in ulp. Without PyTorch, rows that NumPy knows are compared with NumPy.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.end_to_end.op_row import Row, Shape, values_of
from tests.end_to_end.op_table import FAMILIES, LOOPS, NOT_IN_THE_TABLE
from tests.opencl import needs_opencl
from weft.ir.dtypes import by_name
from weft.support.settings import Context
from weft.tensor import Tensor

# OpenCL takes half a second to compile a kernel. Rows that are realized together share kernels,
# and only the casts take all dtypes there.
ROWS_TOGETHER = 40
OPENCL_DTYPES = ("float32", "int32")
OPENCL_GRADIENTS = 3  # one row in so many: gradients are the same graphs on every device
# One row in so many runs on the interpreter, which other tests compare with every kernel.
INTERPRETED_STEP = 5
# Each op of a formula rounds to the small dtype, and a formula has a few.
SMALL_FLOAT_ULPS = 8.0
# A gradient has the errors of the value, of the products on the way back and of a sum.
GRADIENT_ULPS = 64.0


class Case(NamedTuple):
    """A row with one dtype and one shape for each input; a view reads memory backwards."""

    row: Row
    dtype: str
    shapes: tuple[Shape, ...]
    is_view: bool = False

    def __str__(self) -> str:
        return f"{self.row.name} {self.dtype} {self.shapes}{' view' if self.is_view else ''}"


def cases(row: Row) -> Iterator[Case]:
    """The first shapes with every dtype, the others with one, and the first as views."""
    usual = "float32" if "float32" in row.dtypes else row.dtypes[0]
    for dtype in row.dtypes:
        yield Case(row, dtype, row.shapes[0])
    for shapes in row.shapes[1:]:
        yield Case(row, usual, shapes)
    if row.kinds:
        yield Case(row, usual, row.shapes[0], True)


def cases_on(device: str, row: Row) -> list[Case]:
    found = list(cases(row))
    if device == "CPU" or row in FAMILIES["casts"]:
        return found
    # Views are index arithmetic, which is the same graph on every device.
    plain = [case for case in found if case.shapes is row.shapes[0] and not case.is_view]
    return [case for case in plain if case.dtype in OPENCL_DTYPES] or plain[:1]


def arrays(case: Case, has_edges: bool = True) -> list[Any]:
    kinds = [kind if has_edges or kind != "edges" else "numbers" for kind in case.row.kinds]
    return [
        values_of(kind, case.dtype, shape, seed)
        for seed, (kind, shape) in enumerate(zip(kinds, case.shapes, strict=True))
    ]


Shared = dict[Any, Tensor]


def tensors(case: Case, shared: Shared, has_edges: bool = True) -> list[Tensor]:
    """The inputs of a case. Equal ones are one tensor, so that kernels that read it are one."""
    found = []
    for number, array in enumerate(arrays(case, has_edges)):
        key = (number, array.tobytes(), array.shape, array.dtype.name, case.dtype, case.is_view)
        if key not in shared:
            shared[key] = tensor(array, case)
        found.append(shared[key])
    return found


def tensor(array: Any, case: Case) -> Tensor:
    """The array as a tensor; of a view, every second element of memory from the end on."""
    if case.is_view and array.ndim:
        stored = np.repeat(np.flip(array, -1), 2, -1)
        stored[..., ::2] = stored[..., ::2] == 0  # what the view leaves out
        made = Tensor(np.ascontiguousarray(stored.T)).T[..., ::-2]
    else:
        made = Tensor(array)
    return made.cast("bfloat16") if _is_bfloat16(array, case) else made


def _is_bfloat16(array: Any, case: Case) -> bool:
    return case.dtype == "bfloat16" and array.dtype.kind == "f"


def peer(array: Any, case: Case) -> Any:
    import torch

    made = torch.from_numpy(np.array(array))
    return made.to(torch.bfloat16) if _is_bfloat16(array, case) else made


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


class Expected(NamedTuple):
    """What an output must be; floats in float64, before they are rounded to the dtype."""

    dtype: str
    array: Any


def expected(case: Case) -> list[Expected]:
    import torch

    function = case.row.theirs or case.row.ours
    inputs = [peer(array, case) for array in arrays(case)]
    native = listed(function(*inputs))
    wide = native
    if any(each.is_floating_point() for each in native):
        # A cast is defined by the dtype it comes from; everything else rounds once, at the end.
        is_cast = case.row in FAMILIES["casts"]
        wider = [x.double() if x.is_floating_point() and not is_cast else x for x in inputs]
        wide = listed(function(*wider))
    found = []
    for each, exact in zip(native, wide, strict=True):
        rounded = exact.to(each.dtype) if each.is_floating_point() else each
        values = rounded.to(torch.float64) if each.is_floating_point() else rounded
        found.append(Expected(str(each.dtype).removeprefix("torch."), values.numpy()))
    return found


def outputs(case: Case, shared: Shared) -> list[Tensor]:
    return listed(case.row.ours(*tensors(case, shared)))


def problem_of(
    ours: Tensor, wanted: Expected, ulps: float, of_largest: bool, has_zero_sign: bool = True
) -> str | None:
    """How an output differs, or None. Where all bits count, so does the sign of zero."""
    if ours.dtype.name != wanted.dtype or ours.shape != wanted.array.shape:
        return f"{ours.dtype.name} {ours.shape}, not {wanted.dtype} {wanted.array.shape}"
    got, array = ours.numpy(), wanted.array
    if not ours.dtype.is_float:
        return None if np.array_equal(got, array) else f"{got.tolist()}, not {array.tolist()}"
    got = got.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (got == array) | (np.isnan(got) & np.isnan(array))
        if not ulps and has_zero_sign:
            same &= (array != 0) | (np.signbit(got) == np.signbit(array))
        error = np.where(same, 0.0, np.abs(got - array))
        ulp = _ulp(array, wanted.dtype, of_largest)
        bad = ~same & ~((error <= ulps * ulp) & (ulps > 0))
    if not bad.any():
        return None
    worst = np.argmax(np.where(bad, np.nan_to_num(error / ulp, nan=np.inf), -1))
    index = np.unravel_index(worst, array.shape)
    ratio = (error / ulp)[index]
    return f"{got[index]!r} at {tuple(map(int, index))}, not {array[index]!r} ({ratio:.1f} ulp)"


def _ulp(array: Any, dtype: str, of_largest: bool) -> Any:
    """The distance to the next float, at most doubled."""
    layout = by_name(dtype).format
    assert layout is not None
    bits = layout.mantissa_bits
    size = np.abs(np.where(np.isfinite(array), array, 0.0))
    if of_largest:
        size = np.full_like(size, np.max(size, initial=0.0))
    least = {"float16": 2.0**-14, "float64": 2.0**-1022}.get(dtype, 2.0**-126)
    return np.maximum(size, least) * 2.0**-bits


def tolerance(case: Case) -> float:
    """The ulps of a case: half precision rounds after every op of a formula."""
    is_small = case.dtype in ("float16", "bfloat16")
    return case.row.ulps * SMALL_FLOAT_ULPS if is_small and case.row.ulps else case.row.ulps


def groups(is_chosen: Callable[[Row], bool], opencl_step: int = 1) -> list[Any]:
    """(device, rows): rows one by one on the CPU, several at once for OpenCL and in Python."""
    found = []
    for family, all_rows in FAMILIES.items():
        rows = [row for row in all_rows if is_chosen(row)]
        found += [pytest.param("CPU", [row], id=f"CPU {row.name}") for row in rows]
        rows = [] if family in LOOPS else rows[::opencl_step]
        for first in range(0, len(rows), ROWS_TOGETHER):
            part = rows[first : first + ROWS_TOGETHER]
            name = f"OPENCL {family} {first // ROWS_TOGETHER}"
            found.append(pytest.param("OPENCL", part, id=name, marks=needs_opencl))
        part = rows[:: INTERPRETED_STEP * opencl_step]
        if part:
            found.append(pytest.param("PYTHON", part, id=f"PYTHON {family}"))
    return found


def realize_together(made: dict[Case, list[Tensor]]) -> dict[Case, str]:
    """Compute everything at once; where that fails, one by one, with what each failure says."""
    everything = [each for some in made.values() for each in some]
    try:
        everything[0].realize(*everything[1:])
    except Exception:
        problems = {}
        for case, some in made.items():
            try:
                some[0].realize(*some[1:])
            except Exception as error:
                problems[case] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return problems or {next(iter(made)): "fails only together with other rows"}
    return {}


def assert_none(problems: dict[Case, str]) -> None:
    assert not problems, "\n" + "\n".join(f"{case}: {text}" for case, text in problems.items())


@pytest.mark.peers("torch")
@pytest.mark.parametrize(("device", "rows"), groups(lambda row: True))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_are_those_of_torch(device: str, rows: list[Row]):
    with Context(DEVICE=device):
        shared: Shared = {}
        made = {case: outputs(case, shared) for row in rows for case in cases_on(device, row)}
        problems = realize_together(made)
        for case, some in made.items():
            if case in problems:
                continue
            limits = (tolerance(case), case.row.of_largest, case.row.has_zero_sign)
            for ours, wanted in zip(some, expected(case), strict=True):
                found = problem_of(ours, wanted, *limits)
                if found is not None:
                    problems[case] = found
    assert_none(problems)


def gradient_cases(device: str, row: Row) -> list[Case]:
    variants = (Case(row, "float32", shapes) for shapes in row.shapes)
    found = [case for case in variants if all(0 not in shape for shape in case.shapes)]
    return found[: 2 if device == "CPU" else 1]


def weights(shape: Shape) -> Any:
    """What the outputs are weighted with before they are summed up."""
    return values_of("numbers", "float32", shape, 9)


def gradients(case: Case, shared: Shared) -> list[Tensor]:
    inputs = tensors(case, shared, False)
    total: Any = 0.0
    for each in listed(case.row.ours(*inputs)):
        total = (each * Tensor(weights(each.shape))).sum() + total
    return list(total.gradient(*[x for x in inputs if x.is_floating_point()]))


def expected_gradients(case: Case) -> list[Expected]:
    import torch

    function = case.row.theirs or case.row.ours
    inputs = [torch.from_numpy(np.array(array)) for array in arrays(case, False)]
    inputs = [x.double().requires_grad_() if x.is_floating_point() else x for x in inputs]
    total: Any = 0.0
    for each in listed(function(*inputs)):
        total = (each * torch.from_numpy(weights(tuple(each.shape))).double()).sum() + total
    targets = [x for x in inputs if x.is_floating_point()]
    found = torch.autograd.grad(total, targets, materialize_grads=True)
    return [Expected("float32", each.numpy()) for each in found]


@pytest.mark.peers("torch")
@pytest.mark.parametrize(
    ("device", "rows"), groups(lambda row: row.has_gradient, OPENCL_GRADIENTS)
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gradients_are_those_of_torch(device: str, rows: list[Row]):
    with Context(DEVICE=device):
        shared: Shared = {}
        made = {
            case: gradients(case, shared) for row in rows for case in gradient_cases(device, row)
        }
        problems = realize_together(made)
        for case, some in made.items():
            if case in problems:
                continue
            for number, (ours, wanted) in enumerate(
                zip(some, expected_gradients(case), strict=True)
            ):
                found = problem_of(ours, wanted, GRADIENT_ULPS, True)
                if found is not None:
                    problems[case] = f"gradient {number}: {found}"
    assert_none(problems)


NUMPY_ROWS = [row for rows in FAMILIES.values() for row in rows if row.numpy is not None]


@pytest.mark.parametrize("row", NUMPY_ROWS, ids=lambda row: row.name)
def test_values_are_those_of_numpy(row: Row):
    """The same without PyTorch, for the dtypes that NumPy computes like Weft."""
    problems = {}
    for case in cases(row):
        if case.dtype not in ("float32", "float64", "int32"):
            continue
        with Context(DEVICE="CPU"), np.errstate(all="ignore"):
            (ours,) = outputs(case, {})
            inputs = arrays(case)
            wide = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in inputs]
            assert row.numpy is not None
            array = np.asarray(row.numpy(*wide))
            if array.dtype.kind == "f":
                array = array.astype(ours.dtype.name).astype(np.float64)
            limits = (tolerance(case), row.of_largest, row.has_zero_sign)
            found = problem_of(ours, Expected(ours.dtype.name, array), *limits)
        if found is not None:
            problems[case] = found
    assert_none(problems)


def words(names: Iterable[str]) -> set[str]:
    return {word for name in names for word in re.findall(r"\w+", name)}


def test_every_method_has_a_row_or_a_reason():
    public = {name for name in dir(Tensor) if not name.startswith("_")}
    named = words(row.name for rows in FAMILIES.values() for row in rows)
    excused = words(NOT_IN_THE_TABLE.values())
    assert public - named - excused == set()
    assert excused & named == set(), "these have rows now"
    assert excused <= public, "these do not exist"


@pytest.mark.parametrize(
    ("array", "ulps", "found"),
    [
        ([1.0, 2.0], 0.0, None),
        ([1.0, 2.0000002], 0.0, "2.0 at (1,), not 2.0000002 (1.0 ulp)"),
        ([1.0, 2.0000002], 1.0, None),
        ([1.0, math.nan], 9.0, "2.0 at (1,), not nan"),
        ([1.0, math.inf], 9.0, "2.0 at (1,), not inf"),
        ([1.0], 0.0, "float32 (2,), not float32 (1,)"),
    ],
)
def test_the_comparison_can_fail(array: list[float], ulps: float, found: str | None):
    with Context(DEVICE="CPU"):
        wanted = Expected("float32", np.array(array, np.float32).astype(np.float64))
        problem = problem_of(Tensor([1.0, 2.0]), wanted, ulps, False)
    assert (problem is None) == (found is None)
    if found is not None and problem is not None:
        assert re.sub(r"np.float64\(([^)]*)\)", r"\1", problem).startswith(found[:18])


def test_the_comparison_sees_the_sign_of_zero_and_the_dtype():
    with Context(DEVICE="CPU"):
        zero = Expected("float32", np.array([-0.0]))
        assert problem_of(Tensor([0.0]), zero, 0.0, False) is not None
        assert problem_of(Tensor([0.0]), zero, 1.0, False) is None
        assert problem_of(Tensor([0]), Expected("int64", np.array([0])), 0.0, False) is not None

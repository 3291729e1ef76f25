"""Every op of the table under every transform: what it gives there is what it gives alone.

A derivative is compared with the reverse pass that `test_ops.py` compares with PyTorch: a tangent
with the gradient of the same direction, a second derivative with its transpose. A fixed sample
runs always; `WEFT_ALL_TRANSFORMS=1` runs all rows. A transform may refuse an op, and says so; it
never gives another result.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.end_to_end.op_row import Row, values_of
from tests.end_to_end.op_table import FAMILIES
from weft import NotSupported, checkpoint, function, grad, jit, jvp, vmap
from weft.ir.dtypes import FLOAT
from weft.tensor import Tensor

ROWS = [row for family in FAMILIES.values() for row in family if row.kinds]
STEP = 1 if os.environ.get("WEFT_ALL_TRANSFORMS") else 37
# What a write, a scan, an index and a gather have of their own is always in the sample.
ALWAYS = ("index_put", "index_copy", "index_fill", "put", "logcumsumexp", "scatter", "setitem")
SAMPLE = [row for n, row in enumerate(ROWS) if n % STEP == 0 or row.name.split()[0] in ALWAYS]
Function = Callable[..., Any]


def inputs_of(row: Row) -> list[Tensor]:
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
    kinds = [kind if kind != "edges" else "numbers" for kind in row.kinds]
    return [
        Tensor(values_of(kind, dtype, shape, seed)).realize()
        for seed, (kind, shape) in enumerate(zip(kinds, row.shapes[0], strict=True))
    ]


def results_of(results: Any) -> list[Tensor]:
    found = results if isinstance(results, (tuple, list)) else [results]
    return [each for each in found if isinstance(each, Tensor)]


def ramp(tensor: Tensor) -> Tensor:
    """A direction: numbers that differ from element to element."""
    count = tensor.numel()
    numbers = np.linspace(0.5, 1.5, max(count, 1), dtype=np.float32)[:count]
    return Tensor(numbers).reshape(tensor.shape).cast(tensor.dtype)


def is_float(tensor: Tensor) -> bool:
    return tensor.dtype.kind == FLOAT


def same(found: list[Tensor], wanted: list[Tensor], tolerance: float = 1e-5) -> None:
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        a, b = x.float().numpy() if is_float(x) else x.numpy(), y.numpy()
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=1.0) if b.dtype.kind == "f" else 1.0
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


def by_jit(row: Row) -> None:
    inputs = inputs_of(row)
    jitted = jit(lambda *each: results_of(row.ours(*each)))
    for _ in range(2):
        same(jitted(*inputs), results_of(row.ours(*inputs)))


def by_function(row: Row) -> None:
    inputs = inputs_of(row)
    called = function(lambda *each: results_of(row.ours(*each)))
    same(called(*inputs), results_of(row.ours(*inputs)))


def by_vmap(row: Row) -> None:
    inputs = inputs_of(row)
    batches = [Tensor.stack(each, each) for each in inputs]
    found = vmap(lambda *each: results_of(row.ours(*each)))(*batches)
    wanted = results_of(row.ours(*inputs))
    for number in range(2):
        same([each[number] for each in found], wanted)


def scalar(row: Row) -> Function:
    """The op as a function to one number, by a fixed direction."""

    def total(*each: Tensor) -> Tensor:
        floats = [y for y in results_of(row.ours(*each)) if is_float(y)]
        return sum(((y * ramp(y)).sum() for y in floats), Tensor(0.0))

    return total


def chosen(row: Row, inputs: list[Tensor]) -> tuple[int, ...]:
    return tuple([number for number, each in enumerate(inputs) if is_float(each)])


def by_checkpoint(row: Row) -> None:
    inputs = inputs_of(row)
    argnums = chosen(row, inputs)
    wanted = grad(scalar(row), argnums=argnums)(*inputs)
    same(list(grad(checkpoint(scalar(row)), argnums=argnums)(*inputs)), list(wanted), 1e-4)


def by_jvp(row: Row) -> None:
    inputs = inputs_of(row)
    argnums = chosen(row, inputs)

    def of_floats(*floats: Tensor) -> Tensor:
        given = dict(zip(argnums, floats, strict=True))
        return scalar(row)(*[given.get(n, each) for n, each in enumerate(inputs)])

    floats = [inputs[n] for n in argnums]
    directions = [ramp(each) for each in floats]
    slopes = grad(of_floats, argnums=tuple(range(len(floats))))(*floats)
    wanted = sum(float((g * u).sum().item()) for g, u in zip(slopes, directions, strict=True))
    scale = sum(float((g * u).abs().sum().item()) for g, u in zip(slopes, directions, strict=True))
    _, change = jvp(of_floats, floats, directions)
    np.testing.assert_allclose(change.item(), wanted, rtol=1e-3, atol=1e-4 * max(scale, 1.0))


def by_double_grad(row: Row) -> None:
    """The change of the gradient along a direction, by reverse mode and by `jvp`."""
    inputs = inputs_of(row)
    argnum = chosen(row, inputs)[0]

    def of_one(x: Tensor) -> Tensor:
        total: Tensor = scalar(row)(*[x if n == argnum else e for n, e in enumerate(inputs)])
        return total

    x = inputs[argnum]
    found = grad(lambda y: (grad(of_one)(y) * ramp(y)).sum())(x)
    _, wanted = jvp(grad(of_one), (x,), (ramp(x),))
    same([found], [wanted], 1e-3)


PLAIN = {"jit": by_jit, "function": by_function, "vmap": by_vmap}
DERIVED = {"checkpoint": by_checkpoint, "jvp": by_jvp, "double grad": by_double_grad}


@pytest.mark.parametrize("transform", [*PLAIN, *DERIVED])
@pytest.mark.parametrize("row", SAMPLE, ids=lambda row: row.name)
def test_an_op_under_a_transform(row, transform):
    if transform in DERIVED and not row.has_gradient:
        pytest.skip("the op has no gradient")
    try:
        (PLAIN | DERIVED)[transform](row)
    except NotSupported as error:
        assert error.rule, f"{row.name} is refused without a reason"

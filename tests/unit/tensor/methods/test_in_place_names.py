"""Every in-place name of the table writes what PyTorch's writes; dtypes and shapes stay."""

from typing import Any

import numpy as np
import pytest

from weft import Tensor
from weft.tensor.methods.in_place import NAMES

pytestmark = pytest.mark.peers("torch")
M = [[0.5, 0.25], [0.75, 0.125]]
# Arguments, where a method needs more than a matrix.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "addmm": (M, M), "addmv": (M, [2.0, 1.0]), "addbmm": ([M, M], [M, M]),
    "addr": ([1.0, 2.0], [3.0, 4.0]), "baddbmm": ([M], [M]), "cumsum": (0,), "cumprod": (1,),
    "polygamma": (1,), "mvlgamma": (1,), "renorm": (2.0, 0, 0.5),
}  # fmt: skip
TWO = """
    add arctan2 atan2 copysign div divide eq floor_divide fmod ge greater greater_equal gt hypot
    igamma igammac le less less_equal lt mul multiply ne not_equal nextafter remainder sub subtract
    true_divide xlogy
""".split()  # noqa: SIM905
ONE = """
    abs absolute acos arccos arcsin arcsinh arctan arctanh asin asinh atan atanh ceil cos cosh
    deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac i0 lgamma log log10 log1p log2
    logit neg negative rad2deg reciprocal relu round rsqrt sgn sigmoid sign sin sinc sinh sqrt
    square tan tanh tril triu trunc
""".split()  # noqa: SIM905


def test_the_table_has_them():
    assert {*ARGUMENTS, *TWO, *ONE} <= set(NAMES.split())


@pytest.mark.parametrize("name", sorted({*ARGUMENTS, *TWO, *ONE}))
def test_in_place_as_in_torch(name: str):
    torch = pytest.importorskip("torch")
    start: Any = [[0.5, 0.25], [0.75, 0.5]]
    if name == "addmv":
        start = start[0]
    if name == "baddbmm":
        start = [start]
    if name in ("mvlgamma",):
        start = [[2.5, 1.25], [3.75, 4.5]]
    args = (M,) if name in TWO else ARGUMENTS.get(name, ())
    results = []
    for make in (torch.tensor, lambda x: Tensor(x).contiguous().realize()):
        x = make(start)
        given = [make(each) if isinstance(each, list) else each for each in args]
        assert getattr(x, f"{name}_")(*given) is x
        results.append(x.numpy())
    assert results[0].dtype == results[1].dtype
    np.testing.assert_allclose(results[1], results[0], rtol=2e-6, atol=1e-6)

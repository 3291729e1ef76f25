"""Comparisons for tests, with the names of torch.testing."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.dtypes import dtypes
from weft.tensor.tensor import Tensor

# PyTorch's relative and absolute tolerances, by the dtype that has less precision.
_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    msg: Any = None,
    **_: Any,
) -> None:
    """Raise an AssertionError unless two values are equal up to what their dtype can hold.

    >>> assert_close(Tensor([1.0]), Tensor([1.0 + 1e-7]))
    """
    if isinstance(actual, (list, tuple)) and isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected), msg or f"{len(actual)} and {len(expected)} values"
        for a, b in zip(actual, expected, strict=True):
            assert_close(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, msg=msg)
        return
    pair = [each if isinstance(each, Tensor) else Tensor(each) for each in (actual, expected)]
    given = [each for each in (actual, expected) if isinstance(each, Tensor)]
    first, second = pair
    assert first.shape == second.shape, msg or f"the shapes are {first.shape} and {second.shape}"
    if check_dtype and len(given) == 2:
        assert first.dtype is second.dtype, (
            msg or f"the dtypes are {first.dtype.name} and {second.dtype.name}"
        )
    found = [_TOLERANCES.get(each.dtype, (0.0, 0.0)) for each in pair]
    relative = max(each[0] for each in found) if rtol is None else rtol
    absolute = max(each[1] for each in found) if atol is None else atol
    a, b = (each.detach().numpy() for each in pair)
    np.testing.assert_allclose(
        a, b, rtol=relative, atol=absolute, equal_nan=equal_nan, err_msg=str(msg or "")
    )

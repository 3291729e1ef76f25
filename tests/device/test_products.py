"""Products of matrices on the matrix units of this GPU are NumPy's."""

import numpy as np
import pytest

from weft import Tensor, dtypes, jit
from weft.ir.dtypes import DType

SIZES = [(64, 64, 64), (256, 512, 320), (1000, 1032, 1096), (333, 1001, 136), (512, 513, 1001)]
LIMITS = {dtypes.bfloat16: 2**-8, dtypes.float16: 2**-11}


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def require_close(out: Tensor, wanted: np.ndarray, dtype: DType, roundings: int = 1) -> None:
    found = out.float().numpy()
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert error <= roundings * LIMITS[dtype], error


@pytest.mark.parametrize("layout", ["mk,kn", "mk,nk", "km,kn", "km,nk"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", LIMITS, ids=str)
def test_layouts(sizes: tuple[int, int, int], layout: str, dtype: DType):
    m, n, k = sizes
    left, right = layout.split(",")
    x = Tensor(numbers(1, *((m, k) if left == "mk" else (k, m)))).cast(dtype).realize()
    y = Tensor(numbers(2, *((k, n) if right == "kn" else (n, k)))).cast(dtype).realize()
    x, y = (x if left == "mk" else x.T), (y if right == "kn" else y.T)
    require_close(x @ y, x.float().numpy() @ y.float().numpy(), dtype)


def test_batches():
    x = Tensor(numbers(1, 3, 5, 200, 72)).cast(dtypes.bfloat16).realize()
    y = Tensor(numbers(2, 3, 5, 72, 136)).cast(dtypes.bfloat16).realize()
    require_close(x @ y, x.float().numpy() @ y.float().numpy(), dtypes.bfloat16)


def test_what_follows_is_fused():
    x = Tensor(numbers(1, 256, 512)).cast(dtypes.bfloat16).realize()
    y = Tensor(numbers(2, 384, 512)).cast(dtypes.bfloat16).realize()
    bias = Tensor(numbers(3, 384)).cast(dtypes.bfloat16).realize()
    rest = Tensor(numbers(4, 256, 384)).cast(dtypes.bfloat16).realize()
    wanted = x.float().numpy() @ y.float().numpy().T + bias.float().numpy()
    wanted = np.maximum(wanted, 0) + rest.float().numpy()
    require_close((x @ y.T + bias).relu() + rest, wanted, dtypes.bfloat16, roundings=3)


def test_bytes_are_exact():
    rng = np.random.default_rng(5)
    x, y = (rng.integers(-128, 128, (256, 1040)).astype(np.int8) for _ in range(2))
    out = Tensor(x).int() @ Tensor(y).int().T
    assert (out.numpy() == x.astype(np.int64) @ y.astype(np.int64).T).all()


def test_small_floats():
    x, y = (Tensor(numbers(s, 256, 512)).cast(dtypes.fp8e4m3).realize() for s in (1, 2))
    out = (x.float() @ y.float().T).bfloat16()
    require_close(out, x.float().numpy() @ y.float().numpy().T, dtypes.bfloat16)


def test_a_jitted_product_follows_its_arguments():
    step = jit(lambda x, y: x @ y)
    y = Tensor(numbers(0, 256, 256)).cast(dtypes.bfloat16).realize()
    inputs = [Tensor(numbers(s, 256, 256)).cast(dtypes.bfloat16).realize() for s in range(1, 5)]
    for x in (*inputs, *inputs):
        require_close(step(x, y), x.float().numpy() @ y.float().numpy(), dtypes.bfloat16)


def test_runs_are_equal():
    x, y = (Tensor(numbers(s, 1000, 1096)).cast(dtypes.bfloat16).realize() for s in (1, 2))
    first = (x @ y.T).float().numpy()
    for _ in range(20):
        assert ((x @ y.T).float().numpy() == first).all()

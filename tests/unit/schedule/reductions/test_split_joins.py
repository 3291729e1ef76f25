"""Long reductions that need each other: one kernel reads the data, one joins what it gave."""

import math
import warnings

import numpy as np
import pytest

from tests.unit.machines import machine
from weft import GlobalCounters, Tensor
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.schedule.schedule import make_schedule
from weft.support.settings import Context

SIZE = 1 << 17
WHOLE = {
    "logsumexp": lambda x: x.logsumexp(),
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(),
    "max and argmax": lambda x: (x.max(), x.argmax()),
    "variance": lambda x: x.var(),
    "mean and standard deviation": lambda x: (x.mean(), x.std()),
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(0),
    "layernorm": lambda x: x.layernorm(0),
    "a sample by Gumbel noise": lambda x: (x + x.sin()).argmax(),
    "scaled softmax": lambda x: (x * 0.5).softmax(0),
    "masked softmax": lambda x: (x < 2).where(x, -math.inf).softmax(0),
    "weighted mean": lambda x: (x.softmax(0) * x.sin()).sum(),
}


def schedule_of(make, size: int) -> list:
    x = Tensor(param(0, dtypes.float32, (size,)))
    made = make(x)
    values = [value.uop for value in (made if isinstance(made, tuple) else (made,))]
    stores = [
        store(param(1 + slot, value.dtype, value.shape), value)
        for slot, value in enumerate(values)
    ]
    return list(make_schedule(sink(*stores), machine(units=2)).kernels.src)


@pytest.mark.parametrize("name", WHOLE)
def test_two_kernels_do_what_took_three(name: str) -> None:
    assert len(schedule_of(WHOLE[name], 1 << 20)) == 2
    with Context(JOIN="never"):
        assert len(schedule_of(WHOLE[name], 1 << 20)) > 2


def rows(seed: int) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((6, SIZE)).astype(np.float32) * 3
    x[1, 7], x[2, 9], x[3] = math.inf, math.nan, -math.inf
    x[4, : SIZE // 2] = -math.inf
    x[5] = 2.0
    return x


def results(make, x: np.ndarray, join: str) -> list[np.ndarray]:
    with Context(JOIN=join, THREADS=2):
        made = make(Tensor(x))
        return [value.numpy() for value in (made if isinstance(made, tuple) else (made,))]


@pytest.mark.parametrize("name", WHOLE)
def test_parts_give_what_the_whole_gives(name: str) -> None:
    for row in rows(0):
        want = results(WHOLE[name], row, "never")
        got = results(WHOLE[name], row, "")
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)


def test_the_variance_of_data_far_from_zero() -> None:
    x = (np.random.default_rng(0).standard_normal(1 << 20) + 1e4).astype(np.float32)
    for shape in ((1 << 20,), (4, 1 << 18)):
        got = Tensor(x).reshape(shape).var(-1).numpy()
        want = x.astype(np.float64).reshape(shape).var(-1, ddof=1)
        np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("name", ["logsumexp", "argmax", "variance"])
def test_the_data_is_read_once(name: str) -> None:
    x = Tensor(np.ones(1 << 20, dtype=np.float32)).realize()
    with Context(THREADS=2):
        GlobalCounters.reset()
        WHOLE[name](x).realize()
    assert GlobalCounters.kernel_count == 2
    assert GlobalCounters.global_mem < 4 * (1 << 20) * 1.01


def test_what_no_rule_joins_is_read_again() -> None:
    make = lambda x: (x * x.max()).sum()  # noqa: E731
    assert len(schedule_of(make, 1 << 20)) == 3
    x = rows(1)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (got,) = results(make, x, "")
    assert got == pytest.approx((x.astype(np.float64) * x.max()).sum(), rel=1e-4)


def test_gradients_of_joined_parts() -> None:
    x = np.random.default_rng(2).standard_normal(SIZE).astype(np.float32)
    for name in ("logsumexp", "variance"):
        grads = []
        for join in ("", "never"):
            with Context(JOIN=join, THREADS=2):
                leaf = Tensor(x)
                grads.append(WHOLE[name](leaf).gradient(leaf)[0].numpy())
        np.testing.assert_allclose(*grads, rtol=1e-5, atol=1e-9)

"""Keys and values in fewer bits: less memory, and logits that stay near."""

import numpy as np
import pytest

from weft import dtypes
from weft.llm import Batch


@pytest.fixture(scope="module")
def exact(tiny_model):
    return logits(tiny_model, dtypes.float32)


def logits(model, dtype) -> np.ndarray:
    cache = model.new_cache(64, dtype)
    assert cache.keys[0].dtype == dtype
    sequence = cache.allocate()
    model.forward(Batch.of(cache, [(sequence, list(range(40)))])).realize()
    return model.forward(Batch.of(cache, [(sequence, [7])])).numpy()[0]


@pytest.mark.parametrize(
    ("dtype", "loss"),
    [(dtypes.float16, 0.001), (dtypes.bfloat16, 0.01), (dtypes.fp8e4m3, 0.15)],
)
def test_logits_stay_near(tiny_model, exact, dtype, loss):
    found = logits(tiny_model, dtype)
    assert found.dtype == np.float32
    assert 0 < np.abs(found - exact).max() <= loss * np.abs(exact).max()

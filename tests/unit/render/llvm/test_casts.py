"""Floats to integers in vectors: limits, infinities and NaN, beside the interpreter."""

import math

import numpy as np
import pytest

from weft import Tensor
from weft.codegen.generate import generate
from weft.codegen.opts.table import Split, Vectorize
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.render.llvm.renderer import render
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target

EDGES = (0.0, -0.0, 1.5, -1.5, 127.9, 255.5, 256.7, 65536.0, 3e9, 1e30, np.inf)
LIMITS = (2147483520.0, 2147483648.0, 2147483904.0, 9.2e18, 9.3e18, 1.8e19)


@pytest.mark.parametrize("source", ("float32", "float64"))
@pytest.mark.parametrize(
    "target", ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
)
def test_vectors_saturate_as_the_table_says(source: str, target: str):
    ends = np.array([*EDGES, *LIMITS], source)
    values = np.concatenate([ends, -ends, [np.nan]] * 2)  # vectors, and a rest
    wanted = Tensor(values, device="PYTHON").cast(target).numpy()
    np.testing.assert_array_equal(Tensor(values).cast(target).numpy(), wanted)


@pytest.mark.parametrize("target", ("int8", "uint8", "int32", "int64"))
@pytest.mark.parametrize("bounds", ((0, 255), (-128, 127), (-1e30, 5), (-3, 3e9), (7, 7)))
def test_clamped_floats_become_the_same_integers(bounds: tuple[float, float], target: str):
    """Bounds that fit, and bounds that do not; NaN goes through a clamp."""
    ends = np.array([*EDGES, *LIMITS], np.float32)
    values = np.concatenate([ends, -ends, [np.nan]] * 2).astype(np.float32)

    def clamped(device: str) -> np.ndarray:
        x = Tensor(values, device=device)
        return x.clamp(*bounds).cast(target).numpy()

    np.testing.assert_array_equal(clamped("CPU"), clamped("PYTHON"))


def test_a_clamped_float_needs_no_compares():
    """Only NaN is asked for; without a clamp both ends are, too."""
    compares = {}
    for name, high in (("clamped", 255.0), ("above 0", math.inf)):
        x = Tensor(param(1, dtypes.float32, (64,)))
        value = x.clamp(0.0, high if high < math.inf else None).cast("uint8")
        graph = sink(store(param(0, dtypes.uint8, (64,)), value.uop))
        target = cpu_target("x86_64", ("avx2",))
        (call,) = make_schedule(graph, target).kernels.src
        text = render(generate(call.arg, target, (Split(0, 8), Vectorize(1))), target)
        compares[name] = text.count("fcmp")
    assert compares == {"clamped": 3, "above 0": 4}

"""Factors with rows that copies of boxes cannot read are materialized with longer rows."""

import math

import numpy as np
import pytest

from tests.unit.codegen.products import decoded, rounded
from weft import Tensor, dtypes
from weft.ir.build import param, sink, store
from weft.ir.dtypes import DType
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.reference.memory import ElementMemory as Memory
from weft.reference.schedule import run_schedule
from weft.schedule.layout import align_factors
from weft.schedule.schedule import Schedule, make_schedule
from weft.target.cpu import cpu_target
from weft.target.cuda import cuda_target
from weft.target.target import Target

HOPPER = cuda_target("sm_90a")
BF16 = dtypes.bfloat16


def factor(slot: int, *shape: int, dtype: DType = BF16) -> Tensor:
    return Tensor(param(slot, dtype, shape))


def schedule(out: Tensor, target: Target = HOPPER, dtype: DType = BF16) -> Schedule:
    return make_schedule(sink(store(param(9, dtype, out.shape), out.uop)), target)


def kernels(out: Tensor, target: Target = HOPPER, dtype: DType = BF16) -> list[UOp]:
    return [call.arg for call in schedule(out, target, dtype).kernels.src]


def test_odd_rows_are_copied_to_whole_lines():
    x, y = factor(0, 512, 1001), factor(1, 512, 1001)
    *copies, product = kernels(x @ y.T)
    assert len(copies) == 2 and not any(kernel.ops >> Op.REDUCE & 1 for kernel in copies)
    assert dump(product).count("bfloat16[512, 1024]") == 2


def test_a_computed_factor_is_materialized_once():
    x, y = factor(0, 512, 1001), factor(1, 1001, 512)
    first, _ = kernels(x.relu() @ y)  # y has 512 columns, which are aligned
    assert "where" in dump(first) and "bfloat16[512, 1024]" in dump(first)


def test_rows_of_whole_lines_are_worth_a_copy_of_large_factors():
    for rows, count in ((4096, 3), (1024, 1)):
        assert len(kernels(factor(0, rows, 4088) @ factor(1, rows, 4088).T)) == count


def test_factors_of_attention_are_read_as_they_are():
    """Weights of 1,001 keys are in no memory, and heads of 96 need no whole lines."""
    q, k, v = (factor(slot, 16, 1001, 96) for slot in range(3))
    assert len(kernels(q.scaled_dot_product_attention(k, v))) == 1


def test_bytes_across_the_sum_are_turned():
    x, y = (factor(slot, 512, 768, dtype=dtypes.int8) for slot in range(2))
    transposed, product = kernels(x.int().T @ y.int(), dtype=dtypes.int32)[-2:]
    assert not transposed.ops >> Op.REDUCE & 1
    assert "int8[1, 768, 512]" in dump(product) and "int8[768, 1, 512]" in dump(product)
    (product,) = kernels(x.int() @ y.int().T, dtype=dtypes.int32)


ALONE = {
    "aligned": lambda: kernels(factor(0, 512, 1000) @ factor(1, 512, 1000).T),
    "small": lambda: kernels(factor(0, 64, 65) @ factor(1, 64, 65).T),
    "few rows": lambda: kernels(factor(0, 8, 9001) @ factor(1, 8192, 9001).T),
    "another dtype": lambda: kernels(
        factor(0, 512, 1001, dtype=dtypes.float32) @ factor(1, 512, 1001, dtype=dtypes.float32).T,
        dtype=dtypes.float32,
    ),
    "another machine": lambda: kernels(
        factor(0, 512, 1001) @ factor(1, 512, 1001).T, cuda_target("sm_80")
    ),
    "a CPU": lambda: kernels(
        factor(0, 512, 1001) @ factor(1, 512, 1001).T, cpu_target("x86_64", ("avx2",))
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_others_are_left_alone(name: str):
    longer = ("1024]", "9024]", "64]")
    texts = [dump(kernel) for kernel in ALONE[name]()]
    assert not any(end in text for end in longer for text in texts if name != "small")
    assert len(texts) == 1


def test_the_result_is_the_same(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(align_factors, "LEAST_WORK", 1)
    monkeypatch.setattr(align_factors, "LEAST_USES", 2)
    made = schedule(factor(0, 5, 9) @ factor(1, 9, 7))
    assert len(made.kernels.src) == 3
    rng = np.random.default_rng(0)
    x, y = rng.integers(-8, 9, (5, 9)) / 8, rng.integers(-8, 9, (9, 7)) / 8
    params = {part.arg[0]: part for call in made.kernels.src for part in call.src}
    memory = [Memory(BF16, math.prod(shape_of(params.get(slot, params[0])))) for slot in range(12)]
    for slot, values in enumerate((x, y)):
        memory[slot] = Memory(BF16, values.size, [float(value) for value in values.ravel()])
    run_schedule(made.kernels, {}, arguments=memory)
    np.testing.assert_array_equal(decoded(memory[9], BF16), rounded(x @ y, BF16))

"""Products that are summed in parts: which, in how many, and that they give the same."""

import numpy as np
import pytest

from weft import Tensor
from weft.codegen.generate import generate
from weft.ir.build import buffer, param, sink, store
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import substitute, topological
from weft.reference.tensor import evaluate
from weft.schedule.reductions.split_products import in_parts, parts_of_product
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target
from weft.target.cuda import cuda_target

CUDA = cuda_target("sm_90a")
BF16 = dtypes.bfloat16


def product(rows: int, columns: int, depth: int, dtype: DType = BF16, *batch: int) -> Tensor:
    x = Tensor(param(1, dtype, (*batch, rows, depth)))
    return x @ Tensor(param(2, dtype, (*batch, columns, depth))).transpose(-1, -2)


def reduction(of: Tensor) -> UOp:
    return next(node for node in topological(of.uop) if node.op == Op.REDUCE)


def parts(of: Tensor, target=CUDA) -> int:
    found = parts_of_product(reduction(of), target)
    return 1 if found is None else found[1]


SIZES = {
    (256, 256, 4096): (6, 16),
    (64, 64, 65536): (16, 128),
    (256, 1024, 16384): (2, 16),
    (4096, 4096, 4096): (1, 1),
    (512, 4096, 4096): (1, 1),
    (8192, 768, 3072): (1, 1),
    (768, 3072, 8192): (1, 1),
    (16, 4096, 4096): (1, 1),
    (256, 256, 4100): (1, 1),
}


@pytest.mark.parametrize("sizes", SIZES)
def test_few_tiles_with_long_sums_have_parts(sizes: tuple[int, int, int]):
    least, most = SIZES[sizes]
    assert least <= parts(product(*sizes)) <= most


def test_cores_and_what_fills_the_machine_have_none():
    cores = cpu_target("x86_64", ("avx2",))
    assert parts(product(256, 256, 4096), cores) == 1
    large = product(4096, 4096, 4096, dtypes.float32)
    assert parts(large) == 1
    many = product(256, 256, 4096, BF16, 64)
    assert parts(many) == 1


def test_plain_cores_have_parts_too():
    few = product(64, 64, 65536, dtypes.float32)
    assert parts(few) >= 16
    assert parts(product(64, 64, 65536), cuda_target("sm_80")) >= 16


def test_sums_that_a_number_scales_are_no_products():
    x = Tensor(param(1, dtypes.float32, (1024, 1024)))
    assert parts_of_product(reduction((x * 2.0).sum(1)), CUDA) is None
    assert parts_of_product(reduction((x.T * 2.0).sum(1)), CUDA) is None


def test_parts_run_on_matrix_units():
    result = (product(256, 256, 4096).float() + 1.0).relu()
    made = make_schedule(sink(store(param(0, result.dtype, result.shape), result.uop)), CUDA)
    programs = [generate(call.arg, CUDA) for call in made.kernels.src]
    assert [len(each.maps) for each in programs] == [2, 0]
    assert np.prod([int(size) for size in programs[0].groups]) >= 96  # type: ignore[arg-type]


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("count", [2, 4])
def test_sums_of_parts(batch: tuple[int, ...], count: int):
    whole = product(3, 5, 8, dtypes.int32, *batch).uop
    node = next(node for node in topological(whole) if node.op == Op.REDUCE)
    (axis,) = node.arg[1]
    cut = substitute(whole, {node: in_parts(node, axis, count)})
    draw = np.random.default_rng(0)
    arrays = {
        1: draw.integers(-9, 9, (*batch, 3, 8)).astype(np.int32),
        2: draw.integers(-9, 9, (*batch, 5, 8)).astype(np.int32),
    }

    def value(root: UOp) -> np.ndarray:
        slots = {
            each: buffer(each.arg[0], each.dtype, shape_of(each), "CPU")
            for each in topological(root)
            if each.op == Op.PARAM
        }
        target = buffer(0, dtypes.int32, shape_of(root), "CPU")
        graph = substitute(sink(store(target, root)), slots)
        return evaluate(graph, {0: np.zeros(shape_of(root), np.int32), **arrays})[0]

    assert value(cut).tolist() == value(whole).tolist()

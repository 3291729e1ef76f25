"""Products of weights that are computed from products, without a softmax."""

from collections.abc import Callable

import pytest

from tests.unit.codegen.kernel_parts import Case
from tests.unit.codegen.oracle import check
from weft import Tensor
from weft.codegen.analysis.loops import nodes_of, ranges_of
from weft.codegen.choose.choose_opts import choose_opts
from weft.codegen.choose.heuristic import choose_opts as chosen
from weft.codegen.context import CodegenContext
from weft.codegen.generate import before_opts
from weft.codegen.opts.table import Carry
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.reduction.contraction import factors_of
from weft.ir.uop import UOp
from weft.schedule.schedule import make_schedule
from weft.support.settings import Context
from weft.target.cpu import cpu_target

WIDE = cpu_target("x86_64", ("avx512f",))
NARROW = cpu_target("x86_64", ("avx2",))
Function = Callable[[Tensor, Tensor, Tensor], Tensor]


def causal(s: Tensor) -> Tensor:
    rows, columns = (int(size) for size in s.shape)
    i, j = Tensor.arange(rows).reshape(rows, 1), Tensor.arange(columns).reshape(1, columns)
    return (j <= i).where(s, 0.0)


# Scaled by powers of 2, so that sums of large terms do not cancel to what is rounded.
FORMS: dict[str, Function] = {
    "scores": lambda q, k, v: (q @ k.transpose(0, 1) / 256.0) @ v,
    "positive": lambda q, k, v: (q @ k.transpose(0, 1) / 256.0).relu() @ v,
    "causal": lambda q, k, v: causal(q @ k.transpose(0, 1) / 256.0) @ v,
    "two": lambda q, k, v: ((q @ k.transpose(0, 1)).relu() * (q @ v.transpose(0, 1)) / 4096.0) @ v,
    "of queries": lambda q, k, v: (k @ q.transpose(0, 1) / 256.0).relu().transpose(0, 1) @ v,
}


def kernel_of(name: str, queries: int, keys: int, size: int, target=WIDE) -> UOp:
    shapes = ((queries, size), (keys, size), (keys, size))
    memory = [param(slot, dtypes.float32, shape) for slot, shape in enumerate(shapes)]
    result = FORMS[name](*map(Tensor, memory)).uop
    with Context(FUSE_PRODUCTS="always"):
        graph = sink(store(param(3, dtypes.float32, result.shape), result))
        (call,) = make_schedule(graph, target).kernels.src
    return call.arg


@pytest.mark.parametrize("target", [WIDE, NARROW], ids=["avx512", "avx2"])
@pytest.mark.parametrize("name", FORMS)
def test_every_product_has_a_tile_and_reads_its_weights(name: str, target) -> None:
    kernel = before_opts(kernel_of(name, 100, 530, 64, target), target)
    opts, shaped = chosen(kernel, target)
    assert sum(isinstance(opt, Carry) for opt in opts) == 1
    products = [factors for node in nodes_of(shaped) if (factors := factors_of(node)) is not None]
    assert len(products) == (3 if name == "two" else 2)
    assert all(any(each.op == Op.READ for each in factors) for factors in products)


def test_blocks_behind_the_diagonal_are_left_out() -> None:
    kernel = before_opts(kernel_of("causal", 512, 512, 64), WIDE)
    shaped = choose_opts(kernel, CodegenContext(WIDE, None))
    assert any(r.src[0].ranges for r in ranges_of(shaped).values())


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("sizes", [(17, 65, 8), (8, 40, 9)])
def test_the_program_computes_what_the_kernel_means(
    name: str, sizes: tuple[int, int, int]
) -> None:
    check(Case(kernel_of(name, *sizes)), WIDE, None)

"""Loops whose quotients and remainders stand in indices are split there, and then vectorized."""

from weft.codegen.analysis.loops import kinds_of
from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.opts.table import Split, Vectorize
from weft.ir.build import index_of, load, param, range_, reduce_ranges, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import make
from weft.ir.walk import topological
from weft.target.cpu import cpu_target

TARGET = cpu_target("x86_64", ("avx2",))


def packed_product(block: int, part: int):
    """Rows of packed bytes times a vector: element r is in block r // block, byte r % part."""
    bytes_, x, out = (
        param(1, dtypes.uint8, (64, 576 // block, part)),
        param(2, dtypes.float32, (576,)),
        param(0, dtypes.float32, (64,)),
    )
    row, r = range_(0, 64), range_(1, 576)
    value = load(index_of(bytes_, [row, r // block, r % part])).cast(dtypes.float32)
    total = reduce_ranges(value * load(index_of(x, [r])), Op.ADD, [r])
    loops = ((0, "loop"), (1, "loop"))
    stored = store(index_of(out, [row]), total, [row])
    return make(Op.KERNEL, dtypes.void, (stored,), ("product", loops))


def test_a_packed_loop_becomes_loops_without_quotients():
    opts, result = choose_opts(packed_product(32, 16), TARGET)
    assert any(isinstance(opt, Vectorize) for opt in opts)
    assert "vector" in kinds_of(result).values()
    assert not any(node.op in (Op.FLOORDIV, Op.FLOORMOD) for node in topological(result))


def test_short_parts_are_left_alone():
    opts, _ = choose_opts(packed_product(6, 3), TARGET)
    assert not any(isinstance(opt, Split) and opt.factor in (3, 6) for opt in opts)


def test_uneven_parts_are_left_alone():
    opts, _ = choose_opts(packed_product(36, 10), TARGET)
    assert not any(isinstance(opt, Split) and opt.factor == 10 for opt in opts)

"""Elements that are looked up: lanes for what is around them, but no copies of the lanes."""

import pytest

from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.opts.table import Unroll, Vectorize
from weft.ir.build import index_of, load, param, range_, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.target.cpu import cpu_target


def taken(is_looked_up: bool) -> UOp:
    """out[i] = table[addresses[i]], or the addresses themselves."""
    out = param(0, dtypes.float32, (4096,))
    addresses = param(1, dtypes.int32, (4096,))
    table = param(2, dtypes.float32, (100,))
    i = range_(0, 4096)
    address = load(index_of(addresses, [i]))
    value = load(index_of(table, [address.cast(dtypes.index)])) if is_looked_up else address
    stored = store(index_of(out, [i]), value.cast(dtypes.float32), [i])
    return make(Op.KERNEL, dtypes.void, (stored,), ("taken", ((0, "loop"),)))


@pytest.mark.parametrize("is_looked_up", (True, False))
def test_only_what_lies_in_order_is_unrolled(is_looked_up: bool):
    opts, _ = choose_opts(taken(is_looked_up), cpu_target("x86_64", ("avx512f",)))
    assert any(isinstance(opt, Vectorize) for opt in opts)
    assert any(isinstance(opt, Unroll) for opt in opts) != is_looked_up

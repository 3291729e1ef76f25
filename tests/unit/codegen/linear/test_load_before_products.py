"""Values of memory that a loop of products reads are loaded in front of the products."""

from weft.codegen.context import CodegenContext
from weft.codegen.linear.load_before_products import load_before_products
from weft.ir.build import load, param, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.target.cuda import cuda_target

CONTEXT = CodegenContext(cuda_target("sm_90a"))
F32 = dtypes.float32


def looped(count: int, is_written: bool = False) -> UOp:
    """A loop with a product whose sum is multiplied with some values of memory."""
    x, y = param(0, F32, (64 * count,)), param(1, F32, (64 * count,))
    tile = make(Op.MEMORY, F32, (), ("tile0", "register", 1))
    loop = make(Op.RANGE, dtypes.int32, (const(dtypes.int32, 64),), 0)
    at = make(Op.INDEX, F32, (tile, const(dtypes.bool, True), const(dtypes.int32, 0)))
    product = make(Op.CONTRACT, F32, (x, y), ())
    summed = store(at, product)
    lines = [loop, at, product, summed]
    value = load(make(Op.INDEX, F32, (make(Op.AFTER, F32, (tile, summed)), *at.src[1:])))
    lines += [value.src[0], value]
    total = value
    for n in range(count):
        index = make(Op.ADD, dtypes.int32, (loop, const(dtypes.int32, 64 * n)))
        address = make(Op.INDEX, F32, (x, const(dtypes.bool, True), index))
        total = make(Op.MUL, F32, (total, load(address)))
        lines += [index, address, total.src[1], total]
    to = make(Op.INDEX, F32, (x if is_written else y, const(dtypes.bool, True), loop))
    lines += [to, store(to, total), make(Op.END, dtypes.void, (loop,))]
    return make(Op.LINEAR, dtypes.void, tuple(dict.fromkeys(lines)))


def loads_before_product(program: UOp) -> int:
    ops = [node.op for node in program.src]
    return ops[: ops.index(Op.CONTRACT)].count(Op.LOAD)


def test_loads_come_before_the_product_with_what_they_need():
    before = looped(3)
    after = load_before_products(before, CONTEXT)
    assert loads_before_product(before) == 0
    assert loads_before_product(after) == 3
    assert set(after.src) == set(before.src)
    seen = set[UOp]()
    for node in after.src:
        needed = [each for each in node.src if each in set(after.src)]
        assert seen.issuperset(needed)
        seen.add(node)


def test_what_is_written_or_too_much_stays():
    for program in (looped(3, is_written=True), looped(100)):
        assert load_before_products(program, CONTEXT) is program


def test_no_loop_has_nothing_early():
    program = make(Op.LINEAR, dtypes.void, tuple(looped(1).src[1:-1]))
    assert load_before_products(program, CONTEXT) is program

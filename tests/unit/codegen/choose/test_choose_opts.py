"""The opts of a kernel: those that were asked for, else the heuristic's; what a target refuses."""

import pytest

from tests.unit.codegen.kernel_parts import F32, at, kernel, put
from tests.unit.codegen.products import product
from tests.unit.machines import machine
from weft.codegen.analysis.loops import kinds_of
from weft.codegen.choose.choose_opts import choose_opts
from weft.codegen.context import CodegenContext
from weft.codegen.generate import before_opts
from weft.codegen.opts.table import Bind, Opt, Split, TensorCore, Vectorize
from weft.ir.build import param, range_
from weft.ir.uop import UOp
from weft.support.errors import NotSupported, OptRefused
from weft.support.settings import Context
from weft.target.cuda import cuda_target
from weft.target.target import Target

CORES, GROUPS = machine(vector_bits=256), machine(group_threads=64)


def doubled(size: int = 64) -> UOp:
    out, x = param(0, F32, (size,)), param(1, F32, (size,))
    i = range_(0, size)
    return kernel("doubled", put(out, [i], at(x, i) * 2.0, [i]))


def chosen(
    root: UOp, target: Target = CORES, opts: tuple[Opt, ...] | None = None
) -> tuple[tuple[Opt, ...], dict[int, str]]:
    """The opts that were taken, and the loops after them."""
    context = CodegenContext(target, opts)
    result = choose_opts(before_opts(root, target), context)
    return context.chosen, kinds_of(result)


def test_without_a_wish_the_heuristic_chooses():
    opts, kinds = chosen(doubled())
    assert any(isinstance(opt, Vectorize) for opt in opts)
    assert "vector" in kinds.values()


def test_what_was_asked_for_is_taken_as_it_is():
    wish = (Split(0, 4), Vectorize(1))
    opts, kinds = chosen(doubled(), opts=wish)
    assert opts == wish and list(kinds.values()) == ["loop", "vector"]
    assert chosen(doubled(), opts=()) == ((), {0: "loop"})


def test_an_opt_that_cannot_be_is_refused():
    with pytest.raises(OptRefused):
        chosen(doubled(), opts=(Vectorize(7),))


def test_noopt_takes_none():
    with Context(NOOPT=1):
        assert chosen(doubled()) == ((), {0: "loop"})
        assert chosen(doubled(), opts=(Vectorize(0),)) == ((), {0: "loop"})


def test_threads_need_a_target_with_groups():
    wish = (Bind(0, "thread"),)
    assert chosen(doubled(), GROUPS, wish)[1] == {0: "thread"}
    with pytest.raises(NotSupported, match="threads inside a group"):
        chosen(doubled(), CORES, wish)


def test_a_group_has_as_many_threads_as_the_target_says():
    with pytest.raises(NotSupported, match="65 threads on 1 axes of a group"):
        chosen(doubled(65), GROUPS, (Bind(0, "thread"),))


@pytest.mark.parametrize(
    ("arch", "inputs", "stages", "words"),
    [
        ("sm_80", "bfloat16", 2, "tiles come by copies of boxes"),
        ("sm_90a", "float32", 2, "there are none for float32"),
        ("sm_90a", "bfloat16", 16, "bytes of local memory"),
    ],
)
def test_tiles_need_copies_a_unit_and_room(arch: str, inputs: str, stages: int, words: str):
    case = product(128, 256, 512, dtype=inputs)
    wish = (TensorCore(0, 1, 2, (128, 256, 128), stages),)
    with pytest.raises((NotSupported, OptRefused)) as error:
        chosen(case.kernel, cuda_target(arch), wish)
    assert words in str(error.value)

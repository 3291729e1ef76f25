"""Which tiles products of matrices have on matrix units, and what has none."""

from math import prod

import pytest

from weft import Tensor, dtypes
from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.generate import before_opts, generate
from weft.codegen.opts.table import Opt, TensorCore
from weft.ir.build import param, sink, store
from weft.ir.dtypes import DType
from weft.ir.uop import UOp
from weft.schedule.schedule import make_schedule
from weft.support.settings import Context
from weft.target.cuda import cuda_target

TARGET = cuda_target("sm_90a")
BF16 = dtypes.bfloat16


def kernels(out: Tensor, dtype: DType, shape: tuple[int, ...]) -> list[UOp]:
    graph = sink(store(param(9, dtype, shape), out.uop))
    return [call.arg for call in make_schedule(graph, TARGET).kernels.src]


def factor(slot: int, *shape: int, dtype: DType = BF16) -> Tensor:
    return Tensor(param(slot, dtype, shape))


def opts_of(kernel: UOp, target: object = TARGET) -> tuple[Opt, ...]:
    return choose_opts(before_opts(kernel, target), target)[0]


def tile_of(kernel: UOp, target: object = TARGET) -> tuple[int, int] | None:
    found = [opt for opt in opts_of(kernel, target) if isinstance(opt, TensorCore)]
    return found[0].tile[:2] if found else None


def product(m: int, n: int, k: int, dtype: DType = BF16) -> UOp:
    (kernel,) = kernels(
        factor(0, m, k, dtype=dtype) @ factor(1, n, k, dtype=dtype).T, dtype, (m, n)
    )
    return kernel


TILES = {
    (4096, 4096, 4096): (128, 256),
    (8192, 8192, 8192): (128, 256),
    (3072, 3072, 3072): (128, 192),
    (1024, 1024, 1024): (64, 128),
    (128, 4096, 4096): (64, 64),
}


@pytest.mark.parametrize("sizes", TILES)
def test_the_tile_whose_waves_are_full(sizes: tuple[int, int, int]):
    assert tile_of(product(*sizes)) == TILES[sizes]


def test_float16_too():
    assert tile_of(product(512, 512, 512, dtypes.float16)) is not None


def test_batches_views_and_sums_over_two_axes():
    x, y = factor(0, 3, 5, 200, 72), factor(1, 3, 5, 72, 136)
    (kernel,) = kernels(x @ y, BF16, (3, 5, 200, 136))
    assert tile_of(kernel) is not None
    x, y = factor(0, 512, 768), factor(1, 1024, 768)
    (kernel,) = kernels(x[:, 64:512] @ y[:, 64:512].T, BF16, (512, 1024))
    assert tile_of(kernel) is not None
    # Heads: rows of a head are not next to each other.
    q, k = (factor(slot, 2, 128, 4, 64).permute(0, 2, 1, 3) for slot in range(2))
    (kernel,) = kernels(q @ k.transpose(-1, -2), BF16, (2, 4, 128, 128))
    assert tile_of(kernel) is not None


def test_loops_around_a_tile():
    # The heads of attention: rows of several loops, and a sum over two.
    heads, weights = factor(0, 2, 4, 256, 64), factor(1, 256, 256)
    rows = heads.transpose(1, 2).reshape(2, 256, 256)
    (kernel,) = kernels(rows @ weights.T, BF16, (2, 256, 256))
    assert tile_of(kernel) is not None


def test_a_step_takes_no_more_than_there_is():
    x, y = factor(0, 8, 256, 64), factor(1, 8, 256, 64)
    (kernel,) = kernels(x @ y.transpose(-1, -2), BF16, (8, 256, 256))
    (opt,) = [opt for opt in opts_of(kernel) if isinstance(opt, TensorCore)]
    assert opt.tile[2] == 128


def test_groups_share_a_multiprocessor_where_there_are_enough():
    stages = {}
    for sizes in ((1024, 1024, 1024), (2304, 768, 8192)):  # 128 groups, and 216
        (opt,) = [opt for opt in opts_of(product(*sizes)) if isinstance(opt, TensorCore)]
        assert opt.tile == (64, 128, 128)
        stages[sizes] = opt.stages
    assert list(stages.values()) == [8, 3]


def test_much_that_follows_a_short_sum_wants_groups_that_take_turns():
    x, y = factor(0, 8192, 768), factor(1, 768, 768)
    rest = factor(2, 8192, 768, dtype=dtypes.float32)
    (plain,) = kernels(x @ y, BF16, (8192, 768))
    (more,) = kernels((x @ y).float() + rest, dtypes.float32, (8192, 768))
    assert (tile_of(plain), tile_of(more)) == ((128, 128), (64, 128))


def test_short_sums_have_few_stages():
    (opt,) = [opt for opt in opts_of(product(8192, 2048, 128)) if isinstance(opt, TensorCore)]
    assert opt.stages == 2


def test_bytes():
    x, y = (factor(slot, 512, 512, dtype=dtypes.int8) for slot in range(2))
    for out, dtype in ((x @ y.T, dtypes.int8), (x.int() @ y.int().T, dtypes.int32)):
        (kernel,) = kernels(out, dtype, (512, 512))
        assert tile_of(kernel) is not None


def small_floats(out: DType) -> UOp:
    x, y = (factor(slot, 512, 512, dtype=dtypes.fp8e4m3).float() for slot in range(2))
    (kernel,) = kernels((x @ y.T).cast(out), out, (512, 512))
    return kernel


def test_sums_of_few_digits_are_for_small_floats():
    assert tile_of(small_floats(BF16)) is not None


REFUSED = {
    "more digits than a sum has": (
        lambda: small_floats(dtypes.float32),
        "sums of fp8e4m3 have 14 bits there",
    ),
    "odd pitch": (lambda: product(64, 64, 65), "rows 130 bytes apart"),
    "float32": (lambda: product(512, 512, 512, dtypes.float32), "there are none for float32"),
    "few rows": (lambda: product(8, 512, 512), "8 x 512 x 512 is too small"),
    "unaligned start": (
        lambda: kernels(factor(0, 64, 72)[:, 1:65] @ factor(1, 64, 64), BF16, (64, 64))[0],
        "starts 2 bytes inside",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_tile_says_why(name: str, capsys: pytest.CaptureFixture[str]):
    make, reason = REFUSED[name]
    kernel = make()
    with Context(DEBUG=5):
        assert tile_of(kernel) is None
    assert reason in capsys.readouterr().out


def test_other_machines_have_no_such_tiles():
    for arch in ("sm_80", "sm_90"):
        assert tile_of(product(512, 512, 512), cuda_target(arch)) is None


def test_groups_run_down_blocks_of_tiles():
    program = generate(product(8192, 8192, 8192), TARGET)
    assert program.groups == (16, 32, 4)  # 16 rows of tiles, all columns, then the next rows
    assert prod(program.threads) == 256


def test_columns_of_heads_are_a_tile_together():
    """The slope of the weight behind attention: a column is one of 64 in one of 12 heads."""
    x = factor(0, 2, 1024, 768).reshape(2048, 768)
    heads = factor(1, 2, 12, 1024, 64).permute(0, 2, 1, 3).reshape(2048, 768)
    (kernel,) = kernels(x.T @ heads, BF16, (768, 768))
    (opt,) = (each for each in opts_of(kernel) if isinstance(each, TensorCore))
    assert isinstance(opt.column, tuple) and opt.tile[1] > 64

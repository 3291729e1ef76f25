"""The targets of NVIDIA GPUs by name, and what their table says."""

import pytest

from weft.ir.dtypes import dtypes
from weft.support.errors import UnknownName
from weft.target.compute import Simt
from weft.target.cuda import GPUS, cuda_target, parse_cuda
from weft.target.matrix import Fragment, MatrixUnit
from weft.target.target import Target

TARGETS = [cuda_target(arch) for arch in ("sm_80", "sm_90a", "sm_100a")]
UNITS = {f"{t.arch} {unit.name}": unit for t in TARGETS for unit in t.matrix_units}


def test_a_target_by_its_arch():
    target = cuda_target("sm_90a")
    assert target.name == "CUDA:PTX:sm_90a"
    assert target.has_groups
    assert target.grid.group_threads == 1024
    assert target.grid.group_limits[1:] == (65535, 65535)
    assert parse_cuda("CUDA:PTX:sm_90a") == parse_cuda("sm_90a") == target


@pytest.mark.parametrize("text", ["sm90", "sm_9", "gfx942", "", "CPU:LLVM:x86_64"])
def test_unknown_names_are_refused(text: str):
    with pytest.raises(UnknownName):
        parse_cuda(text)


@pytest.mark.parametrize(
    ("arch", "row"), [("sm_70", 80), ("sm_86", 80), ("sm_89", 80), ("sm_90", 90), ("sm_120", 100)]
)
def test_other_architectures_take_the_row_before_them(arch: str, row: int):
    target = cuda_target(arch)
    assert target.units == GPUS[row].units
    assert {unit.name.partition(".")[0] for unit in target.matrix_units} == {"mma"}


@pytest.mark.parametrize(("arch", "own"), [("sm_90a", "wgmma"), ("sm_100a", "tcgen05")])
def test_instructions_of_one_architecture_need_its_letter(arch: str, own: str):
    def names(target: Target) -> set[str]:
        return {unit.name.partition(".")[0] for unit in target.matrix_units}

    assert own in names(cuda_target(arch))
    assert own not in names(cuda_target(arch.rstrip("a")))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.arch)
def test_costs_and_peaks_agree(target: Target):
    """The whole GPU at the cost of a multiprocessor is the peak of the data sheet."""
    units = target.units
    assert units * 2e9 / target.costs.multiply_add == pytest.approx(target.peaks.operations)
    moved = units * target.memory("global").bandwidth
    assert moved == pytest.approx(target.peaks.bytes_moved)
    assert target.peaks.source and target.costs.source
    compute = target.compute
    assert isinstance(compute, Simt)
    assert compute.registers_per_unit // compute.threads_per_unit == 32
    sizes = [memory.size for memory in target.memories if memory.name != "tensor"]
    assert all(sizes)


def covers(fragment: Fragment, rows: int, columns: int) -> bool:
    """Whether every element has exactly one thread and position."""
    wanted = [(row, column) for row in range(rows) for column in range(columns)]
    return sorted(fragment.positions()) == wanted


@pytest.mark.parametrize("name", UNITS)
def test_fragments_cover_their_tiles(name: str):
    unit: MatrixUnit = UNITS[name]
    assert unit.rate > 0 and unit.columns == tuple(sorted(unit.columns))
    width = unit.columns[0]
    if unit.left is not None and unit.right is not None:
        assert covers(unit.left, unit.rows, unit.depth)
        assert covers(unit.right, unit.depth, width)
    if unit.result is not None:
        assert 1 << len(unit.result.threads) == unit.threads
        assert covers(unit.result, unit.rows, width)


def test_a_fragment_as_the_manual_draws_it():
    """m16n8k16 of half: a4 and a5 of thread 5 are in row 1, columns 10 and 11 (PTX ISA)."""
    unit = UNITS["sm_80 mma.sync.m16n8k16.f16"]
    assert unit.left is not None and unit.right is not None
    assert [unit.left.position(5, n) for n in (0, 2, 4, 6)] == [(1, 2), (9, 2), (1, 10), (9, 10)]
    assert [unit.right.position(5, n) for n in (0, 1, 2)] == [(2, 1), (3, 1), (10, 1)]
    assert (dtypes.bfloat16, dtypes.bfloat16) in unit.inputs


def test_copies_of_each_generation():
    names = [[copy.name for copy in target.copies] for target in TARGETS]
    assert names[0] == ["cp.async"]
    assert names[1] == names[2] == ["cp.async.bulk.tensor", "cp.async.bulk", "cp.async"]

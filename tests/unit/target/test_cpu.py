"""The targets of CPUs by name, and what they promise."""

import pytest

from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.support.errors import UnknownName
from weft.target.cpu import LLVM_OPS, best_level, cpu_target, parse_cpu


@pytest.mark.parametrize(
    ("text", "bits", "registers"),
    [
        ("x86_64", 128, 16),
        ("x86_64,avx2", 256, 16),
        ("CPU:LLVM:x86_64,avx2", 256, 16),
        ("CPU:LLVM:x86_64,avx512f", 512, 32),
        ("CPU:LLVM:x86_64,avx2,avx512f", 512, 32),
        ("CPU:LLVM:aarch64", 128, 32),
    ],
)
def test_a_target_by_its_name(text: str, bits: int, registers: int):
    target = parse_cpu(text)
    assert (target.compute.vector_bits, target.compute.vector_registers) == (bits, registers)
    assert target.name == "CPU:LLVM:" + text.rpartition(":")[2]
    assert not target.has_groups


def test_threads_and_caches_are_told():
    target = cpu_target("aarch64", (), threads=6, cache_bytes=(64 << 10, 4 << 20, 8 << 20))
    assert target.units == 6
    assert tuple(cache.size for cache in target.caches) == (64 << 10, 4 << 20, 8 << 20)
    assert target.local_bytes == 1 << 20


def test_small_floats_are_stored_and_not_computed_in():
    target = cpu_target()
    small = {dtypes.float16, dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2}
    assert small <= target.stored_dtypes
    assert not small & target.native_dtypes
    assert {dtypes.bool, dtypes.int8, dtypes.uint64, dtypes.float64} <= target.native_dtypes
    assert dtypes.index not in target.stored_dtypes


def test_transcendental_ops_are_not_native():
    assert not LLVM_OPS & {Op.EXP, Op.EXP2, Op.LOG, Op.LOG2, Op.SIN, Op.COS, Op.TANH, Op.ERF}
    assert Op.POW not in LLVM_OPS
    assert {Op.SQRT, Op.FLOOR, Op.TRUNC, Op.ROUND} <= LLVM_OPS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x86", "unknown architecture 'x86'"),
        ("x86_64,avx512", "unknown feature of x86_64 'avx512'"),
        ("x86_64,", "unknown feature of x86_64 ''"),
        ("aarch64,avx2", "unknown feature of aarch64 'avx2'"),
        ("CUDA:PTX:sm_90a", "is not one of a CPU"),
        ("", "unknown architecture ''"),
    ],
)
def test_unknown_names_are_refused(text: str, message: str):
    with pytest.raises(UnknownName, match=message):
        parse_cpu(text)


def test_a_misspelt_feature_is_put_right():
    with pytest.raises(UnknownName, match="write 'avx512f'"):
        parse_cpu("x86_64,avx512")


def test_the_best_level_of_what_a_machine_has():
    assert best_level("x86_64", frozenset(("avx2", "avx512f"))) == ("avx512f",)
    assert best_level("x86_64", frozenset(("avx2",))) == ("avx2",)
    assert best_level("x86_64", frozenset()) == ()
    assert best_level("aarch64", frozenset()) == ()

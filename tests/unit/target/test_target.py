"""A target is one value of parts, and its key tells targets apart that differ in any of them."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from weft.ir.dtypes import dtypes
from weft.support.errors import InternalError
from weft.target.cpu import cpu_target
from weft.target.cuda import cuda_target
from weft.target.matrix import Fragment
from weft.target.target import Target

ROOT = Path(__file__).resolve().parents[3]
OTHERS = {
    int: lambda value: value + 1,
    float: lambda value: value + 1.0,
    bool: lambda value: not value,
    str: lambda value: value + "x",
    frozenset: lambda value: value ^ frozenset((99,)),
}


def changed(value: object) -> object:
    """The same kind of value, but another one; None where nothing inside of it can change."""
    if type(value) in OTHERS:
        return OTHERS[type(value)](value)
    if value is None:
        return Fragment((), ())
    if isinstance(value, tuple):
        return (*value, 1)
    return dtypes.int8 if value is not dtypes.int8 else dtypes.int16


def variants(part: object) -> list[object]:
    """The part with one field changed, for every field at every depth."""
    if not dataclasses.is_dataclass(part):
        return [changed(part)]
    found = []
    for each in dataclasses.fields(part):
        value = getattr(part, each.name)
        if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            inner = [(new, *value[1:]) for new in variants(value[0])] + [value[1:]]
        else:
            inner = variants(value)
        found += [dataclasses.replace(part, **{each.name: new}) for new in inner]
    return found


@pytest.mark.parametrize("target", [cpu_target("x86_64", ("avx2",), 4), cuda_target("sm_90a")])
def test_every_field_is_in_the_key(target: Target) -> None:
    others = variants(target)
    assert len(others) > 50
    for other in others:
        assert isinstance(other, Target)
        assert other.key != target.key, other
        assert other != target
    assert dataclasses.replace(target).key == target.key


def test_a_key_is_the_same_in_every_process() -> None:
    program = "from weft.target.cuda import cuda_target; print(cuda_target('sm_90a').key)"
    keys = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert keys == {cuda_target("sm_90a").key}


def test_memories_are_found_by_name() -> None:
    target = cpu_target("x86_64", ("avx512f",), 2, (48 << 10, 2 << 20, 36 << 20))
    assert [cache.name for cache in target.caches] == ["level1", "level2", "level3"]
    assert target.memory("level2").size == 2 << 20
    assert target.memory("global").bandwidth == 1e10
    with pytest.raises(InternalError, match="has no memory 'tensor'"):
        target.memory("tensor")


def test_widths_and_registers_have_one_meaning() -> None:
    cpu, gpu = cpu_target("x86_64", ("avx512f",), 8), cuda_target("sm_90a")
    assert (cpu.units, cpu.access_bits, cpu.vectors_in_registers) == (8, 512, 32)
    assert (gpu.units, gpu.access_bits) == (132, 128)
    assert gpu.vectors_in_registers == 255 * 32 // 128  # registers of 32 bits, in vectors

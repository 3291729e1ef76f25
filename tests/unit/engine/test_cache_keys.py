"""Disk keys of compiled kernels and of search results hold all that can change the result."""

from dataclasses import replace

import pytest

from weft.engine import compile as compiling
from weft.engine import search
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.uop import UOp
from weft.runtime.null.device import NullDevice
from weft.schedule.schedule import make_schedule
from weft.support.settings import Context
from weft.target.cpu import cpu_target
from weft.target.target import Costs, Target

HERE = cpu_target("x86_64", ("avx2",), 2)


def device(target: Target, compiler: str = "LLVM 22.1") -> NullDevice:
    made = NullDevice(lambda program, target: "", target)
    made.compiler = compiler
    return made


@pytest.fixture(scope="module")
def kernel() -> UOp:
    x = param(1, dtypes.float32, (100,))
    graph = sink(store(param(0, dtypes.float32, (100,)), x + 1.0))
    (call,) = make_schedule(graph, HERE).kernels.src
    found: UOp = call.arg
    return found


OTHERS = {
    "threads": device(cpu_target("x86_64", ("avx2",), 3)),
    "caches": device(cpu_target("x86_64", ("avx2",), 2, (32 << 10, 2 << 20, 24 << 20))),
    "costs": device(replace(HERE, costs=Costs(op=0.5))),
    "the version of LLVM": device(HERE, "LLVM 21.0"),
    "features": device(cpu_target("x86_64", ("avx512f",), 2)),
}


@pytest.mark.parametrize("what", OTHERS)
def test_another_machine_or_compiler_is_another_entry(what: str, kernel: UOp) -> None:
    same, other = device(HERE), OTHERS[what]
    assert compiling._disk_key(kernel, same) == compiling._disk_key(kernel, device(HERE))
    assert compiling._disk_key(kernel, same) != compiling._disk_key(kernel, other)
    assert search._disk_key(kernel, same, 2) == search._disk_key(kernel, device(HERE), 2)
    assert search._disk_key(kernel, same, 2) != search._disk_key(kernel, other, 2)


def test_what_was_asked_of_a_search_is_in_its_key(kernel: UOp) -> None:
    key = search._disk_key(kernel, device(HERE), 2)
    assert key != search._disk_key(kernel, device(HERE), 4)
    with Context(BEAM_SECONDS=99):
        assert key != search._disk_key(kernel, device(HERE), 2)

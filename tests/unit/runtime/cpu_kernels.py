"""Small kernels for the tests of the CPU device."""

from tests.unit.render.llvm_programs import (
    F32,
    I32,
    argument,
    at,
    counter,
    end,
    get,
    number,
    program,
    put,
    special,
)
from weft.ir.program import Program
from weft.render.llvm.renderer import render
from weft.runtime.cpu.device import CpuDevice
from weft.runtime.cpu.pool import ThreadPool
from weft.runtime.host import host_target


def device(pool: ThreadPool | None = None) -> CpuDevice:
    return CpuDevice(render, host_target(1 if pool is None else pool.threads), pool=pool)


def count_groups(groups: int, name: str = "count_groups") -> Program:
    """Each group adds one to its own int32."""
    me = special("group", groups)
    element = at(argument(0, I32, groups), me)
    return program(put(element, get(element) + 1), name=name)


def add_number(value: float, size: int = 64, name: str = "add_number") -> Program:
    """`out = x + value`, in 8 groups of a loop each."""
    me, iteration = special("group", 8), counter(0, size // 8)
    index = me * (size // 8) + iteration
    total = get(at(argument(1, F32, size), index)) + value
    return program(
        me, iteration, put(at(argument(0, F32, size), index), total), end(iteration), name=name
    )


def work_long(groups: int, iterations: int, name: str = "work_long") -> Program:
    """Each group runs a long loop that adds one to its own int32."""
    me, iteration = special("group", groups), counter(0, iterations)
    element = at(argument(0, I32, groups), me)
    return program(
        me, iteration, put(element, get(element) + number(1)), end(iteration), name=name
    )

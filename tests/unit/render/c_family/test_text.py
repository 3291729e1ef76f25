"""What rendered programs look like, and what is refused."""

import math

import pytest

from tests.unit.render.c_family_cases import (
    after,
    argument,
    at,
    barrier,
    end,
    f32,
    i32,
    loop,
    memory,
    number,
    program,
    special,
)
from weft.ir.build import load, store, variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.program import Program
from weft.ir.uop import const, make
from weft.render.c_family import c, opencl
from weft.render.c_family.c import C
from weft.render.c_family.opencl import OPENCL
from weft.support.errors import InternalError, NotSupported
from weft.target.c import c_target
from weft.target.opencl import opencl_target


def dot_product(name: str = "dot") -> Program:
    out, x, y = argument(0, 4), argument(1, 64), argument(2, 64)
    acc = memory("acc", "register", 1)
    g, k = special("group", 4), loop(1, 16)
    clear = store(at(acc, 0), const(f32, 0))
    cleared = after(acc, clear)
    product = load(at(x, g * 16 + k)) * load(at(y, g * 16 + k, k < 9))
    add = store(at(cleared, 0), load(at(cleared, 0)) + product)
    write = store(at(out, g), load(at(after(acc, end(k)), 0)))
    return program(g, clear, g * 16, k, add, end(k), write, groups=(4,), name=name)


DOT_C = """\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#pragma STDC FP_CONTRACT OFF

void dot(void **args, const int64_t *vars, int64_t begin, int64_t end) {
  float *p0 = args[0];
  const float *p1 = args[1];
  const float *p2 = args[2];
  for (int64_t group = begin; group < end; group++) {
    const int32_t g0 = (int32_t)(group);
    float acc;
    acc = 0.0f;
    const int32_t v0 = g0 * 16;
    for (int32_t r1 = 0; r1 < 16; r1++) {
      const int32_t v1 = v0 + r1;
      acc = acc + p1[v1] * (r1 < 9 ? p2[v1] : 0.0f);
    }
    p0[g0] = acc;
  }
}
"""
DOT_OPENCL = """\
#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void dot_kernel(__global float *p0, __global const float *p1, __global const float *p2) {
  const int g0 = (int)get_group_id(0);
  float acc;
  acc = 0.0f;
  const int v0 = g0 * 16;
  for (int r1 = 0; r1 < 16; r1++) {
    const int v1 = v0 + r1;
    acc = acc + p1[v1] * (r1 < 9 ? p2[v1] : 0.0f);
  }
  p0[g0] = acc;
}
"""


def test_a_program_in_c():
    assert c.render(dot_product("dot_product"), c_target()) == DOT_C.replace(
        "dot(", "dot_product("
    )


def test_a_program_in_opencl():
    assert opencl.render(dot_product(), opencl_target()) == DOT_OPENCL


def test_names_come_from_the_program_and_never_clash():
    out = argument(0, 4, i32)
    n, size = variable("float", 1, 4), variable("p0", 1, 4)
    first, second = memory("acc", "register", 2, i32), memory("acc", "local", 2, i32)
    stores = [store(at(m, 0), number(i)) for i, m in enumerate((first, second))]
    total = load(at(after(first, stores[0]), 0)) + load(at(after(second, stores[1]), 0))
    sizes = n.cast(i32) + size.cast(i32)
    code = program(*stores, store(at(out, 0), total + sizes), variables=(n, size))
    text = opencl.render(code, opencl_target())
    assert "const long float_1, const long p0_1" in text
    assert "int acc[2];" in text
    assert "__local int acc_1[2];" in text


def test_signed_arithmetic_that_may_overflow_is_unsigned_in_opencl():
    x, out = argument(0, 4, i32), argument(1, 4, i32)
    i = loop(0, 4)
    code = program(i, store(at(out, i), load(at(x, i)) * 3 + i), end(i))
    text = opencl.render(code, opencl_target())
    assert "p1[r0] = (int)((uint)(int)((uint)p0[r0] * (uint)3) + (uint)r0);" in text
    assert "p1[r0] = p0[r0] * 3 + r0;" in c.render(code, c_target())


def test_literals_are_exact():
    for language in (C, OPENCL):
        assert language.literal(f32, 0.5).text == "0.5f"
        assert language.literal(f32, -0.0).text == "-0.0f"
        assert language.literal(f32, const(f32, 0.1).arg).text == "0x1.99999ap-4f"
        assert language.literal(dtypes.float64, 5e-324).text == "0x0.0000000000001p-1022"
        assert language.literal(f32, -math.inf).text == "-INFINITY"
        assert language.literal(i32, -(2**31)).text == "(-2147483647 - 1)"
    assert C.literal(dtypes.uint64, 2**64 - 1).text == "18446744073709551615ULL"
    assert OPENCL.literal(dtypes.int64, -(2**63)).text == "(-9223372036854775807L - 1)"


def test_division_is_done_wide_where_float32_is_not_rounded_correctly():
    x, out = argument(0, 4), argument(1, 4)
    value = load(at(x, 0)) / load(at(x, 1))
    code = program(store(at(out, 0), make(Op.SQRT, f32, (value,))))
    exact = opencl.render(code, opencl_target(rounds_float32=True))
    assert "p1[0] = sqrt(p0[0] / p0[1]);" in exact
    assert "double" not in exact
    detour = opencl.render(code, opencl_target(rounds_float32=False))
    assert "(float)((double)p0[0] / (double)p0[1])" in detour
    assert "cl_khr_fp64" in detour
    without = opencl.render(code, opencl_target(rounds_float32=False, has_float64=False))
    assert "double" not in without


def test_a_barrier_between_threads_is_refused_in_c():
    t, tile, out = special("thread", 2), memory("tile", "local", 2), argument(0, 2)
    fill = store(at(tile, t), const(f32, 1))
    wait = barrier(fill)
    back = load(at(after(tile, wait), number(1) - t))
    code = program(t, fill, wait, store(at(out, t), back), threads=(2,))
    with pytest.raises(NotSupported, match="cannot wait for each other"):
        c.render(code, c_target())


def test_what_the_target_cannot_do_is_named():
    x, out = argument(0, 4), argument(1, 4)
    code = program(store(at(out, 0), make(Op.EXP, f32, (load(at(x, 0)),))))
    with pytest.raises(InternalError, match="no form of EXP on float32"):
        c.render(code, c_target())
    half = argument(0, 4, dtypes.float16)
    code = program(store(at(half, 0), load(at(half, 1))))
    with pytest.raises(InternalError, match="OpenCL C has no type for float16"):
        opencl.render(code, opencl_target())
    groups = [special("group", 2, axis) for axis in range(4)]
    code = program(*groups, store(at(out, groups[3]), const(f32, 0)), groups=(2, 2, 2, 2))
    with pytest.raises(InternalError, match="3 axes at most"):
        opencl.render(code, opencl_target())


def test_targets():
    target = opencl_target("Some GPU (TM) 7", has_float64=False)
    assert target.name == "OPENCL:CL:some-gpu-tm-7,exact32"
    assert dtypes.float64 not in target.native_dtypes
    assert dtypes.float16 in target.stored_dtypes
    assert target.has_groups
    assert c_target("x86-64-v3").access_bits == 256
    assert c_target("x86-64-v3").name == "C:C:x86-64-v3"

"""Products of bytes, beside NumPy's products of wide integers, and what machines make of them."""

import re
from typing import Any

import numpy as np
import pytest

from weft import DTypeError, Tensor
from weft.codegen.generate import generate
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.render.llvm.renderer import render
from weft.schedule.schedule import make_schedule
from weft.target.cpu import parse_cpu
from weft.tensor.neural.byte_products import contract_bytes, multiply_bytes, packed
from weft.tensor.neural.convolution import convolved


def bytes_of(kind: str, *shape: int) -> Any:
    limits = np.iinfo(kind)
    return np.random.default_rng(0).integers(limits.min, limits.max + 1, shape).astype(kind)


@pytest.mark.parametrize("device", ("CPU", "PYTHON"))
@pytest.mark.parametrize(("rows", "depth", "columns"), ((1, 1, 1), (3, 13, 5), (18, 64, 33)))
def test_a_product_of_matrices(device: str, rows: int, depth: int, columns: int):
    x, y = bytes_of("uint8", rows, depth), bytes_of("int8", depth, columns)
    words = packed(Tensor(x, device=device), 1), packed(Tensor(y, device=device), 0)
    wanted = x.astype(np.int32) @ y.astype(np.int32)
    np.testing.assert_array_equal(multiply_bytes(*words).numpy(), wanted)


def test_extreme_bytes_do_not_saturate():
    """Sums of 16 bits would: 255 * 127 * 4 is more than they hold."""
    x, y = np.full((1, 64), 255, np.uint8), np.full((64, 16), -128, np.int8)
    sums = multiply_bytes(packed(Tensor(x), 1), packed(Tensor(y), 0))
    np.testing.assert_array_equal(sums.numpy(), np.full((1, 16), 64 * 255 * -128))


@pytest.mark.parametrize("groups", (1, 2))
def test_a_convolution(groups: int):
    x, w = bytes_of("uint8", 2, 16, 9, 20), bytes_of("int8", 12, 16 // groups, 3, 3)
    words = packed(Tensor(x), 1), packed(Tensor(w), 1)
    sums = convolved(*words, groups, (1, 1), (1, 1), contract_bytes)
    wanted = Tensor(x.astype(np.int32)).conv2d(Tensor(w.astype(np.int32)), groups=groups)
    np.testing.assert_array_equal(sums.numpy(), wanted.numpy())


def test_only_bytes_are_packed():
    with pytest.raises(DTypeError, match="expected bytes, got int32"):
        packed(Tensor([1, 2, 3, 4]), 0)


@pytest.mark.parametrize(("level", "has"), (("avx512vnni", True), ("avx512f", False)))
def test_machines_that_add_products_of_bytes_do_it_in_one_instruction(level: str, has: bool):
    target = parse_cpu(f"x86_64,{level}")
    shapes = (64, 128), (64, 32), (32, 128)
    result, left, right = (param(i, dtypes.int32, shape) for i, shape in enumerate(shapes))
    graph = sink(store(result, multiply_bytes(Tensor(left), Tensor(right)).uop))
    (call,) = make_schedule(graph, target).kernels.src
    text = render(generate(call.arg, target), target)
    loop = text[text.index("define") :]
    assert ("@llvm.x86.avx512.vpdpbusd.512(" in loop) is has
    others = re.findall(r"(?:mul|add)(?: nsw)? <16 x i32>", loop)
    assert bool(others) is not has  # the sum goes on in the same instruction

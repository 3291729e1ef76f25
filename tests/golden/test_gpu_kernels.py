"""Facts of key kernels for an H200, read from their PTX: launch sizes, accesses, exchanges.

A change that moves one says so here. Texts would change with every name; these decide the speed.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import pytest

from weft import Tensor
from weft.codegen.generate import generate
from weft.ir.build import param, sink, store
from weft.ir.dtypes import DType, dtypes
from weft.render.llvm.renderer import render
from weft.runtime.llvm.compiler import compile_ptx
from weft.schedule.schedule import make_schedule
from weft.target.cuda import cuda_target

TARGET = cuda_target("sm_90a")
F32, BF16, I32 = dtypes.float32, dtypes.bfloat16, dtypes.int32
MILLIONS = 1 << 24


class Facts(NamedTuple):
    """What a kernel is launched with and does; a count of 0 is left out."""

    groups: tuple[int, ...]
    threads: tuple[int, ...]
    loads: dict[int, int]  # of global memory, by bits
    stores: dict[int, int]
    shared_bytes: int = 0
    barriers: int = 0
    shuffles: int = 0
    powers: int = 0  # ex2.approx
    divisions: int = 0  # div.rn and rcp.rn, which take a branch


def facts_of(function: Callable[..., Tensor], *inputs: tuple[tuple[int, ...], DType]) -> Facts:
    arguments = [Tensor(param(n, dtype, shape)) for n, (shape, dtype) in enumerate(inputs, 1)]
    result = function(*arguments)
    root = sink(store(param(0, result.dtype, result.shape), result.uop))
    call = make_schedule(root, TARGET).kernels.src[0]
    program = generate(call.arg, TARGET)
    text = compile_ptx(render(program, TARGET), TARGET)
    return Facts(
        tuple(int(size) for size in program.groups),  # type: ignore[arg-type]
        program.threads,
        _accesses(text, "ld"),
        _accesses(text, "st"),
        sum(int(size) for size in re.findall(r"\.shared \.align \d+ \.b8 \w+\[(\d+)\]", text)),
        len(re.findall(r"\bbar(?:rier)?\.(?:cta\.)?sync", text)),
        len(re.findall(r"shfl\.sync", text)),
        len(re.findall(r"ex2\.approx", text)),
        len(re.findall(r"(?:div|rcp)\.rn", text)),
    )


def _accesses(text: str, kind: str) -> dict[int, int]:
    found = re.findall(rf"{kind}\.global(?:\.v(\d))?\.[a-z](\d+)", text)
    return dict(Counter(int(lanes or 1) * int(bits) for lanes, bits in found))


def of(*shape: int, dtype: DType = F32) -> tuple[tuple[int, ...], DType]:
    return shape, dtype


Case = tuple[Callable[..., Tensor], list[tuple[tuple[int, ...], DType]], Facts]
CASES: dict[str, Case] = {
    "exp": (
        lambda x: x.exp(),
        [of(MILLIONS)],
        Facts((16384,), (256,), loads={128: 1}, stores={128: 1}, powers=4),
    ),
    "gelu": (
        lambda x: x.gelu(),
        [of(MILLIONS)],
        Facts((16384,), (256,), loads={128: 1}, stores={128: 1}, powers=4),
    ),
    "silu": (
        lambda x: x.silu(),
        [of(MILLIONS)],
        Facts((16384,), (256,), loads={128: 1}, stores={128: 1}, powers=4),
    ),
    "to bfloat16": (
        lambda x: x.bfloat16(),
        [of(MILLIONS)],
        Facts((16384,), (256,), loads={128: 1}, stores={64: 1}),
    ),
    "sums of rows": (
        lambda x: x.sum(1),
        [of(4096, 4096)],
        Facts(
            (4096,),
            (256,),
            loads={128: 4},
            stores={32: 1},
            shared_bytes=32,
            barriers=1,
            shuffles=5,
        ),
    ),
    "sums of columns": (
        lambda x: x.sum(0),
        [of(4096, 4096)],
        Facts((32, 32), (32, 8), loads={128: 8}, stores={128: 1}, shared_bytes=4096, barriers=1),
    ),
    "softmax of short rows": (
        lambda x: x.softmax(1),
        [of(65536, 128)],
        Facts(
            (8192,), (32, 8), loads={128: 1}, stores={128: 1}, shuffles=10, powers=4, divisions=1
        ),
    ),
    "softmax": (
        lambda x: x.softmax(1),
        [of(16384, 4096)],
        Facts(
            (16384,),
            (256,),
            loads={128: 4},
            stores={128: 4},
            shared_bytes=64,
            barriers=2,
            shuffles=10,
            powers=16,
            divisions=1,
        ),
    ),
    "softmax of wide rows": (
        lambda x: x.softmax(1),
        [of(4096, 16384)],
        Facts(
            (4096,),
            (512,),
            loads={128: 8},
            stores={128: 8},
            shared_bytes=128,
            barriers=2,
            shuffles=10,
            powers=32,
            divisions=1,
        ),
    ),
    "softmax of odd rows": (
        lambda x: x.softmax(1),
        [of(2000, 50257)],
        Facts(
            (2000,),
            (1024,),
            loads={32: 50},
            stores={32: 50},
            shared_bytes=256,
            barriers=2,
            shuffles=10,
            powers=50,
            divisions=1,
        ),
    ),
    "layernorm in bfloat16": (
        lambda x: x.layernorm(),
        [of(16384, 4096, dtype=BF16)],
        Facts(
            (16384,),
            (128,),
            loads={128: 4},
            stores={128: 4},
            shared_bytes=32,
            barriers=2,
            shuffles=10,
            divisions=1,
        ),
    ),
    "transpose": (
        lambda x: x.T.contiguous(),
        [of(4096, 4096)],
        Facts((128, 128), (32, 8), loads={32: 4}, stores={32: 4}, shared_bytes=4096, barriers=1),
    ),
    "embedding": (
        lambda i, w: w[i],
        [of(8192, dtype=I32), of(50257, 768)],
        Facts((2048,), (64, 4), loads={32: 1, 128: 3}, stores={128: 3}),
    ),
    "matvec": (
        lambda w, x: w @ x,
        [of(4096, 4096), of(4096)],
        Facts(
            (4096,),
            (256,),
            loads={128: 8},
            stores={32: 1},
            shared_bytes=32,
            barriers=1,
            shuffles=5,
        ),
    ),
    "vector by matrix": (
        lambda w, x: x @ w,
        [of(4096, 4096), of(4096)],
        Facts(
            (128,),
            (8, 32),
            loads={128: 8, 32: 8},
            stores={128: 1},
            shared_bytes=1024,
            barriers=1,
            shuffles=8,
        ),
    ),
    "few rows by matrix": (
        lambda x, w: x @ w,
        [of(8, 4096), of(4096, 4096)],
        Facts(
            (128,),
            (8, 32),
            loads={32: 64, 128: 8},
            stores={128: 8},
            shared_bytes=8192,
            barriers=1,
            shuffles=64,
        ),
    ),
    "product": (
        lambda x, y: x @ y,
        [of(4096, 4096), of(4096, 4096)],
        Facts(
            (32, 32),
            (16, 16),
            loads={32: 16, 128: 4},
            stores={128: 16},
            shared_bytes=16624,
            barriers=2,
        ),
    ),
    "product, transposed": (
        lambda x, y: x @ y.T,
        [of(4096, 4096), of(4096, 4096)],
        Facts(
            (32, 32), (16, 16), loads={32: 32}, stores={128: 16}, shared_bytes=16864, barriers=2
        ),
    ),
    "small product": (
        lambda x, y: x @ y,
        [of(512, 512), of(512, 512)],
        Facts(
            (16, 16),
            (8, 8),
            loads={32: 16, 128: 4},
            stores={128: 4},
            shared_bytes=4336,
            barriers=2,
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_facts(name: str):
    function, inputs, expected = CASES[name]
    assert facts_of(function, *inputs) == expected

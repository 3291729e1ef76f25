"""Products of matrices on matrix units of Hopper: what the assembler of NVIDIA says of them."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.test_ptx import ptxas
from weft import Tensor, dtypes
from weft.codegen.generate import generate
from weft.ir.build import param, sink, store
from weft.ir.dtypes import DType
from weft.ir.program import Program
from weft.render.llvm.renderer import render
from weft.runtime.llvm.compiler import compile_ptx
from weft.schedule.schedule import make_schedule
from weft.support.settings import Context
from weft.target.cuda import cuda_target

TARGET = cuda_target("sm_90a")
BF16, F16, F32 = dtypes.bfloat16, dtypes.float16, dtypes.float32


def program(out: Tensor, dtype: DType, shape: tuple[int, ...]) -> Program:
    graph = sink(store(param(9, dtype, shape), out.uop))
    (call,) = make_schedule(graph, TARGET).kernels.src
    return generate(call.arg, TARGET)


def factor(slot: int, *shape: int, dtype: DType = BF16) -> Tensor:
    return Tensor(param(slot, dtype, shape))


def plain(m: int, n: int, k: int, layout: str = "mk,nk", dtype: DType = BF16) -> Program:
    sizes = {"m": m, "n": n, "k": k}
    x, y = (
        factor(slot, *(sizes[axis] for axis in axes), dtype=dtype)
        for slot, axes in enumerate(layout.split(","))
    )
    x = x if layout.startswith("mk") else x.T
    y = y if layout.endswith("kn") else y.T
    return program(x @ y, dtype, (m, n))


def fused() -> Program:
    x, y, bias, rest = (
        factor(0, 512, 768),
        factor(1, 1024, 768),
        factor(2, 1024),
        factor(3, 512, 1024),
    )
    return program((x @ y.T + bias).relu() + rest, BF16, (512, 1024))


def gelu() -> Program:
    x, y, bias = factor(0, 4096, 4096), factor(1, 4096, 4096), factor(2, 4096)
    return program((x @ y.T + bias).gelu(), BF16, (4096, 4096))


def attention(size: int, heads: int, causal: bool, tokens: int = 2048) -> Program:
    q = factor(0, 2, 8, tokens, size)
    k, v = (factor(slot, 2, heads, tokens, size) for slot in (1, 2))
    out = q.scaled_dot_product_attention(k, v, is_causal=causal, enable_gqa=heads < 8)
    with Context(FUSE_PRODUCTS="always"):
        return program(out, BF16, (2, 8, tokens, size))


def with_a_mask() -> Program:
    q, k, v = (factor(slot, 2, 8, 1024, 64) for slot in range(3))
    mask = factor(3, 1024, 1024, dtype=dtypes.bool)
    with Context(FUSE_PRODUCTS="always"):
        return program(
            q.scaled_dot_product_attention(k, v, attn_mask=mask), BF16, (2, 8, 1024, 64)
        )


# The program, and the registers that a thread may have: 65,536 are shared by those of a group.
CASES = {
    "4096": (lambda: plain(4096, 4096, 4096), 168),
    "4096 km,kn": (lambda: plain(4096, 4096, 4096, "km,kn"), 168),
    "4096 float16": (lambda: plain(4096, 4096, 4096, dtype=F16), 168),
    "odd sizes": (lambda: plain(1000, 1032, 1096), 255),
    "odd columns": (lambda: plain(333, 1001, 136), 255),
    "batch": (
        lambda: program(
            factor(0, 3, 5, 200, 72) @ factor(1, 3, 5, 72, 136), BF16, (3, 5, 200, 136)
        ),
        255,
    ),
    "bias, relu, residual": (fused, 255),
    "gelu": (gelu, 192),  # in float32, rounded once; one group of 256 threads may have 255
    "float32 out": (
        lambda: program((factor(0, 512, 768) @ factor(1, 1024, 768).T).float(), F32, (512, 1024)),
        255,
    ),
    "causal attention, heads of 128": (lambda: attention(128, 8, True), 255),
    "attention, heads of 64": (lambda: attention(64, 8, False), 255),
    "attention, shared keys, odd sizes": (lambda: attention(80, 2, True, 1000), 255),
    "attention with a mask in memory": (with_a_mask, 255),
}


@pytest.mark.parametrize("name", CASES)
def test_the_assembler_spills_nothing_and_serializes_nothing(name: str, tmp_path: Path):
    assembler = ptxas()
    if assembler is None:
        pytest.skip("ptxas is not installed")
    make, most = CASES[name]
    code = make()
    text = compile_ptx(render(code, TARGET), TARGET)
    (tmp_path / "kernel.ptx").write_text(text)
    command = [assembler, "-arch=sm_90a", "-O3", "-v", "kernel.ptx", "-o", "kernel.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in done.stderr
    assert "C75" not in done.stderr, "the assembler lets multiplications wait for each other"
    registers = int(re.search(r"Used (\d+) registers", done.stderr)[1])
    assert registers <= most


def test_scores_of_attention_stay_in_registers():
    text = compile_ptx(render(attention(128, 8, True), TARGET), TARGET)
    assert text.count("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16") == 24
    assert text.count("ex2.approx.ftz.f32") <= 64 + 4  # of a weight, and of what is left of sums
    assert "st.local" not in text and "ld.local" not in text and "st.shared" not in text


def test_the_instructions_of_a_large_product():
    text = compile_ptx(render(plain(4096, 4096, 4096), TARGET), TARGET)
    assert text.count("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16") == 4
    assert text.count("cp.async.bulk.tensor.2d") == 2 * 4  # three steps ahead, and one in the loop
    assert text.count("bar.sync") == 2
    assert text.count("cvt.rn.bf16x2.f32") == 64 and text.count("shfl.sync") == 64
    assert text.count("st.global.v4.b32") == 16 and "st.global.b16" not in text
    assert "st.local" not in text and "ld.local" not in text

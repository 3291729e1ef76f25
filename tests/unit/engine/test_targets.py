"""Targets by name, and NULL instead of a machine that is not here."""

import numpy as np
import pytest

from weft import Context, GlobalCounters, Tensor, jit
from weft.engine.devices import canonical_name, device, is_computing
from weft.engine.targets import find_target, renderer_of
from weft.support.errors import UnknownName

NAMES = ["CPU:LLVM:x86_64,avx2", "CUDA:PTX:sm_90a", "CUDA:PTX:sm_80", "C", "OPENCL"]


@pytest.mark.parametrize("name", NAMES)
def test_a_target_has_a_renderer(name: str):
    target = find_target(name)
    assert target.name.startswith(name)
    assert callable(renderer_of(target))


def test_an_unknown_target_lists_the_kinds():
    with pytest.raises(UnknownName, match="there is no target 'TPU:x'"):
        find_target("TPU:x")


@pytest.mark.parametrize("name", NAMES)
def test_null_plays_a_machine(name: str):
    played = f"NULL:{name}"
    assert canonical_name(f"null:{name}") == played
    assert device(played).target.name.startswith(name)
    x = Tensor(np.ones((64, 64), np.float32), device=played).realize()
    GlobalCounters.reset()
    step = jit(lambda x: (x @ x).relu().softmax())
    step(x), step(x)
    assert GlobalCounters.kernel_count == 4
    assert GlobalCounters.global_ops > 2 * 2 * 64**3


def test_null_makes_the_source_of_the_machine(capsys: pytest.CaptureFixture[str]):
    with Context(DEBUG=4):
        Tensor.empty(4096, device="NULL:CUDA:PTX:sm_90a").exp().realize()
    assert "llvm.nvvm" in capsys.readouterr().out


def test_files_cannot_name_a_machine():
    assert is_computing("NULL:1")
    assert not is_computing("NULL:CUDA:PTX:sm_90a")


def test_null_prints_the_least_time_of_the_machine(capsys: pytest.CaptureFixture[str]):
    def least(dtype: str) -> float:
        x = Tensor.empty(4096, 4096, dtype=dtype, device="NULL:CUDA:PTX:sm_90a")
        with Context(DEBUG=2):
            (x @ x).realize()
        return float(capsys.readouterr().out.split(" us")[0].split()[-1])

    peak = find_target("CUDA:PTX:sm_90a").peaks.operations
    assert least("float32") == pytest.approx(2e6 * 4096**3 / peak, rel=1e-3)
    # Products of small floats run on matrix units, which do many times as much.
    assert least("bfloat16") < least("float32") / 10

"""The targets of NVIDIA GPUs by name."""

import pytest

from weft.support.errors import UnknownName
from weft.target.cuda import cuda_target, parse_cuda


def test_a_target_by_its_arch():
    target = cuda_target("sm_90a")
    assert target.name == "CUDA:PTX:sm_90a"
    assert target.has_groups
    assert target.grid.group_threads == 1024
    assert parse_cuda("CUDA:PTX:sm_90a") == parse_cuda("sm_90a") == target


@pytest.mark.parametrize("text", ["sm90", "sm_9", "gfx942", "", "CPU:LLVM:x86_64"])
def test_unknown_names_are_refused(text: str):
    with pytest.raises(UnknownName):
        parse_cuda(text)

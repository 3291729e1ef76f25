"""Each target of LLVM has a row with what its back end needs."""

import pytest

from weft.support.errors import UnknownName
from weft.target.c import c_target
from weft.target.cpu import LEVELS, cpu_target
from weft.target.cuda import cuda_target
from weft.target.llvm import BACKENDS, KERNEL, SLICE, backend_of


@pytest.mark.parametrize("arch", LEVELS)
def test_every_cpu_has_a_row_with_its_features(arch: str) -> None:
    backend = backend_of(cpu_target(arch))
    assert backend is BACKENDS[arch] and backend.entry == SLICE
    assert list(backend.cpus) == list(LEVELS[arch])  # the best first, as in the target


def test_ptx_is_entered_by_every_thread() -> None:
    backend = backend_of(cuda_target("sm_80"))
    assert backend.entry == KERNEL and not backend.has_vectors
    assert set(backend.counters) == {"group", "thread"} and backend.barrier


def test_other_targets_have_none() -> None:
    with pytest.raises(UnknownName, match="expected a target of one of its back ends"):
        backend_of(c_target())

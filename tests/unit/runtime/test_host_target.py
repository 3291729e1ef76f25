"""The target of the CPU can be chosen by its name."""

import pytest

from weft import Context, DeviceError
from weft.runtime import host as module
from weft.runtime.host import Host, host_target


def test_a_target_by_name() -> None:
    with Context(TARGET="CPU:LLVM:x86_64,avx2"):
        chosen = host_target(3)
    assert chosen.name == "CPU:LLVM:x86_64,avx2"
    assert chosen.access_bits == 256
    assert chosen.units == 3
    here = host_target()
    assert [cache.size for cache in chosen.caches] == [cache.size for cache in here.caches]


# What a machine has, what is asked for, and whether its code runs there.
MACHINES = [
    (("x86_64", ("avx512f",)), "x86_64,avx512f", True),
    (("x86_64", ("avx512f",)), "x86_64,avx2", True),
    (("x86_64", ("avx512f",)), "CPU:LLVM:x86_64", True),
    (("x86_64", ("avx2",)), "x86_64,avx512f", False),
    (("x86_64", ()), "x86_64,avx2", False),
    (("x86_64", ("avx2",)), "CPU:LLVM:aarch64", False),
    (("aarch64", ()), "aarch64", True),
    (("aarch64", ()), "x86_64", False),
    (("aarch64", ()), "x86_64,avx2", False),
]


@pytest.mark.parametrize(("machine", "target", "runs"), MACHINES)
def test_code_that_would_crash_here_is_refused(machine, target, runs, monkeypatch):
    arch, features = machine
    here = Host(arch, "some", features, 2, (1 << 15, 1 << 20, 1 << 24))
    monkeypatch.setattr(module, "host", lambda: here)
    with Context(TARGET=target):
        if runs:
            assert host_target().arch == target.rpartition(":")[2]
            return
        with pytest.raises(DeviceError, match="TARGET: this machine does not run") as caught:
            host_target()
    assert "TARGET=CPU:LLVM:" + ",".join((arch, *features)) in str(caught.value)

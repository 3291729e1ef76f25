"""The target of the CPU can be chosen by its name."""

from weft import Context
from weft.runtime.host import host_target


def test_a_target_by_name() -> None:
    with Context(TARGET="CPU:LLVM:x86_64,avx2"):
        chosen = host_target(3)
    assert chosen.name == "CPU:LLVM:x86_64,avx2"
    assert chosen.access_bits == 256
    assert chosen.units == 3
    here = host_target()
    assert [cache.size for cache in chosen.caches] == [cache.size for cache in here.caches]

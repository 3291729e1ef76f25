"""The target of the CPU can be chosen by its name."""

from weft import Context
from weft.runtime.host import host_target


def test_a_target_by_name() -> None:
    with Context(TARGET="CPU:LLVM:x86_64,avx2"):
        chosen = host_target(3)
    assert chosen.name == "CPU:LLVM:x86_64,avx2"
    assert chosen.vector_bits == 256
    assert chosen.threads == 3
    assert chosen.cache_bytes == host_target().cache_bytes

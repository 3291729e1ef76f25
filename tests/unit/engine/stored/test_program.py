"""A compiled program comes back from its bytes with all that a launch needs."""

from dataclasses import replace

from tests.unit.codegen.products import product
from weft.codegen.generate import generate
from weft.codegen.opts.table import TensorCore
from weft.engine.stored.program import pack, unpack
from weft.target.cuda import cuda_target


def test_tensor_maps_and_local_memory_come_back():
    kernel = product(64, 64, 64).kernel
    made = generate(kernel, cuda_target("sm_90a"), (TensorCore(0, 1, 2, (64, 64, 128), 2),))
    again = unpack(pack(made.with_binary(b"code\0more")))
    assert len(made.maps) == 2 and made.dynamic_bytes > 0
    assert again == replace(made, instructions=again.instructions, binary=b"code\0more")

"""The GPUs of this machine: how many there are, and what each can do."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from typing import Any, Final

from weft.runtime.cuda.driver import INVALID_VALUE, driver_version, require_success
from weft.support.errors import DeviceError

_GRID_X: Final = 5
_PROCESSORS: Final = 16
_L2_BYTES: Final = 38
_MAJOR: Final = 75
_MINOR: Final = 76
_SHARED_BYTES: Final = 97
_HAS_POOLS: Final = 115
LEAST_CAPABILITY: Final = (7, 0)
# The newest capability that LLVM writes code for; a newer GPU runs the code of an older one.
NEWEST: Final = (12, 0)


@dataclass(frozen=True)
class CudaGpu:
    """One GPU, as the driver describes it."""

    number: int
    name: str
    capability: tuple[int, int]
    memory: int
    processors: int
    l2_bytes: int
    shared_bytes: int
    grid_limits: tuple[int, int, int]
    has_pools: bool
    driver: int

    @property
    def arch(self) -> str:
        """The architecture that code is made for."""
        return arch_of(self.capability)


def arch_of(capability: tuple[int, int]) -> str:
    """The name of the code that a GPU of this capability runs best.

    Hopper and its followers have instructions of their own, which only code with an `a` has.

    >>> arch_of((8, 6)), arch_of((9, 0)), arch_of((13, 0))
    ('sm_86', 'sm_90a', 'sm_120')
    """
    if capability > NEWEST:
        return f"sm_{NEWEST[0]}{NEWEST[1]}"
    major, minor = capability
    return f"sm_{major}{minor}{'a' if capability == (9, 0) else ''}"


def gpu_count(api: Any) -> int:
    """How many GPUs this process may use."""
    count = ctypes.c_int()
    require_success(api, api.cuDeviceGetCount(ctypes.byref(count)), "counting the GPUs")
    return count.value


def number_of(name: str) -> int:
    """The number in the name of a device.

    >>> number_of("CUDA"), number_of("CUDA:1")
    (0, 1)
    """
    number = name.partition(":")[2] or "0"
    if not re.fullmatch(r"\d+", number):
        raise DeviceError(
            f"{name}: {number!r} is not the number of a GPU",
            rule="a GPU is CUDA or CUDA:number, counted from 0",
        )
    return int(number)


def require_gpu(api: Any, number: int) -> CudaGpu:
    """The GPU of this number."""
    device = ctypes.c_int()
    code = api.cuDeviceGet(ctypes.byref(device), number)
    count = gpu_count(api)
    if code == INVALID_VALUE or number >= count:
        raise DeviceError(
            f"CUDA:{number} does not exist",
            facts=[(f"CUDA:{each}", _name(api, each)) for each in range(count)],
            rule="GPUs are numbered from 0 in the order of the driver",
        )
    require_success(api, code, f"opening GPU {number}")
    gpu = _described(api, device.value, number)
    if gpu.capability < LEAST_CAPABILITY:
        raise DeviceError(
            f"CUDA: {gpu.name} is too old, its compute capability is {gpu.capability}",
            rule=f"expected a GPU of capability {LEAST_CAPABILITY} (Volta) or newer",
        )
    return gpu


def _described(api: Any, device: int, number: int) -> CudaGpu:
    def attribute(which: int) -> int:
        value = ctypes.c_int()
        code = api.cuDeviceGetAttribute(ctypes.byref(value), which, device)
        require_success(api, code, f"asking for attribute {which}")
        return value.value

    memory = ctypes.c_size_t()
    require_success(
        api, api.cuDeviceTotalMem_v2(ctypes.byref(memory), device), "asking for memory"
    )
    return CudaGpu(
        number=number,
        name=_name(api, device),
        capability=(attribute(_MAJOR), attribute(_MINOR)),
        memory=memory.value,
        processors=attribute(_PROCESSORS),
        l2_bytes=attribute(_L2_BYTES),
        shared_bytes=attribute(_SHARED_BYTES),
        grid_limits=(attribute(_GRID_X), attribute(_GRID_X + 1), attribute(_GRID_X + 2)),
        has_pools=bool(attribute(_HAS_POOLS)),
        driver=driver_version(api),
    )


def _name(api: Any, device: int) -> str:
    text = ctypes.create_string_buffer(256)
    require_success(api, api.cuDeviceGetName(text, len(text), device), "asking for a name")
    return text.value.decode(errors="replace")

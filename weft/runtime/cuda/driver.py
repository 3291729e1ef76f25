"""The functions of the CUDA driver that Weft calls, through ctypes.

Only the driver is needed, which every machine with an NVIDIA GPU has: no toolkit, no Python
package. `load_driver` finds it once, checks its version and starts it. All functions return a
code, 0 for success; `describe` says what another one means. Tests put an object with the same
functions instead of a `Driver`.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any, Final

from weft.support.errors import DeviceError

_P, _I, _U, _Z = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t
_A, _L, _S = ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p  # an address, flags, a text

SIGNATURES: Final[dict[str, tuple[Any, ...]]] = {
    "cuInit": (_U,),
    "cuDriverGetVersion": (_P,),
    "cuGetErrorName": (_I, _P),
    "cuGetErrorString": (_I, _P),
    # Devices and contexts.
    "cuDeviceGetCount": (_P,),
    "cuDeviceGet": (_P, _I),
    "cuDeviceGetName": (_P, _I, _I),
    "cuDeviceGetAttribute": (_P, _I, _I),
    "cuDeviceTotalMem_v2": (_P, _I),
    "cuDeviceCanAccessPeer": (_P, _I, _I),
    "cuDevicePrimaryCtxRetain": (_P, _I),
    "cuCtxSetCurrent": (_P,),
    # Memory.
    "cuMemGetInfo_v2": (_P, _P),
    "cuMemAlloc_v2": (_P, _Z),
    "cuMemFree_v2": (_A,),
    "cuMemHostAlloc": (_P, _Z, _U),
    "cuMemFreeHost": (_P,),
    "cuMemPoolCreate": (_P, _P),
    "cuMemPoolSetAttribute": (_P, _I, _P),
    "cuMemPoolGetAttribute": (_P, _I, _P),
    "cuMemPoolSetAccess": (_P, _P, _Z),
    "cuMemPoolTrimTo": (_P, _Z),
    "cuMemAllocFromPoolAsync": (_P, _Z, _P, _P),
    "cuMemFreeAsync": (_A, _P),
    "cuMemcpyHtoDAsync_v2": (_A, _P, _Z, _P),
    "cuMemcpyDtoHAsync_v2": (_P, _A, _Z, _P),
    "cuMemcpyDtoDAsync_v2": (_A, _A, _Z, _P),
    "cuMemcpyPeerAsync": (_A, _P, _A, _P, _Z, _P),
    "cuPointerGetAttribute": (_P, _I, _A),
    # Streams and events.
    "cuStreamCreate": (_P, _U),
    "cuStreamQuery": (_P,),
    "cuStreamWaitEvent": (_P, _P, _U),
    "cuStreamWriteValue32_v2": (_P, _A, ctypes.c_uint32, _U),
    "cuEventCreate": (_P, _U),
    "cuEventDestroy_v2": (_P,),
    "cuEventRecord": (_P, _P),
    "cuEventQuery": (_P,),
    "cuEventElapsedTime": (_P, _P, _P),
    # Programs.
    "cuLinkCreate_v2": (_U, _P, _P, _P),
    "cuLinkAddData_v2": (_P, _I, _P, _Z, _S, _U, _P, _P),
    "cuLinkComplete": (_P, _P, _P),
    "cuLinkDestroy": (_P,),
    "cuModuleLoadData": (_P, _P),
    "cuModuleUnload": (_P,),
    "cuModuleGetFunction": (_P, _P, _S),
    "cuFuncGetAttribute": (_P, _I, _P),
    "cuFuncSetAttribute": (_P, _I, _I),
    "cuTensorMapEncodeTiled": (_P, _I, _U, _A, _P, _P, _P, _P, _I, _I, _I, _I),
    "cuLaunchKernel": (_P, _U, _U, _U, _U, _U, _U, _U, _P, _P, _P),
    # Graphs.
    "cuGraphCreate": (_P, _U),
    "cuGraphDestroy": (_P,),
    "cuGraphAddKernelNode_v2": (_P, _P, _P, _Z, _P),
    "cuGraphAddDependencies_v2": (_P, _P, _P, _P, _Z),
    "cuGraphInstantiateWithFlags": (_P, _P, _L),
    "cuGraphExecKernelNodeSetParams_v2": (_P, _P, _P),
    "cuGraphNodeSetEnabled": (_P, _P, _U),
    "cuGraphExecDestroy": (_P,),
    "cuGraphUpload": (_P, _P),
    "cuGraphLaunch": (_P, _P),
}

# What drivers from CUDA 12.3 on have; None stands for what is not there.
LATER: Final = frozenset(("cuGraphAddDependencies_v2",))
# The oldest driver that has all others, and takes kernels with more than 4 KB of arguments.
LEAST_VERSION: Final = (12, 1)
SUCCESS: Final = 0
INVALID_VALUE: Final = 1
OUT_OF_MEMORY: Final = 2
NO_DEVICE: Final = 100
INVALID_PTX: Final = 218
NOT_READY: Final = 600
NOT_SUPPORTED: Final = 801
# Why a driver that is there does not start.
_START_FIXES: Final = {
    NO_DEVICE: "nvidia-smi lists the GPUs; CUDA_VISIBLE_DEVICES may hide them",
    101: "CUDA_VISIBLE_DEVICES names a GPU that is not there",
    802: "the system is still starting its GPUs; try again in a moment",
    803: "the driver's library and its kernel module differ: restart the machine",
    804: "this GPU needs a newer driver",
}
_NAMES: Final = (
    ("nvcuda.dll",)
    if sys.platform == "win32"
    else ("libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1")
)


class Driver:
    """The functions by their names, each with the types of its arguments."""

    def __init__(self, library: Any) -> None:
        for name, arguments in SIGNATURES.items():
            function = getattr(library, name, None) if name in LATER else getattr(library, name)
            if function is None:
                setattr(self, name, None)
                continue
            function.argtypes, function.restype = arguments, _I
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:  # for the type checker; all are set above
        raise AttributeError(name)


def describe(api: Any, code: int) -> str:
    """A code in words: its name, its number and what the driver says of it."""
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    api.cuGetErrorName(code, ctypes.byref(name))
    api.cuGetErrorString(code, ctypes.byref(text))
    return f"{(name.value or b'unknown error').decode()} ({code}), {(text.value or b'').decode()}"


def require_success(api: Any, code: int, what: str) -> None:
    """Raise for a code that says that a call failed."""
    if code != SUCCESS:
        raise DeviceError(f"CUDA: {what} failed", facts=[("the driver says", describe(api, code))])


@functools.cache
def load_driver() -> Driver:
    """The driver of this machine, started."""
    library = _library()
    version = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    require_version(version.value)
    try:
        driver = Driver(library)
    except AttributeError as error:
        raise DeviceError(
            "CUDA: the driver lacks a function",
            facts=[("reason", str(error)), ("CUDA of the driver", version_text(version.value))],
            fix="install a newer NVIDIA driver",
        ) from None
    require_started(driver, driver.cuInit(0))
    return driver


def _library() -> Any:
    reasons: list[str] = []
    for name in _NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
    raise DeviceError(
        "CUDA: there is no NVIDIA driver",
        facts=[("reason", reasons[0])],
        rule="the device CUDA needs an NVIDIA GPU and its driver, and nothing else",
        fix="install the driver (nvidia-smi shows that it works), or use DEVICE=CPU",
    )


def version_text(version: int) -> str:
    """The driver's number of a version of CUDA as it is written.

    >>> version_text(12040)
    '12.4'
    """
    return f"{version // 1000}.{version % 1000 // 10}"


def require_version(version: int) -> None:
    """Raise for a driver that is too old."""
    if (version // 1000, version % 1000 // 10) < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        raise DeviceError(
            f"CUDA: the driver is too old, it is for CUDA {version_text(version)}",
            rule=f"expected a driver for CUDA {least} or newer, got {version_text(version)}",
            fix="install NVIDIA driver 530 or newer",
        )


def require_started(driver: Any, code: int) -> None:
    """Raise for the code of a driver that does not start."""
    if code == SUCCESS:
        return
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    facts = [("the driver says", describe(driver, code))]
    if hidden is not None:
        facts.append(("CUDA_VISIBLE_DEVICES", repr(hidden)))
    what = "there is no GPU" if code == NO_DEVICE else "the driver does not start"
    raise DeviceError(
        f"CUDA: {what}",
        facts=facts,
        rule="the device CUDA needs an NVIDIA GPU and its driver",
        fix=_START_FIXES.get(code, "nvidia-smi says what is wrong"),
    )


def driver_version(api: Any) -> int:
    """The version of CUDA that the driver is for, 13000 for 13.0."""
    version = ctypes.c_int()
    require_success(api, api.cuDriverGetVersion(ctypes.byref(version)), "asking for the version")
    return version.value

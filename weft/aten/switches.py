"""Settings by PyTorch's names: what they can mean here, or what changes nothing and may be set."""

from __future__ import annotations

from typing import Any

from weft.engine.devices import DeviceName, canonical_name, default_device
from weft.functions import set_default_dtype, set_num_threads
from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError
from weft.support.settings import Context, settings
from weft.tensor.autodiff.modes import is_grad_enabled

_PRECISIONS = ("highest", "high", "medium")
_STATE: dict[str, Any] = {"precision": "highest", "interop": 1, "warn": False, "debug": 0}


def set_default_device(device: Any) -> None:
    """Set the device of new tensors, for this thread; None is CPU. PyTorch: set_default_device."""
    Context(DEVICE="" if device is None else canonical_name(str(device))).apply()


def get_default_device() -> Any:
    """The device of new tensors. PyTorch: get_default_device."""
    return DeviceName(default_device())


def set_float32_matmul_precision(precision: str) -> None:
    """Accept a precision: products of float32 are computed in float32 anyway."""
    if precision not in _PRECISIONS:
        raise ArgumentError(
            f"set_float32_matmul_precision: {precision!r}", rule="it is highest, high or medium"
        )
    _STATE["precision"] = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was called with."""
    return str(_STATE["precision"])


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Look for NaN and infinities where they are made, as `CHECK=nan` does, in this thread."""
    others = [each for each in settings.CHECK.split(",") if each and each != "nan"]
    Context(CHECK=",".join([*others, *(["nan"] if mode and check_nan else [])])).apply()


def is_anomaly_enabled() -> bool:
    """Whether NaN and infinities are looked for."""
    return "nan" in settings.CHECK.split(",")


is_anomaly_check_nan_enabled = is_anomaly_enabled


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by a name such as "torch.FloatTensor"."""
    name = t if isinstance(t, str) else getattr(t, "__name__", str(t))
    kinds = {
        "FloatTensor": dtypes.float32,
        "DoubleTensor": dtypes.float64,
        "HalfTensor": dtypes.float16,
        "BFloat16Tensor": dtypes.bfloat16,
    }
    short = name.rpartition(".")[2]
    if short not in kinds:
        raise ArgumentError(f"set_default_tensor_type: {name}", rule="it is " + ", ".join(kinds))
    set_default_dtype(kinds[short])


def set_num_interop_threads(number: int) -> None:
    """Accept a number: kernels run one after the other, each on `set_num_threads` threads."""
    _STATE["interop"] = int(number)


def get_num_interop_threads() -> int:
    """What `set_num_interop_threads` was called with."""
    return int(_STATE["interop"])


def init_num_threads() -> None:
    """Let kernels use as many threads as there are cores."""
    set_num_threads(0)


def set_flush_denormal(mode: bool) -> bool:
    """Return False: denormal numbers are computed with, on every device."""
    return False


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Accept a mode: the same program computes the same bits."""
    names = {"default": 0, "warn": 1, "error": 2}
    _STATE["debug"] = names[debug_mode] if isinstance(debug_mode, str) else int(debug_mode)


def get_deterministic_debug_mode() -> int:
    """What `set_deterministic_debug_mode` was called with."""
    return int(_STATE["debug"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """No: nothing has to be warned of."""
    return False


def set_warn_always(b: bool) -> None:
    """Accept a switch: Python's filters of warnings decide."""
    _STATE["warn"] = bool(b)


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was called with."""
    return bool(_STATE["warn"])


def compiled_with_cxx11_abi() -> bool:
    """Yes: it was not compiled at all."""
    return True


def is_vulkan_available() -> bool:
    """No."""
    return False


def is_storage(obj: Any) -> bool:
    """No: a tensor has no storage that shows."""
    return False


def clear_autocast_cache() -> None:
    """Do nothing: casts are part of the graph."""


def is_inference_mode_enabled() -> bool:
    """Whether gradients are off, as `inference_mode` makes them."""
    return not is_grad_enabled()

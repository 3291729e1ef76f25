"""GPUs of this machine, with the names of torch.cuda that programs ask before they begin."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from weft.engine.devices import device
from weft.support.errors import DeviceError
from weft.support.module_names import missing_name
from weft.tensor.create.random_state import manual_seed

_missing = missing_name(__name__)


def is_available() -> bool:
    """Whether there is a GPU that works."""
    try:
        device("CUDA")
    except DeviceError:
        return False
    return True


def device_count() -> int:
    """How many GPUs there are."""
    count = 0
    try:
        while count < 64:
            device(f"CUDA:{count}")
            count += 1
    except DeviceError:
        pass
    return count


def current_device() -> int:
    """The number of the GPU that `cuda` names."""
    return 0


def synchronize(device_: Any = None) -> None:
    """Wait until a GPU has done what it was given."""
    if is_available():
        number = device_ if isinstance(device_, int) else 0
        device(f"CUDA:{number}").synchronize()


def empty_cache() -> None:
    """Do nothing: memory that is not used is given back when other memory is asked for."""


def manual_seed_all(seed: int) -> None:
    """Start the random numbers of all devices anew."""
    manual_seed(seed)


def __getattr__(name: str) -> object:
    if name == "amp":  # torch.cuda.amp is an older name of torch.amp
        return import_module("weft.amp")
    return _missing(name)

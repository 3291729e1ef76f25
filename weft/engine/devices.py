"""The devices of this process, by name. Here renderers and runtimes meet.

`device("CPU")` opens a device when it is first asked for. A name is a kind and, where a machine
has several, a number: `OPENCL:1`. The default is the setting `DEVICE`, else `CPU`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.runtime.device import Device
from weft.support.errors import DeviceError
from weft.support.message import nearest
from weft.support.settings import settings

_OPEN: Final[dict[str, Device]] = {}


def _open_python(name: str) -> Device:
    from weft.runtime.python.device import PythonDevice

    return PythonDevice(name)


def _open_cpu(name: str) -> Device:
    from weft.render.llvm import render
    from weft.runtime.cpu.device import CpuDevice
    from weft.runtime.host import host_target

    return CpuDevice(render, host_target(), name)


def _open_opencl(name: str) -> Device:
    from weft.render.opencl import render
    from weft.runtime.opencl.device import OpenclDevice

    return OpenclDevice(render, name)


def _open_null(name: str) -> Device:
    from weft.render.llvm import render
    from weft.runtime.host import host_target
    from weft.runtime.null.device import NullDevice

    return NullDevice(render, host_target(), name)


def _open_c(name: str) -> Device:
    from weft.render.c import render
    from weft.runtime.c.device import CDevice

    return CDevice(render, name)


KINDS: Final[dict[str, Callable[[str], Device]]] = {
    "CPU": _open_cpu,
    "OPENCL": _open_opencl,
    "C": _open_c,
    "PYTHON": _open_python,
    "NULL": _open_null,
}


def default_device() -> str:
    return canonical_name(settings.DEVICE or "CPU")


def canonical_name(name: str) -> str:
    """The full name of a device: kinds in capitals, number 0 left out."""
    kind, _, number = name.upper().partition(":")
    if kind not in KINDS:
        guess = nearest(kind, KINDS)
        raise DeviceError(
            f"unknown device {name!r}",
            law="the devices are " + ", ".join(KINDS),
            fix=f"write {guess!r}" if guess else "",
        )
    return kind if number in ("", "0") else f"{kind}:{number}"


def device(name: str) -> Device:
    """The device of this name, opened when first asked for."""
    found = _OPEN.get(name)
    if found is None:
        full = canonical_name(name)
        found = _OPEN.get(full) or KINDS[full.partition(":")[0]](full)
        _OPEN[full] = _OPEN[name] = found
    return found

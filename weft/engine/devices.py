"""The devices of this process, by name. Here renderers and runtimes meet.

`device("CPU")` opens a device when it is first asked for. A name is a kind and, where a machine
has several, a number: `OPENCL:1`; of `DISK`, a path; of `NULL`, perhaps the target that it plays,
as in `NULL:CUDA:PTX:sm_90a`. The default is the setting `DEVICE`, else `CPU`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from weft.ir.program import Program
from weft.runtime.device import Device as OneDevice
from weft.support.errors import DeviceError
from weft.support.message import nearest
from weft.support.settings import settings
from weft.target.target import Target

# A device, several devices, or a layout: how memory is sharded over several devices.
Placement = str | tuple[Any, ...]
_OPEN: Final[dict[str, OneDevice]] = {}


def _render_llvm(program: Program, target: Target) -> str:
    # Imported where something is to be rendered: programs on disk have been.
    from weft.render.llvm.renderer import render

    return render(program, target)


def _open_python(name: str) -> OneDevice:
    from weft.runtime.python.device import PythonDevice

    return PythonDevice(name)


def _open_cpu(name: str) -> OneDevice:
    from weft.runtime.cpu.device import CpuDevice
    from weft.runtime.host import host_target

    return CpuDevice(_render_llvm, host_target(), name)


def _open_opencl(name: str) -> OneDevice:
    from weft.render.c_family.opencl import render
    from weft.runtime.opencl.device import OpenclDevice

    return OpenclDevice(render, name)


def _open_cuda(name: str) -> OneDevice:
    from weft.runtime.cuda.device import CudaDevice

    return CudaDevice(_render_llvm, name)


def _open_null(name: str) -> OneDevice:
    from weft.engine.targets import find_target, renderer_of
    from weft.runtime.null.device import NullDevice

    rest = name.partition(":")[2]
    target = find_target("" if rest.isdecimal() else rest)
    return NullDevice(renderer_of(target), target, name)


def _open_c(name: str) -> OneDevice:
    from weft.render.c_family.c import render
    from weft.runtime.c.device import CDevice

    return CDevice(render, name)


def _open_disk(name: str) -> OneDevice:
    from weft.runtime.disk.device import DiskDevice

    return DiskDevice(name)


class DeviceKind(NamedTuple):
    """A kind of device. That of files has a path where others have a number."""

    open: Callable[[str], OneDevice]
    is_file: bool = False


KINDS: Final[dict[str, DeviceKind]] = {
    "CPU": DeviceKind(_open_cpu),
    "CUDA": DeviceKind(_open_cuda),
    "OPENCL": DeviceKind(_open_opencl),
    "C": DeviceKind(_open_c),
    "PYTHON": DeviceKind(_open_python),
    "NULL": DeviceKind(_open_null),
    "DISK": DeviceKind(_open_disk, is_file=True),
}
HOST: Final = "CPU"  # the device that every machine has
_FILES: Final = tuple(name for name, kind in KINDS.items() if kind.is_file)


def default_device() -> str:
    """The name of the device of a new tensor."""
    chosen, when = _CHOSEN
    asked = settings.DEVICE
    return canonical_name((chosen if chosen and asked == when else asked) or HOST)


# The device that `Device.DEFAULT` was set to, and what the setting said then: a Context that
# changes the setting later wins.
_CHOSEN: list[str] = ["", ""]


class Devices:
    """All devices, as `Device`: `Device["CPU"]` opens one, `Device.DEFAULT` names the default.

    >>> Device.DEFAULT in Device
    True
    >>> Device.canonicalize("cpu:0")
    'CPU'
    """

    __slots__ = ()

    def __getitem__(self, name: str) -> OneDevice:
        return device(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.upper().partition(":")[0] in KINDS

    def __iter__(self) -> Iterator[str]:
        return iter(KINDS)

    def __repr__(self) -> str:
        return f"<devices {', '.join(KINDS)}; default {self.DEFAULT}>"

    @property
    def DEFAULT(self) -> str:  # noqa: N802 -- the public name
        """The device of a new tensor; it may be set."""
        return default_device()

    @DEFAULT.setter
    def DEFAULT(self, name: str) -> None:  # noqa: N802
        _CHOSEN[:] = [canonical_name(name), settings.DEVICE]

    def canonicalize(self, name: str | None) -> str:
        """The full name of a device; that of the default for None."""
        return default_device() if name is None else canonical_name(name)


def is_computing(name: object) -> bool:
    """Whether something names a device that computes: a kind and a number, and no file.

    What a file or a message says is asked this before a device of that name is opened.

    >>> is_computing("CPU:1"), is_computing("DISK:notes.txt"), is_computing("CPU:x")
    (True, False, False)
    """
    kind, _, number = name.partition(":") if isinstance(name, str) else ("", "", "")
    known = KINDS.get(kind.upper())
    is_number = number.isdecimal() and number.isascii()
    return known is not None and not known.is_file and (is_number or not number)


def canonical_name(name: str) -> str:
    """The full name of a device: kinds in capitals, number 0 left out."""
    kind, _, number = name.partition(":")
    kind = kind.upper()
    if kind not in KINDS:
        guess = nearest(kind, KINDS)
        raise DeviceError(
            f"unknown device {name!r}",
            rule="the devices are " + ", ".join(KINDS),
            fix=f"write {guess!r}" if guess else "",
        )
    if number and KINDS[kind].is_file:  # a path, which means the same in every folder
        return f"{kind}:{os.path.abspath(number)}"
    return kind if number in ("", "0") else f"{kind}:{number}"


class DeviceName(str):
    """The full name of a device, with its kind as `type` and its number as `index`.

    >>> DeviceName("cuda:1"), DeviceName("cpu").type, DeviceName("cuda", 1).index
    ('CUDA:1', 'cpu', 1)
    """

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """A string, for whoever asks: args of nodes are told apart by their class."""
        return str

    def __new__(cls, type: str, index: int | None = None) -> DeviceName:
        given = type if index is None else f"{type}:{index}"
        return super().__new__(cls, canonical_name(given))

    @property
    def type(self) -> str:
        """The kind of the device, in small letters."""
        return self.partition(":")[0].lower()

    @property
    def index(self) -> int | None:  # type: ignore[override]  # a name is not searched
        """The number of the device, None where it is the only one."""
        number = self.partition(":")[2]
        return int(number) if number.isdecimal() else None

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


class _Names(dict[Any, Any]):
    """Device names by plain names; several devices are themselves."""

    def __missing__(self, name: Any) -> Any:
        if not isinstance(name, str) or is_file(name):
            return name
        self[name] = found = DeviceName(name)
        return found


DEVICE_NAMES: Final = _Names()


def canonical_placement(placement: Placement) -> Any:
    """The full name of a device; of several devices, a layout, whole on each unless it says more.

    >>> canonical_placement(("CPU:0", "CPU:1"))
    (('CPU', 'CPU:1'), None, ())
    """
    if isinstance(placement, str):
        return canonical_name(placement)
    is_layout = placement and not isinstance(placement[0], str)
    devices, axis, sizes = placement if is_layout else (placement, None, ())
    return tuple(map(canonical_name, devices)), axis, sizes


def is_file(placement: Placement) -> bool:
    """Whether the device of this full name is a file."""
    return isinstance(placement, str) and placement.startswith(_FILES)


def device(name: str) -> OneDevice:
    """The device of this name, opened when first asked for."""
    found = _OPEN.get(name)
    if found is None:
        full = canonical_name(name)
        kind = KINDS[full.partition(":")[0]]
        if kind.is_file:  # as many as there are files, and nothing to keep open
            return kind.open(full)
        found = _OPEN.get(full) or kind.open(full)
        _OPEN[full] = _OPEN[name] = found
    return found


def open_devices() -> list[OneDevice]:
    """The devices that this process has used, each once."""
    return list(dict.fromkeys(list(_OPEN.values())))


Device: Final = Devices()

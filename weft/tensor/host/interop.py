"""Tensors and other libraries: shared memory, DLPack, torch, pickles and copies.

`Tensor(array)` copies, so that later writes to the array change no value. `from_numpy`,
`from_blob` and `from_dlpack` share memory on the CPU: writes of either side are seen by the other,
and by what is still to be computed. What Weft hands out (`numpy`, `__dlpack__`) is a view that
nobody changes: before Weft writes to such memory it moves to other memory.
"""

from __future__ import annotations

import math
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.engine.buffers import buffer_of
from weft.engine.contents import adopted_buffer, buffer_from, shared_buffer
from weft.engine.devices import Device, canonical_name
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.runtime.device import Device as OneDevice
from weft.runtime.device import ForeignMemory
from weft.support.errors import ArgumentError, ArgumentTypeError, NotSupported
from weft.tensor.checks import ints_of, known, shape_from
from weft.tensor.core import realize_all
from weft.tensor.create.creation import constant, device_name
from weft.tensor.host import dlpack
from weft.tensor.host.convert import dtype_of
from weft.tensor.host.host_data import dtype_of_array
from weft.tensor.host.values import stored_array

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def from_numpy(
    cls: type[Tensor],
    array: Any,
    device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Make a tensor that shares the memory of a NumPy array, where the device can.

    An array with gaps, another byte order or that may not be written is copied, and so is one for
    a device with memory of its own. PyTorch: from_numpy.

    >>> import numpy as np
    >>> from weft.tensor import Tensor
    >>> array = np.array([1, 2, 3], dtype=np.int32)
    >>> x = Tensor.from_numpy(array)
    >>> array[0] = 7
    >>> x.tolist()
    [7, 2, 3]
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(
            f"from_numpy: expected a NumPy array, got {type(array).__name__}",
            rule="from_numpy shares the memory of an array",
            fix="use Tensor(data), which copies",
        )
    name = device_name(device)
    dtype = dtype_of_array(array)
    fits = array.flags.c_contiguous and array.flags.writeable and array.flags.aligned
    if not fits or not array.dtype.isnative or not array.size:
        return cls(array, device=name, requires_grad=requires_grad)
    raw: Any = array.reshape(-1).view(np.uint8)
    node = shared_buffer(dtype, array.shape, name, memoryview(raw), array)
    if node is None:
        return cls(array, device=name, requires_grad=requires_grad)
    return constant(cls, node, name, requires_grad)


def from_blob(
    cls: type[Tensor],
    ptr: int,
    shape: Any,
    dtype: DType | str | None = None,
    device: str | None = None,
) -> Tensor:
    """Make a tensor of memory at an address, without a copy; the caller keeps it alive.

    >>> import numpy as np
    >>> from weft.tensor import Tensor
    >>> array = np.array([1.0, 2.0], dtype=np.float32)
    >>> Tensor.from_blob(array.ctypes.data, (2,)).tolist()
    [1.0, 2.0]
    """
    name = device_name(device)
    target = dtype_of(dtype, dtypes.default_float)
    sizes = tuple(known(size) for size in shape_from("from_blob", ints_of("from_blob", shape, ())))
    count = math.prod(sizes) * target.itemsize
    if not ptr and count:
        raise ArgumentError("from_blob: the address is 0", rule="there is memory at the address")
    raw = dlpack.bytes_at(ptr, count)
    node = shared_buffer(target, sizes, name, memoryview(raw), raw) if count else None
    if node is None:
        node = buffer_from(target, sizes, name, memoryview(raw))
    return constant(cls, node, name, None)


def from_dlpack(cls: type[Tensor], x: Any, device: str | None = None) -> Tensor:
    """Make a tensor of anything with `__dlpack__`, sharing its memory where it can.

    Memory of the CPU and of NVIDIA GPUs is shared; the tensor is on the device that has it, or is
    copied to the one that is asked for. PyTorch and NumPy: from_dlpack.

    >>> import numpy as np
    >>> from weft.tensor import Tensor
    >>> Tensor.from_dlpack(np.arange(3.0)).tolist()
    [0.0, 1.0, 2.0]
    """
    kind, number = dlpack.kind_of(x)
    if kind in dlpack.GPU_KINDS:
        return _from_gpu(cls, x, f"{dlpack.GPU_KINDS[kind]}:{number}", device)
    array, dtype, is_read_only = dlpack.consume(x)
    name = device_name(device)
    raw: Any = array
    if array.flags.c_contiguous and not is_read_only and array.size:
        flat: Any = array.reshape(-1).view(np.uint8)
        node = shared_buffer(dtype, array.shape, name, memoryview(flat), array)
        if node is not None:
            return constant(cls, node, name, None)
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return constant(cls, buffer_from(dtype, array.shape, name, memoryview(raw)), name, None)


def _from_gpu(cls: type[Tensor], x: Any, owner: str, device: str | None) -> Tensor:
    """A tensor over memory of a GPU that another library owns."""
    name = canonical_name(owner)
    foreign = dlpack.consume_on_device(x, _sharing(Device[name]).stream_number)
    if not foreign.is_contiguous:
        raise NotSupported(
            f"from_dlpack: memory of {name} with gaps",
            facts=[("shape", foreign.shape)],
            rule="memory of a GPU is shared where it is contiguous",
            fix="make it contiguous first: from_dlpack(x.contiguous())",
        )
    node = adopted_buffer(foreign.dtype, foreign.shape, name, foreign.address, foreign.keep)
    shared = constant(cls, node, name, None)
    return shared if device is None or device_name(device) == name else shared.to(device)


def to_dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return a DLPack capsule of the value, as other libraries ask for it.

    It shows memory that Weft does not change any more; who writes to it changes the tensor. A
    value on an NVIDIA GPU stays there. `stream` is the number of the stream that will read it.
    """
    own = dlpack_device(self)
    wanted = own if dl_device is None else tuple(dl_device)
    if wanted not in (own, dlpack.CPU):
        raise NotSupported(
            f"__dlpack__: device {wanted}",
            rule=f"this value is handed out on the CPU, {dlpack.CPU}, or where it is, {own}",
        )
    if wanted != dlpack.CPU:
        shown = _shown_on_device(self.clone() if copy else self, own, stream)
        return dlpack.capsule_of(shown, versioned=max_version is not None)
    array = stored_array(self)
    if copy:
        array = array.copy()
    return dlpack.capsule(array, self.dtype, versioned=max_version is not None)


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """Return the DLPack name of the device on which `__dlpack__` hands out the value."""
    name = self.device
    foreign = Device[name].foreign if isinstance(name, str) else None
    return dlpack.CPU if foreign is None else foreign.dlpack_device


def _sharing(on: OneDevice) -> ForeignMemory:
    """How a device shares memory with other libraries on it."""
    if on.foreign is None:
        raise NotSupported(f"DLPack: memory of {on.name}", rule="it shares none with others")
    return on.foreign


def _shown_on_device(self: Tensor, kind: tuple[int, int], stream: int | None) -> dlpack.Shown:
    """The memory of a value on its own device; that of a view is a copy of what it shows."""
    if any(step[0] != Op.RESHAPE for step in self._steps):
        self = self.clone()
    realize_all((self,))
    memory = buffer_of(self._storage.uop)
    loan = memory.lend_handle()
    _sharing(memory.device).hand_to(stream)
    shape = tuple(known(size) for size in self.shape)
    return dlpack.Shown(
        address=loan.handle.address if math.prod(shape) else 0,
        device=kind,
        dtype=self.dtype,
        shape=shape,
        strides=tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape))),
        is_constant=False,
        keep=loan,
    )


def array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """Return the module with the functions of the array API standard, `weft.array_api`."""
    # Its package is above this one; who holds a tensor has imported `weft`, which knows it.
    found = sys.modules[__name__.partition(".")[0]].array_api
    if api_version not in (None, "2022.12", "2023.12", found.__array_api_version__):
        raise ArgumentError(
            f"__array_namespace__: version {api_version!r} of the array API standard",
            rule=f"versions up to {found.__array_api_version__} are known",
        )
    return found


def to_device(self: Tensor, device: str, /, *, stream: Any = None) -> Tensor:
    """Return the tensor on another device, by the array API standard's name.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).to_device("PYTHON").device
    'PYTHON'
    """
    if stream is not None:
        raise ArgumentError("to_device: a stream", rule="devices have one stream of their own")
    return self.to(device)


def to_torch(self: Tensor) -> Any:
    """Compute the value and return it as a new torch tensor, which shares nothing.

    `torch.from_dlpack(x)` shares memory instead.
    """
    try:
        torch = import_module("torch")
    except ImportError:
        raise NotSupported(
            "to_torch: torch is not installed", fix="install it, or use x.numpy()"
        ) from None
    return torch.from_dlpack(dlpack.capsule(stored_array(self).copy(), self.dtype))


def reduced(self: Tensor) -> tuple[Any, ...]:
    """What a pickle holds: the value as bytes, and how it was marked."""
    array = stored_array(self)
    data, shape = np.ascontiguousarray(array).tobytes(), array.shape
    return _rebuilt, (
        self.__class__,
        data,
        self.dtype.name,
        shape,
        self.device,
        self._wants,
    )


def _rebuilt(
    cls: type[Tensor],
    data: bytes,
    dtype: str,
    shape: tuple[int, ...],
    device: str,
    requires_grad: bool | None,
) -> Tensor:
    name = device_name(device)
    node = buffer_from(getattr(dtypes, dtype), shape, name, memoryview(data))
    return constant(cls, node, name, requires_grad)


def copied(self: Tensor) -> Tensor:
    """`copy.copy`: another tensor with the same storage, as in PyTorch."""
    made = self._of(self._storage, self._steps)
    made.requires_grad, made.grad = self._wants, self.grad
    return made


def deep_copied(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """`copy.deepcopy`: the value in memory of its own, marked as this is; the gradient too."""
    from copy import deepcopy

    from weft.tensor.autodiff.leaves import remember

    made = self.detach().clone()
    memo[id(self)] = made
    remember(made, self._wants)
    made.grad = deepcopy(self.grad, memo)
    return made

"""PyTorch's files: a pickle that names storages, and the bytes of those storages.

Two formats are read: the zip archive that `torch.save` writes, and the row of pickles that it
wrote before. Nothing of the file is run: `safe_pickle` builds the value, and the functions below
are all that it may call. Tensors are views of the file wherever they lie there in one run.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.io.archives import member, unzip
from weft.io.safe_pickle import Function, Unpickler
from weft.io.source import FileLike, Source
from weft.ir.arrays.values import from_storage, storage_dtype
from weft.ir.dtypes import DType, dtypes
from weft.support.errors import UsageError
from weft.tensor.tensor import Tensor

_LEGACY_MAGIC: Final = 0x1950A86A20F9469CFC6C
_MOST_ELEMENTS: Final = 1 << 62
_GATHERED_ALWAYS: Final = 256 << 20
_GATHERED_RATIO: Final = 16
_STORAGES: Final[dict[str, DType]] = {
    "DoubleStorage": dtypes.float64,
    "FloatStorage": dtypes.float32,
    "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16,
    "LongStorage": dtypes.int64,
    "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16,
    "CharStorage": dtypes.int8,
    "ByteStorage": dtypes.uint8,
    "BoolStorage": dtypes.bool,
    "UntypedStorage": dtypes.uint8,
}
_DTYPES: Final[dict[str, DType]] = {
    **{d.name: d for d in _STORAGES.values()},
    **{f"uint{bits}": getattr(dtypes, f"uint{bits}") for bits in (16, 32, 64)},
    "float8_e4m3fn": dtypes.fp8e4m3,
    "float8_e5m2": dtypes.fp8e5m2,
    "float8_e4m3fnuz": dtypes.fp8e4m3fnuz,
    "float8_e5m2fnuz": dtypes.fp8e5m2fnuz,
}


class StorageKind:
    """A type of storage or a dtype, as the pickle names it; it cannot be called."""

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def __call__(self, *arguments: Any) -> Any:
        raise ValueError("a storage is not made by a call")


class TorchStorage(NamedTuple):
    """Elements of one dtype in a source; of the legacy format, not before they are found."""

    source: Source
    offset: Callable[[], int]
    dtype: DType
    total: int


class Later(NamedTuple):
    """A tensor of a storage whose offset is not known yet."""

    storage: TorchStorage
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def torch_load(t: FileLike) -> Any:
    """Load what `torch.save` wrote: a state dict, or any nest of dicts, lists, numbers, tensors.

    A file that wants to call anything else than the makers of tensors is refused.
    """
    source = Source(t, "torch file")
    if bytes(source.bytes[:4]) == b"PK\3\4":
        return _load_zip(source)
    return _load_legacy(source)


def _load_zip(source: Source) -> Any:
    files = unzip(source)
    names = [name for name in files if name.rpartition("/")[2] == "data.pkl"]
    if len(names) != 1:
        raise source.fault("there is no data.pkl", rule="a torch file holds one value")
    root = names[0].removesuffix("data.pkl")
    order = files.get(f"{root}byteorder")
    if order is not None and bytes(order.data()) != b"little":
        raise source.fault("the numbers are big-endian", rule="little-endian files are read")
    parts: dict[str, Source] = {}

    def find(key: Any) -> TorchStorage:
        dtype, name, count = _reference(source, key)
        if name not in parts:
            parts[name] = Source(member(source, files, f"{root}data/{name}"), source.format)
        if count * dtype.itemsize > parts[name].size:
            raise source.fault(f"the storage {name!r} is too short"[:200])
        return TorchStorage(parts[name], lambda: 0, dtype, count)

    value = Unpickler(Source(files[names[0]], source.format), ALLOWED, find).load()
    return _finished(value, source)


def _reference(source: Source, key: Any) -> tuple[DType, str, int]:
    """The dtype, name and number of elements of a storage that a pickle refers to."""
    is_storage = isinstance(key, tuple) and len(key) >= 5 and key[0] == "storage"
    kind = getattr(key[1], "call", None) if is_storage else None
    if not isinstance(kind, StorageKind) or not isinstance(key[2], str) or type(key[4]) is not int:
        raise source.fault("a reference to a storage is damaged")
    source.elements((key[4],), "a storage")
    return kind.dtype, key[2], key[4]


def _load_legacy(source: Source) -> Any:
    known: dict[str, TorchStorage] = {}
    offsets: dict[str, int] = {}

    def find(key: Any) -> TorchStorage:
        dtype, name, count = _reference(source, key)
        if len(key) > 5 and key[5] is not None:
            raise source.fault(
                "a storage is a view of another", rule="save clones of such tensors"
            )
        return known.setdefault(name, TorchStorage(source, lambda: offsets[name], dtype, count))

    reader = Unpickler(source, ALLOWED, find)
    try:
        magic = reader.load()
    except UsageError:
        magic = None
    if magic != _LEGACY_MAGIC:
        raise source.fault(
            "expected a torch file", 0, "torch.save writes a zip archive or a row of pickles"
        )
    _, system = reader.load(), reader.load()
    if isinstance(system, dict) and system.get("little_endian") is False:
        raise source.fault("the numbers are big-endian", rule="little-endian files are read")
    value, names = reader.load(), reader.load()
    if not isinstance(names, list):
        raise source.fault("there is no list of storages", reader.offset)
    offset = reader.offset
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise source.fault("a storage is not used", offset)
        (count,) = source.unpack("q", offset, "the size of a storage")
        if count != known[name].total:
            raise source.fault(f"the storage {name!r} has two sizes"[:200], offset)
        offsets[name] = offset + 8
        offset += 8 + count * known[name].dtype.itemsize
        source.require_inside(offsets[name], offset - offsets[name], "a storage")
    if known.keys() - offsets.keys():
        raise source.fault("a storage is missing", offset)
    return _finished(value, source)


class _Budget:
    """The bytes that tensors with gaps may take; a file can name one storage in many of them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._room = _GATHERED_ALWAYS + _GATHERED_RATIO * source.size

    def take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise self._source.fault(
                "the tensors with gaps would take an absurd size",
                rule=f"they take at most {_GATHERED_RATIO} times the file and 256 MiB",
            )


def _finished(value: Any, source: Source) -> Any:
    """The value with its tensors made; walked without recursion, each container once."""
    made: dict[int, Any] = {}
    budget = _Budget(source)
    containers: list[Any] = []
    stack = [(value, False)]
    while stack:
        node, is_done = stack.pop()
        if isinstance(node, Later) and id(node) not in made:
            made[id(node)] = _tensor(*node, budget)
        elif isinstance(node, Function):  # of those, dtypes are values too
            made[id(node)] = node.call.dtype if isinstance(node.call, StorageKind) else None
        elif is_done:  # a tuple, after what is inside of it
            made[id(node)] = tuple(made.get(id(each), each) for each in node)
        elif type(node) in (dict, OrderedDict, list, tuple) and id(node) not in made:
            made[id(node)] = node
            if type(node) is tuple:
                stack.append((node, True))
            else:
                containers.append(node)
            parts = node.values() if isinstance(node, dict) else node
            stack.extend((each, False) for each in parts)
    for node in containers:
        if isinstance(node, dict):
            node.update({key: made.get(id(each), each) for key, each in node.items()})
        else:
            node[:] = [made.get(id(each), each) for each in node]
    return made.get(id(value), value)


def _tensor(
    storage: TorchStorage,
    first: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    budget: _Budget,
) -> Tensor:
    source, dtype = storage.source, storage.dtype
    count = source.elements(shape, "a tensor")
    if count > _MOST_ELEMENTS:
        raise source.fault("a tensor has more elements than can be counted")
    offset = storage.offset() + first * dtype.itemsize
    if not count:
        return Tensor.zeros(*shape, dtype=dtype)
    # Axes that repeat one element are made at the end, and take no memory.
    sizes = tuple(n if s else 1 for n, s in zip(shape, strides, strict=True))
    order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis))
    rows = [sizes[axis] for axis in order]
    is_run = all(
        sizes[axis] == 1 or strides[axis] == math.prod(rows[number + 1 :])
        for number, axis in enumerate(order)
    )
    if is_run:
        found = source.tensor_at(offset, dtype, rows, "a tensor")
        back = [order.index(axis) for axis in range(len(shape))]
        found = found.permute(back) if back != sorted(back) else found
    else:
        budget.take(math.prod(sizes) * dtype.itemsize)
        found = _gathered(storage, offset, sizes, strides)
    return found.expand(shape) if sizes != shape else found


def _gathered(
    storage: TorchStorage, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]
) -> Tensor:
    """A tensor with gaps between its elements, copied together."""
    if math.prod(sizes) > storage.total:
        raise storage.source.fault("the elements of a tensor overlap", offset)
    kind = storage_dtype(storage.dtype)
    steps = [step * kind.itemsize for step in strides]
    try:
        raw = np.ndarray(sizes, kind, storage.source.bytes, offset, steps)
    except (ValueError, TypeError) as failure:
        raise storage.source.fault(f"a tensor is damaged: {failure}", offset) from None
    return Tensor(from_storage(storage.dtype, raw.copy()), dtype=storage.dtype)


# What a pickle may call.


def _rebuild_tensor(storage: Any, first: Any, size: Any, stride: Any, *rest: Any) -> Later:
    if not isinstance(storage, TorchStorage):
        raise ValueError("a tensor has no storage")
    shape, strides = _counts(size), _counts(stride)
    if len(shape) != len(strides) or type(first) is not int or first < 0:
        raise ValueError("the strides of a tensor do not fit its shape")
    last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if math.prod(shape) and first + last >= storage.total:
        raise ValueError("a tensor reaches outside of its storage")
    return Later(storage, first, shape, strides)


def _counts(values: Any) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or not all(type(n) is int and n >= 0 for n in values):
        raise ValueError("sizes and strides are counts")
    return tuple(values)


def _rebuild_typed(
    storage: Any, first: Any, size: Any, stride: Any, grad: Any, hooks: Any, dtype: Any, *_: Any
) -> Later:
    """A tensor of a dtype without a storage type; its storage counts bytes."""
    kind = getattr(dtype, "call", None)
    if not isinstance(storage, TorchStorage) or not isinstance(kind, StorageKind):
        raise ValueError("a tensor has no storage or no dtype")
    count = storage.total * storage.dtype.itemsize // kind.dtype.itemsize
    return _rebuild_tensor(storage._replace(dtype=kind.dtype, total=count), first, size, stride)


def _rebuild_parameter(data: Any, *rest: Any) -> Any:
    if not isinstance(data, Later):
        raise ValueError("a parameter has no tensor")
    return data


def _ordered_dict(*pairs: Any) -> OrderedDict[Any, Any]:
    if pairs and pairs != ((),) and pairs != ([],):
        raise ValueError("an OrderedDict is filled item by item")
    return OrderedDict()


def _size(values: Sequence[int] = ()) -> tuple[int, ...]:
    return _counts(values)


def _device(kind: Any = "cpu", number: Any = 0) -> str:
    if not isinstance(kind, str) or not isinstance(number, (int, type(None))):
        raise ValueError("a device is a name and a number")
    return f"{kind[:64]}:{number or 0}"


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    """How old protocols write bytes."""
    if not isinstance(text, str) or encoding != "latin1":
        raise ValueError("bytes are written as latin1")
    return text.encode("latin1")


ALLOWED: Final[dict[str, Callable[..., Any]]] = {
    "collections.OrderedDict": _ordered_dict,
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v3": _rebuild_typed,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
    "torch.Size": _size,
    "torch.device": _device,
    "_codecs.encode": _encoded,
    **{f"torch.{name}": StorageKind(dtype) for name, dtype in _STORAGES.items()},
    **{f"torch.storage.{name}": StorageKind(dtype) for name, dtype in _STORAGES.items()},
    **{f"torch.{name}": StorageKind(dtype) for name, dtype in _DTYPES.items()},
}

"""`CHECK=jit`: a call runs twice, jitted and not, and everything it leaves behind is compared.

The function runs first; then the contents of all arguments and of all that the trace captured are
put back, and the trace runs. What the trace did stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.engine.contents import buffer_from, read_bytes
from weft.ir.arrays.values import from_storage, storage_dtype
from weft.ir.dtypes import FLOAT
from weft.ir.shapes import shape_of
from weft.support.errors import NotSupported
from weft.tensor.core import realize_all
from weft.tensor.jit.program import TracedProgram
from weft.tensor.realize import realize
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor
from weft.tensor.trace.state import GoneStorage
from weft.tensor.trees import flatten

if TYPE_CHECKING:
    from weft.tensor.jit.jit import Jit

# The same kernels in another order add floats in another order.
_TOLERANCE: Final = {"rtol": 1e-3, "atol": 1e-5}


def call_checked(jitted: Jit, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call both ways; raises where they differ."""
    arguments, program = jitted.program_for(args, kwargs)
    storages = _storages(arguments.tensors, program)
    before = [_contents(storage) for storage in storages.values()]
    gradients = [(tensor, tensor._grad) for tensor in _with_gradients(arguments.tensors, program)]
    called = _values(jitted.function(*args, **kwargs))
    wanted = [_contents(storage) for storage in storages.values()]
    for storage, data in zip(storages.values(), before, strict=True):
        _put_back(storage, data)
    for tensor, grad in gradients:
        tensor._grad = grad
    result = program.call(arguments.leaves)
    _require_same_values(jitted, _values(result), called)
    for (name, storage), data in zip(storages.items(), wanted, strict=True):
        if not isinstance(storage, GoneStorage) and not _agree(storage, data, _contents(storage)):
            raise _differs(jitted, f"{name}, of shape {shape_of(storage.uop)},")
    return result


def _storages(tensors: Sequence[Tensor], program: TracedProgram) -> dict[str, Storage]:
    """All memory that a call may write, by name."""
    found: dict[Storage, str] = {}
    for number, tensor in enumerate(tensors):
        found.setdefault(tensor._storage, f"tensor {number} of the arguments")
    for number, storage in enumerate(program.captured):
        found.setdefault(storage, f"tensor {number} from outside")
    return {name: storage for storage, name in found.items()}


def _with_gradients(tensors: Sequence[Tensor], program: TracedProgram) -> list[Tensor]:
    outside = [reference() for reference, _ in program.gradients_out]
    return [*tensors, *(tensor for tensor in outside if tensor is not None)]


def _contents(storage: Storage) -> bytes:
    realize([storage])
    return bytes(read_bytes(storage.uop))


def _put_back(storage: Storage, data: bytes) -> None:
    realize([storage])
    shape = shape_of(storage.uop)
    storage.write((), buffer_from(storage.uop.dtype, shape, storage.device, memoryview(data)))
    realize([storage])


def _values(result: Any) -> list[Any]:
    """The leaves of a result, tensors as their contents."""
    leaves: list[Any] = []
    flatten(result, leaves)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    realize_all(tensors)
    return [leaf.numpy() if isinstance(leaf, Tensor) else leaf for leaf in leaves]


def _require_same_values(jitted: Jit, replayed: list[Any], called: list[Any]) -> None:
    if len(replayed) != len(called):
        raise _differs(jitted, "the structure of the result")
    for number, (x, y) in enumerate(zip(replayed, called, strict=True)):
        is_array = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
        if is_array and not (x.shape == y.shape and _is_close(x, y)):
            raise _differs(jitted, f"result {number}")
        if not is_array and (isinstance(x, np.ndarray) or isinstance(y, np.ndarray) or x != y):
            raise _differs(jitted, f"result {number}")


def _is_close(x: Any, y: Any) -> bool:
    if x.dtype.kind != "f":
        return bool(np.array_equal(x, y))
    return bool(np.allclose(x, y, equal_nan=True, **_TOLERANCE))


def _agree(storage: Storage, x: bytes, y: bytes) -> bool:
    dtype = storage.uop.dtype
    if x == y or dtype.kind != FLOAT:
        return x == y
    left, right = (
        from_storage(dtype, np.frombuffer(data, storage_dtype(dtype))) for data in (x, y)
    )
    return _is_close(left, right)


def _differs(jitted: Jit, what: str) -> NotSupported:
    return NotSupported(
        f"CHECK=jit: {what} differs between {jitted!r} and the function itself",
        rule="a jitted function may depend on its arguments, on tensors and on what can be\n"
        "compared from call to call; what else changes is not seen",
        fix="pass what changes as an argument",
    )

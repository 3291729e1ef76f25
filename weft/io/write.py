"""How files come to be: the bytes of tensors, and a file that is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from weft.engine.contents import read_bytes
from weft.engine.devices import is_file
from weft.engine.disk import mapped_bytes, try_view
from weft.support.atomic_write import write_atomically
from weft.support.errors import ArgumentTypeError, UsageError, file_error
from weft.tensor.core import realize_all
from weft.tensor.tensor import Tensor

Bytes = bytes | bytearray | memoryview


def realized(tensors: Iterable[Tensor]) -> list[Tensor]:
    """The tensors in memory without gaps, computed together; views of files stay as they are."""
    found = [tensor if _is_run(tensor) else _brought(tensor).contiguous() for tensor in tensors]
    realize_all([tensor for tensor in found if not is_file(tensor.device)])
    return found


def _is_run(tensor: Tensor) -> bool:
    """Whether a tensor is one run of bytes of a file."""
    if not is_file(tensor.device):
        return False
    tensor.realize()  # writes that wait
    view = try_view(tensor.uop)
    return view is not None and view.is_whole


def _brought(tensor: Tensor) -> Tensor:
    return tensor.to("CPU") if is_file(tensor.device) else tensor


def stored_bytes(tensor: Tensor) -> Bytes:
    """The elements of a tensor of `realized`, as memory holds them."""
    if is_file(tensor.device):
        view = try_view(tensor.uop)
        assert view is not None
        return mapped_bytes(view)
    return read_bytes(tensor._storage.uop)


def write_whole(path: str | os.PathLike[str], parts: Iterable[Bytes]) -> None:
    """Write a file; until all of it is there, a file of this name stays as it was."""
    try:
        write_atomically(path, parts)
    except OSError as failure:
        if isinstance(failure, UsageError):  # what the parts raised
            raise
        raise file_error(
            f"{os.fspath(path)} cannot be written",
            failure,
            rule="a file is written into a folder that exists and may be written",
        ) from None


def require_names(format: str, tensors: object) -> Sequence[str]:
    """The names of a dict of tensors."""
    if isinstance(tensors, dict):
        wrong = [
            n for n, t in tensors.items() if not (isinstance(n, str) and isinstance(t, Tensor))
        ]
        if not wrong:
            return list(tensors)
        what = f"{wrong[0]!r} is a {type(tensors[wrong[0]]).__name__}"
    else:
        what = f"a {type(tensors).__name__} was given"
    raise ArgumentTypeError(
        f"{format}: {what}", rule="what is saved is a dict of names to tensors"
    )

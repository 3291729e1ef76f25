"""Tar and zip archives as tables of byte tensors.

What an archive stores as it is becomes a view of it; what it compresses is unpacked into memory,
as far as the archive can be believed: no more than its members say, and no more than a fixed
multiple of the archive.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import Any, Final

from weft.io.source import FileLike, Source
from weft.io.tar import tar_members
from weft.ir.dtypes import dtypes
from weft.tensor.tensor import Tensor

_LOCAL_HEADER: Final = 30
_DEFLATE_RATIO: Final = 1032  # no deflated byte becomes more
_UNPACKED_ALWAYS: Final = 1 << 30
_UNPACKED_RATIO: Final = 200
# What the parsers of the standard library raise for damaged input.
_DAMAGED: Final = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(ValueError, OverflowError, NotImplementedError, RuntimeError, IndexError, KeyError),
)


def zip_extract(t: FileLike) -> dict[str, Tensor]:
    """The files of a zip archive, by name.

    >>> import zipfile, tempfile, os
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "a.zip")
    >>> with zipfile.ZipFile(path, "w") as archive:
    ...     archive.writestr("hello.txt", "hi")
    >>> bytes(zip_extract(path)["hello.txt"].data())
    b'hi'
    >>> folder.cleanup()
    """
    return unzip(Source(t, "zip"))


def unzip(source: Source) -> dict[str, Tensor]:
    try:
        with zipfile.ZipFile(source.stream()) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
    except _DAMAGED as failure:
        raise source.fault(f"expected a zip archive: {failure}") from None
    budget = _UNPACKED_ALWAYS + _UNPACKED_RATIO * source.size
    found = {}
    for info in members:
        if info.compress_type != zipfile.ZIP_STORED:
            budget -= info.file_size
        if budget < 0:
            raise source.fault(
                "the archive would unpack to an absurd size",
                rule=f"at most {_UNPACKED_RATIO} times its own size and 1 GiB are unpacked",
            )
        found[info.filename] = _member(source, info)
    return found


def _member(source: Source, info: zipfile.ZipInfo) -> Tensor:
    what = f"the member {info.filename!r}"
    if info.flag_bits & 1:
        raise source.fault(f"{what} is encrypted", rule="archives are read without a password")
    first = info.header_offset
    signature, name_size, extra_size = source.unpack("I22xHH", first, what)
    if signature != 0x04034B50:
        raise source.fault(f"{what} has no header", first)
    data = first + _LOCAL_HEADER + name_size + extra_size
    source.require_inside(data, info.compress_size, what)
    if info.compress_type == zipfile.ZIP_STORED:
        if info.file_size != info.compress_size:
            raise source.fault(f"{what} has two sizes", first)
        return source.tensor_at(data, dtypes.uint8, (info.file_size,), what)
    if info.compress_type != zipfile.ZIP_DEFLATED:
        raise source.fault(
            f"{what} is compressed by method {info.compress_type}",
            first,
            "members are stored or deflated",
        )
    if info.file_size > _DEFLATE_RATIO * info.compress_size + 64:
        raise source.fault(f"{what} cannot have {info.file_size} bytes", first)
    return Tensor(_inflated(source, data, info, what))


def _inflated(source: Source, data: int, info: zipfile.ZipInfo, what: str) -> bytes:
    unpacker = zlib.decompressobj(-15)
    packed = source.bytes[data : data + info.compress_size]
    try:
        found = unpacker.decompress(packed, info.file_size + 1)
    except zlib.error as failure:
        raise source.fault(f"{what} is damaged: {failure}", data) from None
    if len(found) != info.file_size or zlib.crc32(found) != info.CRC:
        raise source.fault(f"{what} is damaged", data, "its size and checksum are those it states")
    return found


def tar_extract(t: FileLike) -> dict[str, Tensor]:
    """The files of a tar archive that is not compressed, by name."""
    source = Source(t, "tar")
    found = {name: (first, size) for name, first, size in tar_members(source)}
    return {
        name: source.tensor_at(first, dtypes.uint8, (size,), f"the member {name!r}")
        for name, (first, size) in found.items()
    }


def member(source: Source, files: dict[str, Tensor], name: str) -> Any:
    """One file of an archive, which has to be there."""
    if name not in files:
        raise source.fault(f"the archive has no member {name!r}")
    return files[name]

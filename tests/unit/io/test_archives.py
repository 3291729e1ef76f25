"""Tar and zip: views of what is stored, bounds on what is unpacked."""

import io
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from fuzz.file_samples import tar
from weft import FileFormatError
from weft.io import tar_extract, zip_extract
from weft.tensor import Tensor


def zipped(method: int, **files: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        archive.writestr("folder/", b"")
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def content(tensor: Tensor) -> bytes:
    return bytes(tensor.data())


def test_tar(tmp_path: Path):
    (tmp_path / "x.tar").write_bytes(tar())
    found = tar_extract(tmp_path / "x.tar")
    assert list(found) == ["a.txt", "folder/" + "long" * 30]
    assert content(found["a.txt"]) == b"xxxxx"
    assert found["a.txt"].device.startswith("DISK")
    assert found["folder/" + "long" * 30].shape == (700,)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zip(method: int, tmp_path: Path):
    (tmp_path / "x.zip").write_bytes(zipped(method, a=b"hello" * 100, b=b""))
    found = zip_extract(Tensor(tmp_path / "x.zip"))
    assert {name: content(part) for name, part in found.items()} == {"a": b"hello" * 100, "b": b""}
    assert found["a"].device.startswith("DISK" if method == zipfile.ZIP_STORED else "CPU")


def test_other_methods_and_secrets_are_refused():
    with pytest.raises(FileFormatError, match="compressed by method 12"):
        zip_extract(Tensor(zipped(zipfile.ZIP_BZIP2, a=b"hello" * 100)))
    data = bytearray(zipped(zipfile.ZIP_STORED, a=b"hello"))
    data[data.rindex(b"PK\1\2") + 8] |= 1
    with pytest.raises(FileFormatError, match="encrypted"):
        zip_extract(Tensor(bytes(data)))


def test_a_member_that_lies_about_its_size_is_refused():
    data = bytearray(zipped(zipfile.ZIP_DEFLATED, a=b"hello" * 100))
    offset = data.rindex(b"PK\1\2") + 24
    for size in (499, 501, 2**31):
        data[offset : offset + 4] = struct.pack("<I", size)
        with pytest.raises(FileFormatError, match=r"damaged|cannot have|absurd"):
            zip_extract(Tensor(bytes(data)))


def test_an_archive_that_unpacks_to_an_absurd_size_is_refused(monkeypatch):
    from weft.io import archives

    monkeypatch.setattr(archives, "_UNPACKED_ALWAYS", 0)
    with pytest.raises(FileFormatError, match="absurd"):
        zip_extract(Tensor(zipped(zipfile.ZIP_DEFLATED, a=b"\0" * 1_000_000)))


def test_damaged_archives():
    stored = bytearray(zipped(zipfile.ZIP_STORED, a=b"hello"))
    stored[stored.index(b"PK\3\4", 5)] = 0
    for data in (b"", b"PK\3\4", b"no archive", bytes(stored)):
        with pytest.raises(FileFormatError):
            zip_extract(Tensor(data, dtype="uint8"))
    with pytest.raises(FileFormatError, match="expected a tar archive"):
        tar_extract(Tensor(b"no archive" * 100))
    with pytest.raises(FileFormatError):
        tar_extract(Tensor(tar()[:900]))


def test_links_and_folders_are_left_out():
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE):
            info = tarfile.TarInfo(f"x{kind!r}")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    assert tar_extract(Tensor(data.getvalue())) == {}


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_kind_of_tar_is_read_as_python_reads_it(format: int):
    names = ["a", "folder/b", "x" * 99 + "/" + "y" * 90, "ä" * 30, "é/" + "n" * 60]
    names += ["long/" * 60 + "end"] if format != tarfile.USTAR_FORMAT else []
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=format) as archive:
        for number, name in enumerate(names):
            info = tarfile.TarInfo(name)
            info.size = number * 300
            archive.addfile(info, io.BytesIO(bytes([65 + number]) * info.size))
            folder = tarfile.TarInfo(f"folder{number}")
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
    found = tar_extract(Tensor(data.getvalue()))
    assert list(found) == names
    for number, name in enumerate(names):
        assert content(found[name]) == bytes([65 + number]) * (number * 300)


def with_size(field: bytes, kind: bytes = b"0") -> bytes:
    """A tar archive of one member that states its size so."""
    header = bytearray(tar()[:512])
    header[124:136], header[156:157] = field.ljust(12, b"\0"), kind
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(2048)


@pytest.mark.parametrize("kind", [b"0", b"L", b"K", b"x", b"g", b"S", b"5"])
@pytest.mark.parametrize(
    "field",
    [
        b"77777777777",
        b"\x80" + b"\xff" * 11,
        b"\xff" * 12,
        b"-1",
        b"9",
        b"\x80" + b"\0" * 10 + b"\1",
    ],
)
def test_sizes_of_a_tar_are_not_believed(field: bytes, kind: bytes):
    # A size that is too large makes no room, and a negative one sends nobody back.
    try:
        found = tar_extract(Tensor(with_size(field, kind)))
    except FileFormatError:
        return
    assert kind == b"5" or field[-1:] == b"\1"
    assert all(part.numel() == 1 for part in found.values())


@pytest.mark.parametrize(
    "record",
    [b"0 path=x\n", b"99999999 path=x\n", b"-5 path=x\n", b"x path=y\n", b"12 size=abc\n"],
)
def test_records_of_a_tar_are_not_believed(record: bytes):
    start = bytearray(with_size(b"%o" % len(record), b"x")[:512])
    data = bytes(start) + record.ljust(512, b"\0") + tar()
    with pytest.raises(FileFormatError):
        tar_extract(Tensor(data))

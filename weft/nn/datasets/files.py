"""Where the files of datasets come from: a folder of yours, the cache, or the network.

`read` looks, in this order, in the folder that the caller names, in the folder of the setting DATA
(`WEFT_DATA` in the environment), and in the cache; then it downloads. What comes from the network
is checked against a digest before anybody sees it, and is written whole or not at all.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError

from weft.support.cache import cache_directory, private_folder
from weft.support.errors import FileFormatError, UsageError
from weft.support.private_folder import try_private_folder
from weft.support.progress import Progress
from weft.support.settings import settings

# No server answers later than this many seconds.
PATIENCE = 60
_PART = 1 << 16  # bytes that are read at a time


class DataFile(NamedTuple):
    """A file of a dataset: its name, where it is, and `md5:` or `sha256:` with its digest."""

    dataset: str
    name: str
    url: str
    digest: str


def read(file: DataFile, folder: str | os.PathLike[str] | None = None) -> bytes:
    """Return the contents of a file, unpacked if it is gzipped."""
    data = _stored(file, folder)
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _stored(file: DataFile, folder: str | os.PathLike[str] | None) -> bytes:
    if folder is not None:
        found = _find(Path(folder), file)
        if found is None:
            raise UsageError(
                f"{file.dataset}: no file {file.name} in {os.fspath(folder)}",
                rule="the folder, or one in it with the name of the dataset, has the files, "
                "gzipped or not",
            )
        return found.read_bytes()
    cache = cache_directory()
    kept = try_private_folder(cache, make=False) if cache else None
    for root in (settings.DATA, kept and kept.path):
        found = _find(Path(root).expanduser(), file) if root else None
        if found is not None:
            return found.read_bytes()
    return _downloaded(file)


def _find(root: Path, file: DataFile) -> Path | None:
    names = (file.name, file.name.removesuffix(".gz"))
    folders = (root / file.dataset, root, root / "datasets" / file.dataset)
    paths = (folder / name for folder in folders for name in names)
    return next((path for path in paths if path.is_file()), None)


def _downloaded(file: DataFile) -> bytes:
    try:
        with urllib.request.urlopen(file.url, timeout=PATIENCE) as response:
            data = _read_all(response, file.name)
    except (URLError, OSError) as failure:
        if isinstance(failure, HTTPError):  # it holds the connection
            failure.close()
        raise UsageError(
            f"{file.dataset}: cannot download {file.url}",
            facts=[("reason", failure)],
            rule="a dataset is downloaded when it is first used",
            fix=f"put {file.name} into a folder, and name the folder in the environment: "
            "WEFT_DATA=folder",
        ) from failure
    _require_digest(file, data)
    _keep(file, data)
    return data


def _read_all(response: Any, name: str) -> bytes:
    """All that a server sends, with a bar."""
    length = response.headers.get("Content-Length", "")
    parts: list[bytes] = []
    with Progress(f"downloading {name}", int(length) if length.isdigit() else None, "B") as bar:
        while part := response.read(_PART):
            parts.append(part)
            bar.advance(len(part))
    return b"".join(parts)


def _require_digest(file: DataFile, data: bytes) -> None:
    kind, _, expected = file.digest.partition(":")
    found = hashlib.new(kind, data, usedforsecurity=False).hexdigest()
    if found != expected:
        raise FileFormatError(
            f"{file.dataset}: {file.url} is not the file that is wanted",
            facts=[(f"{kind} wanted", expected), (f"{kind} found", found), ("bytes", len(data))],
            rule="a downloaded file has the digest that is known for it",
            fix="try again; if it stays so, the server has another file",
        )


def _keep(file: DataFile, data: bytes) -> None:
    """Write a file to the cache, whole or not at all; a disk that refuses raises nothing."""
    kept = private_folder()
    if kept is None:
        return
    folder = Path(kept.path) / "datasets" / file.dataset
    temporary = ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
        os.replace(temporary, folder / file.name)
    except OSError:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)

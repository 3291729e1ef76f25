"""Files from elsewhere: a URL is downloaded once, and its file stays in a folder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from weft.support.atomic_write import write_atomically
from weft.support.errors import MissingFile


def downloaded(name: str, url: str, file_name: str | None = None, again: bool = False) -> Path:
    """The path of a file: where it lies if it is on this machine, or where it was put."""
    if url.startswith(("/", ".")):
        return Path(url)
    import urllib.request  # slow to import, and most programs download nothing

    if url.startswith("file:"):
        return Path(urllib.request.url2pathname(url.removeprefix("file:").removeprefix("//")))
    folder = Path(os.environ.get("WEFT_DATA", Path.home() / ".cache" / "weft")) / "downloads"
    path = folder / (file_name or hashlib.blake2b(url.encode(), digest_size=16).hexdigest())
    if not path.is_file() or again:
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                data = response.read()
        except (OSError, ValueError) as failure:
            raise MissingFile(
                f"{name}: cannot download {url}",
                facts=[("reason", str(failure))],
                rule="a file is downloaded when it is first asked for",
                fix=f"put it there yourself: {path}",
            ) from None
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, [data])
    return path

"""Text: the works of Shakespeare in one small file, for models of characters."""

from __future__ import annotations

import os

from weft.nn.datasets.files import DataFile, read

_SHAKESPEARE = DataFile(
    "shakespeare",
    "input.txt",
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
    "sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
)


def shakespeare(path: str | os.PathLike[str] | None = None) -> str:
    """Return 1,115,394 characters of plays by Shakespeare, in the public domain.

    The file input.txt comes from the folder `path`, from that of `WEFT_DATA`, from the cache, or
    from the network.
    """
    return read(_SHAKESPEARE, path).decode("utf-8")

"""The frameworks that Weft is measured against, where they are installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util

HOW_TO_GET = 'pip install -e ".[peers]"'


def is_installed(peer: str) -> bool:
    return importlib.util.find_spec(peer) is not None


def version(peer: str) -> str:
    """The peer's name and version, or how to get it."""
    if not is_installed(peer):
        return f"{peer} (not installed: {HOW_TO_GET})"
    return f"{peer} {importlib.metadata.version(peer)}"

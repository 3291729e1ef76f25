"""Signals: window functions, with the names of torch.signal."""

from weft.signal import windows
from weft.support.module_names import missing_name

__all__ = ["windows"]


def __getattr__(name: str) -> object:
    return missing_name(__name__)(name)

"""Switches of libraries that PyTorch runs on; Weft has none of them, and programs may set them."""

from __future__ import annotations

from typing import Any


class _Switches:
    """Attributes that may be set and change nothing; each is what it was set to, or False."""

    def __init__(self, **others: Any) -> None:
        self.__dict__.update(others)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return False

    def is_available(self) -> bool:
        """Whether the library is there: no."""
        return False

    is_built = is_available


cudnn = _Switches(deterministic=True, enabled=False)
cuda = _Switches(matmul=_Switches())
mps = _Switches()
mkldnn = _Switches()

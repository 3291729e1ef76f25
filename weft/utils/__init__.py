"""Utilities by PyTorch's names: `utils.data`, and `utils.checkpoint`."""

from weft.utils import checkpoint, data

__all__ = ["checkpoint", "data"]

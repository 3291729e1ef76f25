"""Utilities by PyTorch's names: `utils.data`, and `utils.checkpoint`."""

from weft.tensor.autodiff.transforms import checkpoint
from weft.utils import data

__all__ = ["checkpoint", "data"]

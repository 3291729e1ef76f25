"""Weft: a deep-learning framework and compiler with one graph and one rewrite engine."""

from weft.ir.build import variable as Variable  # noqa: N812 -- the public name
from weft.ir.dtypes import dtypes
from weft.ir.uop import UOp
from weft.support.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DeviceError,
    DTypeError,
    FileFormatError,
    IndexOutOfRange,
    InternalError,
    NotSupported,
    OutOfMemory,
    ShapeError,
    TextError,
    UnknownAttribute,
    UnknownName,
    UsageError,
)
from weft.support.settings import Context

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "AxisError",
    "Context",
    "DTypeError",
    "DeviceError",
    "FileFormatError",
    "IndexOutOfRange",
    "InternalError",
    "NotSupported",
    "OutOfMemory",
    "ShapeError",
    "TextError",
    "UOp",
    "UnknownAttribute",
    "UnknownName",
    "UsageError",
    "Variable",
    "dtypes",
]

"""Weft: a deep-learning framework and compiler with one graph and one rewrite engine."""

# First: whoever forks from here on waits for the imports of other threads.
from weft.support import fork as _fork  # noqa: F401

# isort: split
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
    MissingFile,
    NotSupported,
    OptRefused,
    OutOfMemory,
    ShapeError,
    TextError,
    UnknownAttribute,
    UnknownName,
    UsageError,
)
from weft.support.settings import Context
from weft.support.settings import settings as config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from weft import nn
    from weft.engine.counters import GlobalCounters
    from weft.engine.devices import Device
    from weft.export.function import load_function, save_function
    from weft.tensor.autodiff.transforms import (
        checkpoint,
        grad,
        hessian,
        jacobian,
        jvp,
        value_and_grad,
        vjp,
        vmap,
    )
    from weft.tensor.jit.jit import jit
    from weft.tensor.jit.jit import jit as TinyJit  # noqa: N812 -- a name that programs know
    from weft.tensor.tensor import Tensor
    from weft.tensor.trace.custom_kernel import custom_kernel
    from weft.tensor.trace.function import function
    from weft.tensor.trace.user_scans import associative_scan, scan

# These bring NumPy or LLVM with them, so they are imported when they are first asked for.
_LAZY = {
    "Device": "weft.engine.devices",
    "GlobalCounters": "weft.engine.counters",
    "Tensor": "weft.tensor.tensor",
    "TinyJit": "weft.tensor.jit.jit",
    "associative_scan": "weft.tensor.trace.user_scans",
    "scan": "weft.tensor.trace.user_scans",
    "custom_kernel": "weft.tensor.trace.custom_kernel",
    "function": "weft.tensor.trace.function",
    "checkpoint": "weft.tensor.autodiff.transforms",
    "grad": "weft.tensor.autodiff.transforms",
    "hessian": "weft.tensor.autodiff.transforms",
    "jacobian": "weft.tensor.autodiff.transforms",
    "jvp": "weft.tensor.autodiff.transforms",
    "value_and_grad": "weft.tensor.autodiff.transforms",
    "vjp": "weft.tensor.autodiff.transforms",
    "vmap": "weft.tensor.autodiff.transforms",
    "jit": "weft.tensor.jit.jit",
    "load_function": "weft.export.function",
    "save_function": "weft.export.function",
}
_NAMED_ELSEWHERE = {"TinyJit": "jit"}
_PACKAGES = ("nn",)

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "AxisError",
    "Context",
    "DTypeError",
    "Device",
    "DeviceError",
    "FileFormatError",
    "GlobalCounters",
    "IndexOutOfRange",
    "InternalError",
    "MissingFile",
    "NotSupported",
    "OptRefused",
    "OutOfMemory",
    "ShapeError",
    "Tensor",
    "TextError",
    "TinyJit",
    "UOp",
    "UnknownAttribute",
    "UnknownName",
    "UsageError",
    "Variable",
    "associative_scan",
    "checkpoint",
    "config",
    "custom_kernel",
    "dtypes",
    "function",
    "grad",
    "hessian",
    "jacobian",
    "jit",
    "jvp",
    "load_function",
    "nn",
    "save_function",
    "scan",
    "value_and_grad",
    "vjp",
    "vmap",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), _NAMED_ELSEWHERE.get(name, name))
    if name in _PACKAGES:
        return import_module(f"weft.{name}")
    from weft.support.message import nearest
    from weft.tensor.names_elsewhere import try_advice

    what = f"module 'weft' has no attribute {name!r}"
    if name.startswith("_"):
        raise UnknownAttribute(what)
    advice = try_advice(name, [])
    if advice is not None:
        raise UnknownAttribute(what, law=advice[0], fix=advice[1])
    if hasattr(dtypes, name):
        raise UnknownAttribute(what, fix=f"write weft.dtypes.{name}")
    if hasattr(import_module("weft.tensor.tensor").Tensor, name):
        raise UnknownAttribute(what, law="functions are methods", fix=f"write Tensor.{name}(...)")
    guess = nearest(name, __all__)
    raise UnknownAttribute(what, fix=f"write weft.{guess}" if guess else "")


def __dir__() -> list[str]:
    return __all__

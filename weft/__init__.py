"""Weft: a deep-learning framework and compiler with one graph and one rewrite engine."""

# First: whoever forks from here on waits for the imports of other threads.
from weft.support import fork as _fork  # noqa: F401
from weft.support import interpreter as _interpreter  # noqa: F401 -- refuses one without its lock

# isort: split
from weft.ir.build import variable as Variable  # noqa: N812 -- the public name
from weft.ir.dtypes import DType, dtypes
from weft.ir.uop import UOp
from weft.support.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    Busy,
    DeviceError,
    DTypeError,
    FileFormatError,
    GradcheckError,
    IndexOutOfRange,
    InternalError,
    LinAlgError,
    MissingFile,
    NotFinite,
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
    from weft import nn, onnx
    from weft.engine.counters import GlobalCounters
    from weft.engine.devices import Device
    from weft.export.function import load_function, save_function
    from weft.interop.torch.modules import from_torch
    from weft.support.progress import progress
    from weft.tensor.autocast import autocast
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
    from weft.tensor.clear_caches import clear_caches
    from weft.tensor.jit.jit import jit
    from weft.tensor.jit.jit import jit as TinyJit  # noqa: N812 -- a name that programs know
    from weft.tensor.tensor import Tensor
    from weft.tensor.trace.custom_kernel import custom_kernel
    from weft.tensor.trace.function import function
    from weft.tensor.trace.user_scans import associative_reduce, associative_scan, scan
    from weft.viz.profile import profile

# These bring NumPy or LLVM with them, so they are imported when they are first asked for.
_LAZY = {
    "Device": "weft.engine.devices",
    "Generator": "weft.tensor.create.generator",
    "GlobalCounters": "weft.engine.counters",
    "Tensor": "weft.tensor.tensor",
    "TinyJit": "weft.tensor.jit.jit",
    "associative_reduce": "weft.tensor.trace.user_scans",
    "associative_scan": "weft.tensor.trace.user_scans",
    "scan": "weft.tensor.trace.user_scans",
    "custom_kernel": "weft.tensor.trace.custom_kernel",
    "from_torch": "weft.interop.torch.modules",
    "function": "weft.tensor.trace.function",
    "autocast": "weft.tensor.autocast",
    "get_autocast_dtype": "weft.tensor.autocast",
    "is_autocast_enabled": "weft.tensor.autocast",
    "checkpoint": "weft.tensor.autodiff.transforms",
    "grad": "weft.tensor.autodiff.transforms",
    "hessian": "weft.tensor.autodiff.transforms",
    "jacobian": "weft.tensor.autodiff.transforms",
    "jvp": "weft.tensor.autodiff.transforms",
    "value_and_grad": "weft.tensor.autodiff.transforms",
    "vjp": "weft.tensor.autodiff.transforms",
    "vmap": "weft.tensor.autodiff.transforms",
    "clear_caches": "weft.tensor.clear_caches",
    "device": "weft.engine.devices",
    "dtype": "weft.ir.dtypes",
    "jit": "weft.tensor.jit.jit",
    "profile": "weft.viz.profile",
    "progress": "weft.support.progress",
    "load_function": "weft.export.function",
    "save_function": "weft.export.function",
}
_NAMED_ELSEWHERE = {
    "TinyJit": "jit",
    "compile": "compile_",
    "device": "DeviceName",
    "dtype": "DType",
    "range": "range_",
}
# Functions by PyTorch's names that are not methods of a tensor.
_FUNCTIONS = (
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "Size",
    "are_deterministic_algorithms_enabled",
    "as_tensor",
    "asarray",
    "chain_matmul",
    "channels_last",
    "compile",
    "contiguous_format",
    "e",
    "fetch",
    "finfo",
    "get_default_dtype",
    "get_num_threads",
    "get_rng_state",
    "getenv",
    "iinfo",
    "inf",
    "initial_seed",
    "is_tensor",
    "load",
    "manual_seed",
    "nan",
    "newaxis",
    "numel",
    "pi",
    "polygamma",
    "preserve_format",
    "promote_types",
    "range",
    "result_type",
    "save",
    "seed",
    "set_default_dtype",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "show_versions",
    "strided",
    "unravel_index",
    "use_deterministic_algorithms",
    "where",
)
_MODES = (
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
)
_PACKAGES = (
    "amp",
    "array_api",
    "aten",
    "autograd",
    "backends",
    "cuda",
    "distributions",
    "fft",
    "func",
    "gradient",
    "helpers",
    "linalg",
    "masked",
    "nn",
    "onnx",
    "optim",
    "random",
    "signal",
    "special",
    "tensor",
    "testing",
    "utils",
)

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "AxisError",
    "Busy",
    "Context",
    "DTypeError",
    "Device",
    "DeviceError",
    "FileFormatError",
    "GlobalCounters",
    "GradcheckError",
    "IndexOutOfRange",
    "InternalError",
    "LinAlgError",
    "MissingFile",
    "NotFinite",
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
    "associative_reduce",
    "associative_scan",
    "autocast",
    "checkpoint",
    "clear_caches",
    "config",
    "custom_kernel",
    "dtypes",
    "from_torch",
    "function",
    "grad",
    "hessian",
    "jacobian",
    "jit",
    "jvp",
    "load_function",
    "nn",
    "onnx",
    "profile",
    "progress",
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
    if name in _FUNCTIONS:
        return getattr(import_module("weft.functions"), _NAMED_ELSEWHERE.get(name, name))
    if name in _MODES:
        return getattr(import_module("weft.tensor.autodiff.modes"), name)
    if (module := import_module("weft.aten.table").MODULE_OF.get(name)) is not None:
        return getattr(import_module(module), name)
    from weft.support.message import nearest
    from weft.tensor.names_elsewhere import try_advice

    what = f"module 'weft' has no attribute {name!r}"
    if name.startswith("_"):
        raise UnknownAttribute(what)
    if isinstance(found := getattr(type(dtypes), name, None), DType):
        return found
    Tensor = import_module("weft.tensor.tensor").Tensor
    if name in dir(Tensor):  # weft.relu(x) is Tensor.relu(x)
        return import_module("weft.functions").function_of(name)
    advice = try_advice(name, [])
    if advice is not None:
        raise UnknownAttribute(what, rule=advice[0], fix=advice[1])
    guess = nearest(name, __all__)
    raise UnknownAttribute(what, fix=f"write weft.{guess}" if guess else "")


def __dir__() -> list[str]:
    return __all__

"""Functions at the top of the package by PyTorch's names, which are not methods of a tensor.

`weft.add(x, y)` and the like are the methods of `Tensor` themselves; see `weft.__getattr__`.
"""

from __future__ import annotations

import functools
import inspect
import os
import pickle
import platform
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from weft.ir.dtypes import DType, dtypes, promote
from weft.support.atomic_write import write_atomically
from weft.support.download import downloaded
from weft.support.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    FileFormatError,
    MissingFile,
)
from weft.support.settings import Context, settings
from weft.tensor.create.generator import Generator
from weft.tensor.create.random_state import random_state, restore_random_state
from weft.tensor.host.convert import dtype_of
from weft.tensor.linalg.combined import multi_dot
from weft.tensor.tensor import Tensor


class Size(tuple):  # type: ignore[type-arg]
    """A shape by PyTorch's name. Shapes of tensors are plain tuples, which are equal to it."""

    def numel(self) -> int:
        """The number of elements."""
        return int(np.prod(self)) if self else 1


@functools.cache
def function_of(name: str) -> Any:
    """A method of tensors as a function, whose first argument is a tensor, or a number beside one.

    >>> function_of("pow")(2, Tensor([1.0, 3.0])).tolist()
    [2.0, 8.0]
    """
    method = getattr(Tensor, name)
    if not inspect.isfunction(method) or list(inspect.signature(method).parameters)[:1] != [
        "self"
    ]:
        return method

    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        if args and not isinstance(args[0], Tensor) and is_plain(args[0]):
            beside = next((each for each in args[1:] if isinstance(each, Tensor)), None)
            if beside is None or not isinstance(args[0], (int, float)):
                raise ArgumentTypeError(
                    f"{name}: expected a Tensor, got {type(args[0]).__name__}",
                    rule="functions compute with tensors",
                    fix="make a tensor of it: weft.tensor(x)",
                )
            keeps = isinstance(args[0], int) or beside.dtype.is_inexact
            number = Tensor(args[0], dtype=beside.dtype if keeps else None, device=beside.device)
            args = (number, *args[1:])
        return method(*args, **kwargs)

    return called


def is_plain(value: Any) -> bool:
    """Whether a value is a number, an array, a list of numbers, or nothing."""
    if isinstance(value, (list, tuple)):
        return not any(isinstance(each, (Tensor, list, tuple)) for each in value)
    if value is None or isinstance(value, (str, bytes, int, float, complex)):
        return True
    return hasattr(type(value), "__array__")


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Choose from two where a condition holds; of a condition alone, where it does, as indices.

    >>> where(Tensor([True, False, True]))[0].tolist()
    [0, 2]
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if input is None or other is None:
        raise ArgumentError("where: one value", rule="where(condition, x, y) chooses from two")
    return condition.where(input, other)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The tensor itself, or a tensor of data. PyTorch: as_tensor."""
    if isinstance(data, Tensor):
        return data.to(device, dtype)
    return Tensor(data, device=device, dtype=dtype)


asarray = as_tensor


def is_tensor(obj: Any) -> bool:
    """Whether something is a tensor."""
    return isinstance(obj, Tensor)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return int(input.numel())


def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma."""
    return input.polygamma(n)


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices."""
    return multi_dot(matrices)


def range_(start: float, end: float, step: float = 1, **options: Any) -> Tensor:
    """Numbers from start to end, both included."""
    return Tensor.arange(start, end + step / 2, step, **options)


def promote_types(type1: DType, type2: DType) -> DType:
    """The dtype of a result of two."""
    return promote(type1, type2)


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype that an operation of two would have."""
    pair = [each if isinstance(each, Tensor) else Tensor(each) for each in (tensor1, tensor2)]
    return promote(pair[0].dtype, pair[1].dtype)


def get_default_dtype() -> DType:
    """The dtype of floats whose dtype nobody named."""
    return dtypes.default_float


def get_rng_state() -> dict[str, Any]:
    """The state of random numbers."""
    return random_state()


def set_rng_state(new_state: dict[str, Any]) -> None:
    """Go on with random numbers where a state was taken."""
    restore_random_state(new_state)


def save(obj: Any, f: Any, **_: Any) -> None:
    """Write an object with its tensors, as a pickle. PyTorch: save.

    Files of named tensors that any program may read are written by `nn.state.safe_save`.
    """
    data = pickle.dumps(obj)
    if hasattr(f, "write"):
        f.write(data)
        return
    write_atomically(f, [data])


def load(f: Any, map_location: Any = None, weights_only: bool = True, **_: Any) -> Any:
    """Read what `save` wrote, or a file of PyTorch. PyTorch: load.

    Files of PyTorch are read without running what they say. A file of `save` is a pickle, which
    can run anything: `weights_only=False` says that it is trusted; otherwise only tensors and
    plain containers are read.
    """
    data = f.read() if hasattr(f, "read") else _bytes_of(f)
    if data[:2] == b"PK":
        from weft.io import torch_load

        return torch_load(Tensor(data))
    if not weights_only:
        return pickle.loads(data)
    return _SafeUnpickler(data).load()


def _bytes_of(path: Any) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as failure:
        raise MissingFile(f"load: {path} cannot be read: {failure.strerror}") from None


class _SafeUnpickler(pickle.Unpickler):
    """Reads containers, numbers, arrays and tensors, and refuses every other name."""

    ALLOWED: ClassVar = {
        ("builtins", "str"),  # the name of a device
        ("collections", "OrderedDict"),
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy.core.numeric", "_frombuffer"),
        ("numpy._core.numeric", "_frombuffer"),
    }

    def __init__(self, data: bytes) -> None:
        import io

        super().__init__(io.BytesIO(data))

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in self.ALLOWED or module in (
            "weft.tensor.host.interop",
            "weft.tensor.tensor",
            "weft.ir.dtypes",
        ):
            return super().find_class(module, name)
        raise FileFormatError(
            f"load: the file names {module}.{name}",
            rule="only tensors and plain containers are read",
            fix="if the file is trusted, pass weights_only=False",
        )


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The index along each axis of numbers of the flat tensor."""
    found = []
    rest = indices
    for size in reversed(tuple(shape)):
        found.append(rest % size)
        rest = rest // size
    return tuple(reversed(found))


def set_default_dtype(d: Any) -> None:
    """Set the dtype of floats whose dtype nobody names, for this thread.

    Inside of `with Context(...)` it ends with the scope.
    """
    dtype = dtype_of(d, dtypes.default_float)
    if not dtype.is_float:
        raise DTypeError(
            f"set_default_dtype: {dtype.name}", rule="the default dtype is a float", fix=""
        )
    Context(DEFAULT_FLOAT=dtype.name).apply()


def manual_seed(seed: int) -> Generator:
    """Start random numbers at a seed; return a generator that starts there too."""
    Tensor.manual_seed(seed)
    return Generator().manual_seed(seed)


def seed() -> int:
    """Start random numbers at a seed that nobody knows, and return it."""
    chosen = Generator().seed()
    Tensor.manual_seed(chosen)
    return chosen


def initial_seed() -> int:
    """The seed that random numbers started at."""
    return int(random_state()["seed"])


class finfo:  # noqa: N801 -- PyTorch's name
    """The limits of a float dtype.

    >>> finfo(dtypes.float16).max, finfo().bits
    (65504.0, 32)
    """

    def __init__(self, type: Any = None) -> None:
        dtype = dtype_of(type, dtypes.default_float)
        dtype = dtype.part if dtype.is_complex else dtype
        if not dtype.is_float or dtype.format is None:
            raise DTypeError(f"finfo: {dtype.name} is not a float", fix="write iinfo(dtype)")
        self.dtype, self.bits = dtype.name, dtype.bits
        shape = dtype.format
        self.eps = self.resolution = 2.0**-shape.mantissa_bits
        self.tiny = self.smallest_normal = 2.0 ** (1 - shape.bias)
        exponent, mantissa = divmod(shape.largest_bits, 1 << shape.mantissa_bits)
        self.max = (1 + mantissa * self.eps) * 2.0 ** (exponent - shape.bias)
        self.min = -self.max

    def __repr__(self) -> str:
        return f"finfo(dtype={self.dtype}, min={self.min}, max={self.max}, eps={self.eps})"


class iinfo:  # noqa: N801
    """The limits of an integer dtype.

    >>> iinfo(dtypes.int8).min, iinfo(dtypes.int8).max
    (-128, 127)
    """

    def __init__(self, type: Any) -> None:
        dtype = dtype_of(type, dtypes.default_int)
        if not dtype.is_int:
            raise DTypeError(f"iinfo: {dtype.name} is not an integer", fix="write finfo(dtype)")
        self.dtype, self.bits = dtype.name, dtype.bits
        self.min, self.max = int(dtype.min), int(dtype.max)

    def __repr__(self) -> str:
        return f"iinfo(dtype={self.dtype}, min={self.min}, max={self.max})"


def get_num_threads() -> int:
    """How many threads a kernel on the CPU may use."""
    return int(settings.THREADS) or os.cpu_count() or 1


def set_num_threads(number: int) -> None:
    """Let kernels on the CPU use so many threads, in this thread of the program."""
    Context(THREADS=int(number)).apply()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Do nothing: the same program computes the same bits."""


def are_deterministic_algorithms_enabled() -> bool:
    """Yes."""
    return True


def set_printoptions(**options: Any) -> None:
    """Set how numbers are printed: NumPy's options, which tensors follow."""
    names = {"precision", "threshold", "edgeitems", "linewidth"}
    given = {key: value for key, value in options.items() if key in names and value is not None}
    if options.get("sci_mode") is not None:
        given["suppress"] = not options["sci_mode"]
    np.set_printoptions(**given)


def typed_tensor(name: str) -> Any:
    """`FloatTensor` and the like: a function that makes tensors of one dtype."""
    dtype = _TYPED[name]

    def made(*data: Any) -> Tensor:
        """Make a tensor of data, or one of a shape whose elements are anything."""
        if not data:
            return Tensor([], dtype=dtype)
        if isinstance(data[0], int) and not isinstance(data[0], bool):
            return Tensor.empty(*data, dtype=dtype)
        return Tensor(data[0], dtype=dtype)

    made.__name__ = name
    return made


_TYPED = {
    "BFloat16Tensor": dtypes.bfloat16,
    "BoolTensor": dtypes.bool,
    "ByteTensor": dtypes.uint8,
    "CharTensor": dtypes.int8,
    "DoubleTensor": dtypes.float64,
    "FloatTensor": dtypes.float32,
    "HalfTensor": dtypes.float16,
    "IntTensor": dtypes.int32,
    "LongTensor": dtypes.int64,
    "ShortTensor": dtypes.int16,
}
FloatTensor, DoubleTensor = typed_tensor("FloatTensor"), typed_tensor("DoubleTensor")
HalfTensor, BFloat16Tensor = typed_tensor("HalfTensor"), typed_tensor("BFloat16Tensor")
LongTensor, IntTensor = typed_tensor("LongTensor"), typed_tensor("IntTensor")
ShortTensor, CharTensor = typed_tensor("ShortTensor"), typed_tensor("CharTensor")
ByteTensor, BoolTensor = typed_tensor("ByteTensor"), typed_tensor("BoolTensor")

# Layouts of memory, which do not show in a tensor.
contiguous_format, preserve_format = "contiguous_format", "preserve_format"
channels_last, strided = "channels_last", "strided"

pi, e, inf, nan = np.pi, np.e, np.inf, np.nan
newaxis = None


def compile_(model: Any = None, **options: Any) -> Any:
    """`jit` by PyTorch's name: trace a function of tensors once, and replay what it does.

    PyTorch's options change nothing here: shapes are static, and what cannot be traced is run by
    Python each time or refused with a message. PyTorch: compile.

    >>> compile_(lambda x: x + 1)(Tensor([1.0])).tolist()
    [2.0]
    """
    from weft.tensor.jit.jit import jit

    known = ("backend", "disable", "dynamic", "fullgraph", "mode", "options")
    for name in options:
        if name not in known:
            raise ArgumentError(f"compile: unknown argument {name!r}", rule=", ".join(known))
    if model is None:
        return jit
    if options.get("disable"):
        return model
    if hasattr(model, "forward"):  # a module stays one
        model.forward = jit(model.forward)
        return model
    return jit(model)


def getenv(key: str, default: Any = 0) -> Any:
    """An environment variable, in the type of the default. tinygrad: getenv.

    >>> getenv("A_NAME_THAT_NOBODY_SETS", 3)
    3
    """
    return type(default)(os.environ.get(key, default))


def fetch(url: str, name: str | None = None, allow_caching: bool = True) -> Path:
    """The path of a file that was downloaded once; a path of this machine is returned as it is.

    >>> fetch("/etc").name
    'etc'
    """
    return downloaded("fetch", url, name, not allow_caching)


def show_versions() -> None:
    """Print what a report of a bug should say: versions, the machine and its devices."""
    import llvmlite

    from weft.engine.devices import default_device

    rows = {
        "weft": sys.modules["weft"].__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "llvmlite": llvmlite.__version__,
        "system": platform.platform(),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "device": default_device(),
    }
    for key, value in rows.items():
        print(f"{key:9} {value}")

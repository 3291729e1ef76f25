"""Every setting of Weft in one typed table.

A setting is read as `settings.DEBUG`. Its value comes from the environment, which is read once, at
the first use of any setting; `Context(DEBUG=2)` changes it in a scope. Scopes belong to a thread
and, in async code, to a task: nothing that one thread does is seen by another, and a new thread
starts from the environment.
"""

from __future__ import annotations

from weft.support.errors import NotSupported, UnknownAttribute
from weft.support.message import nearest
from weft.support.setting import ROWS, Setting, require_accepted, scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from weft.support.setting import Value

    Function = TypeVar("Function", bound=Callable[..., Any])

# The flags of a code object that calls for more than a plain wrapper; `inspect` names them too.
_IS_GENERATOR = 0x20 | 0x200
_IS_COROUTINE = 0x80


def _row(default: Value, meaning: str, **details: Any) -> Any:
    """Return a row of the table, typed as what reading it gives."""
    return Setting(default, meaning, **details)


class Settings:
    """The table. An environment variable has the setting's name unless the row gives another."""

    __slots__ = ()

    DEBUG: int = _row(0, "How much to print of what is compiled and run; 0 is nothing.")
    SPEC: bool = _row(False, "Check the graph against the spec of its phase after every pass.")
    NOOPT: bool = _row(False, "Compile kernels without any opts.", in_cache_key=True)
    JOIN: str = _row(
        "",
        "Read rows once for reductions that need each other: '' where that costs less.",
        choices=("", "always", "never"),
        in_cache_key=True,
    )
    FUSE_PRODUCTS: str = _row(
        "",
        "Two products and the softmax between them are one kernel: '' where that costs less.",
        choices=("", "always", "never"),
        in_cache_key=True,
    )
    CHECK: str = _row(
        "",
        "Look for bugs: compare phases (levels), jit with eager; guard memory; find nan, indices.",
        choices=("", "levels", "jit", "memory", "nan", "index"),
    )
    TRACE: bool = _row(False, "Print every rewrite with its rule and reason.")
    VIZ: bool = _row(False, "Write a trace of all that happens, for `weft viz`.")
    VIZ_MB: int = _row(256, "The most megabytes of a trace; what comes later is left out.")
    CACHE: bool = _row(True, "Keep compiled results on disk.", variable="WEFT_CACHE")
    CACHE_DIR: str = _row(
        "",
        "Where the disk cache is, with a folder for each user; '' is the platform's own folder.",
        variable="WEFT_CACHE_DIR",
    )
    CACHE_SIZE_MB: int = _row(
        1024,
        "The most megabytes that the disk cache keeps; 0 keeps nothing.",
        variable="WEFT_CACHE_SIZE_MB",
    )
    DATA: str = _row(
        "",
        "A folder with the files of datasets, which are then not downloaded.",
        variable="WEFT_DATA",
    )
    THREADS: int = _row(
        0,
        "How many CPU threads run kernels; 0 is one per core.",
        in_cache_key=True,
        most=4096,
    )
    DEFAULT_FLOAT: str = _row(
        "float32",
        "The dtype of a new tensor of Python floats.",
        variable="WEFT_DEFAULT_FLOAT",
        choices=("float16", "bfloat16", "float32", "float64"),
    )
    DEFAULT_INT: str = _row(
        "int32",
        "The dtype of a new tensor of Python ints.",
        variable="WEFT_DEFAULT_INT",
        choices=("int8", "int16", "int32", "int64"),
    )
    AUTOCAST: str = _row(
        "",
        "The dtype in which matrices are multiplied; '' is that of the operands. `weft.autocast`.",
        variable="WEFT_AUTOCAST",
        choices=("", "bfloat16", "float16"),
    )
    DEVICE: str = _row("", "The device of a new tensor; '' is CPU.")
    TARGET: str = _row(
        "",
        "The target of the CPU, such as CPU:LLVM:x86_64,avx2; '' is what this machine has.",
        in_cache_key=True,
    )
    BEAM: int = _row(
        0,
        "How many candidates the kernel search keeps; 0 turns the search off.",
        in_cache_key=True,
    )
    KERNEL_SECONDS: int = _row(
        60, "The most seconds that one kernel may run on a GPU; 0 means no limit."
    )
    BEAM_SECONDS: int = _row(20, "The most seconds that the search spends on one kernel.")
    JIT: bool = _row(True, "Replay jitted functions; 0 runs them eagerly.")

    # Hidden from the type checker, which would accept every misspelling if it saw this.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            near = nearest(name, ROWS)
            fix = f"the nearest one is {near}: settings.{near}" if near else ""
            raise UnknownAttribute(f"settings: no setting is called {name}", fix=fix)


settings = Settings()
_KEYED = tuple(name for name, row in ROWS.items() if row.in_cache_key)


def table() -> tuple[Setting, ...]:
    """Return every row, in the order of the table."""
    return tuple(ROWS.values())


def cache_key() -> tuple[tuple[str, Value], ...]:
    """Return the settings that can change a compiled result, as (name, value) pairs."""
    values = scope.get()
    if values.cache_key is None:
        values.cache_key = tuple((name, values[name]) for name in _KEYED)
    return values.cache_key


# Scopes that are not settings, by the names that tinygrad's programs give them: the module that
# has the scope, which may be entered by several, and its name there.
SCOPES = {"TRAINING": ("weft.tensor.training", "train")}


def _scope(name: str, value: Value) -> Any:
    from importlib import import_module

    module, made = SCOPES[name]
    return getattr(import_module(module), made)(bool(value))


class Context:
    """Change settings in a scope: `with Context(DEBUG=2): ...`, or as a decorator.

    One Context may be entered many times, by nested calls and by several threads.

    >>> with Context(DEBUG=2, NOOPT=1):
    ...     settings.DEBUG, settings.NOOPT
    (2, True)
    """

    __slots__ = ("_changes", "_scopes")

    def __init__(self, **changes: Value) -> None:
        self._scopes = [_scope(name, changes.pop(name)) for name in SCOPES if name in changes]
        self._changes = {name: require_accepted(name, new) for name, new in changes.items()}

    def __enter__(self) -> None:
        scope.set(scope.get().inner(self._changes))
        for each in self._scopes:
            each.__enter__()

    def __exit__(self, *failure: object) -> None:
        for each in self._scopes:
            each.__exit__(*failure)
        # The scope remembers its outer one, so this object has no state for threads to mix up.
        if (outer := scope.get().outer) is not None:
            scope.set(outer)

    def apply(self) -> None:
        """Change the scope that is in force, which ends as it would have; or for good."""
        inner = scope.get().inner(self._changes)
        inner.outer = scope.get().outer
        scope.set(inner)

    def __call__(self, function: Function) -> Function:
        """Return the function with these settings in force during each call."""
        from functools import wraps

        flags = function.__code__.co_flags if hasattr(function, "__code__") else 0
        if flags & _IS_GENERATOR:
            raise NotSupported(
                f"Context: {function.__qualname__} is a generator function",
                rule="a generator runs after the call that makes it has returned, and with it "
                "the scope",
                fix="wrap the loop that consumes the generator: with Context(...): ...",
            )

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        @wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            with self:
                return await function(*args, **kwargs)

        wrapped: Any = call_async if flags & _IS_COROUTINE else call
        return wrapped  # type: ignore[no-any-return]

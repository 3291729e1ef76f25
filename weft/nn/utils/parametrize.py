"""Parametrizations: an attribute of a module that is computed from other parameters when read.

`register_parametrization(layer, "weight", f)` makes `layer.weight` the value f(original). The
original is a parameter of `layer.parametrizations.weight`, and is what is trained and saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft.nn.containers import ModuleDict, ModuleList
from weft.nn.parameter import Parameter
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.tensor import Tensor


class ParametrizationList(ModuleList):
    """The functions that a value goes through, and the parameters that it begins with."""

    def __init__(self, functions: list[Any], original: Tensor) -> None:
        super().__init__(functions)
        first = functions[0]
        value: Any = original.detach()
        if hasattr(first, "right_inverse"):
            value = first.right_inverse(value)
        if isinstance(value, Tensor):
            self.original = Parameter(value)
        else:
            for number, each in enumerate(value):
                setattr(self, f"original{number}", Parameter(each))
        self.__dict__["_count"] = None if isinstance(value, Tensor) else len(value)

    def forward(self) -> Any:
        """The value."""
        count = self.__dict__["_count"]
        if count is None:
            given = [self.original]
        else:
            given = [getattr(self, f"original{number}") for number in range(count)]
        first, *others = self
        value = first(*given)
        for each in others:
            value = each(value)
        return value


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a module, or one attribute of it, is computed from others."""
    found = module.__dict__.get("parametrizations")
    if found is None:
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """Compute an attribute of a module from its value before, or from what that came from.

    >>> from weft import nn
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).transpose()
    >>> layer = register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.transpose()).all())
    True
    """
    if is_parametrized(module, tensor_name):
        module.parametrizations[tensor_name].append(parametrization)
        return module
    original = module.__dict__.get(tensor_name)
    if not isinstance(original, Tensor):
        raise ArgumentError(
            f"register_parametrization: {type(module).__name__} has no tensor {tensor_name!r}"
        )
    functions = ParametrizationList([parametrization], original)
    value = functions()
    if not unsafe and value.shape != original.shape:
        raise ShapeError(
            f"register_parametrization: {original.shape} became {value.shape}",
            rule="a parametrization keeps the shape",
            fix="pass unsafe=True if the module can do with another shape",
        )
    delattr(module, tensor_name)
    if "parametrizations" not in module.__dict__:
        module.parametrizations = ModuleDict()
        _make_computed(module)
    module.parametrizations[tensor_name] = functions
    return module


def _make_computed(module: Any) -> None:
    """Give the module a class of its own, which computes attributes that are parametrized."""
    base: Any = type(module)

    def __getattr__(self: Any, name: str) -> Any:  # noqa: N807
        found = self.__dict__.get("parametrizations", {})
        if not name.startswith("_") and name in found:
            if _CACHED is None:
                return found[name]()
            key = (id(self), name)
            if key not in _CACHED:
                _CACHED[key] = found[name]()
            return _CACHED[key]
        return base.__getattr__(self, name)

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        found = self.__dict__.get("parametrizations", {})
        if name in found:
            raise ArgumentError(
                f"{type(self).__name__}: {name} is computed by a parametrization",
                fix=f"write to parametrizations.{name}.original",
            )
        base.__setattr__(self, name, value)

    def __deepcopy__(self: Any, memo: Any) -> Any:  # noqa: N807
        import copy

        made = object.__new__(base)
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        _make_computed(made)
        return made

    body = {
        "__getattr__": __getattr__,
        "__setattr__": __setattr__,
        "__deepcopy__": __deepcopy__,
        "__module__": base.__module__,
        "__qualname__": f"Parametrized{base.__name__}",
    }
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), body)


_CACHED: dict[tuple[int, str], Any] | None = None


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized attribute once meanwhile."""
    global _CACHED
    before, _CACHED = _CACHED, {} if _CACHED is None else _CACHED
    try:
        yield
    finally:
        _CACHED = before


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make an attribute a parameter again: with its value, or with what that came from."""
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(
            f"remove_parametrizations: {tensor_name!r} of {type(module).__name__} is a tensor"
        )
    functions = module.parametrizations[tensor_name]
    value = functions() if leave_parametrized else functions.original
    del module.parametrizations[tensor_name]
    if len(module.parametrizations) == 0:
        module.__class__ = type(module).__mro__[1]
        delattr(module, "parametrizations")
    setattr(module, tensor_name, Parameter(value))
    return module

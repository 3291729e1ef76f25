"""Modules with a forward of their own: what torch.fx traced, run by functions of Weft."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any, Final

from weft.interop.torch.graph import dtype_of
from weft.nn import functional
from weft.nn.module import Module
from weft.support.errors import ArgumentTypeError, NotSupported
from weft.tensor.tensor import Tensor

_IGNORED_HERE: Final = ("device", "inplace")


class Traced(Module):
    """A module whose forward is a graph that torch.fx made; its parts have the names they had."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.__dict__["_name"] = name
        self.__dict__["_steps"] = []

    def set_steps(self, steps: list[Any]) -> None:
        self.__dict__["_steps"] = steps

    def forward(self, *args: Any, **named: Any) -> Any:
        """Run the graph."""
        values: dict[str, Any] = {}
        given = iter(args)
        for kind, name, target, its_args, its_kwargs in self._steps:
            own = _filled(its_args, values)
            extra = _filled(its_kwargs, values)
            if kind == "placeholder":
                values[name] = _input(target, given, named, own)
            elif kind == "get_attr":
                values[name] = operator.attrgetter(target)(self)
            elif kind == "call_module":
                values[name] = operator.attrgetter(target)(self)(*own, **extra)
            elif kind == "call_method":
                values[name] = getattr(own[0], target)(*own[1:], **extra)
            elif kind == "call_function":
                values[name] = target(*own, **extra)
            else:
                return own[0]
        return None


def _input(name: str, given: Any, named: dict[str, Any], default: Any) -> Any:
    for value in given:
        return value
    if name not in named and not default:
        raise ArgumentTypeError(f"the argument {name} is missing")
    return named[name] if name in named else default[0]


class _Name(str):
    """The name of a value of a graph, among arguments."""


def _filled(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, _Name):
        return values[value]
    if isinstance(value, (list, tuple)):
        return type(value)(_filled(each, values) for each in value)
    if isinstance(value, dict):
        return {key: _filled(each, values) for key, each in value.items()}
    if isinstance(value, slice):
        return slice(*(_filled(each, values) for each in (value.start, value.stop, value.step)))
    return value


def steps_of(graph: Any, torch: Any) -> list[Any]:
    """The nodes of a graph of torch.fx, with functions of Weft; names all that has none."""
    steps, missing = [], set()

    def argument(value: Any) -> Any:
        if hasattr(value, "all_input_nodes"):
            return _Name(value.name)
        if isinstance(value, (list, tuple)):
            return type(value)([argument(each) for each in value])
        if isinstance(value, dict):
            return {key: argument(each) for key, each in value.items()}
        if isinstance(value, slice):
            return slice(*map(argument, (value.start, value.stop, value.step)))
        return dtype_of(value) if isinstance(value, torch.dtype) else value

    for node in graph.nodes:
        target = node.target
        if node.op == "call_function":
            target = _try_function(node.target)
        elif node.op == "call_method" and not hasattr(Tensor, node.target):
            target = None
        if target is None:
            missing.add(getattr(node.target, "__name__", str(node.target)))
        kwargs = {
            key: each for key, each in node.kwargs.items() if key not in ("device", "inplace")
        }
        steps.append((node.op, node.name, target, argument(tuple(node.args)), argument(kwargs)))
    if missing:
        raise NotSupported(f"from_torch: Weft has no {', '.join(sorted(missing))}")
    return steps


def _try_function(function: Any) -> Any:
    """What does here what a function of PyTorch does: the one with its name."""
    name = getattr(function, "__name__", "")
    if getattr(builtins, name, None) is function or getattr(function, "__module__", "") in (
        "_operator", "operator", "math",
    ):  # fmt: skip
        return function
    if getattr(math, name, None) is function:
        return function
    where = getattr(function, "__module__", None) or ""
    is_functional = where.startswith(("torch.nn", "torch._C._nn")) or not hasattr(Tensor, name)
    found = getattr(functional, name, None) if is_functional else getattr(Tensor, name, None)
    return found if found is not None else getattr(Tensor, name, None)

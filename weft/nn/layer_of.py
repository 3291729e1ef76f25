"""Layers made of functions: the class whose objects call a function of `nn.functional`.

The arguments after the tensors become those of the constructor, with their order and defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from weft.nn.module import Layer
from weft.support.errors import ArgumentTypeError
from weft.support.message import nearest
from weft.tensor.tensor import Tensor


def layer_of(
    function: Callable[..., Any],
    name: str,
    inputs: int = 1,
    order: str = "",
    at_call: str = "",
    **defaults: Any,
) -> type[Layer]:
    """The class `name`; `inputs` arguments are given when it is called, and those of `at_call`.

    >>> from weft.nn import functional as F
    >>> layer_of(F.elu, "ELU")(alpha=2.0)
    ELU(alpha=2.0)
    """
    given = list(inspect.signature(function).parameters.values())[inputs:]
    later = at_call.split()
    wanted = order.split() or [each.name for each in given if not each.name.startswith("_")]
    by_name = {each.name: each for each in given}
    parameters = [
        by_name[each].replace(default=defaults.get(each, by_name[each].default))
        for each in wanted
        if each not in later
    ]
    signature = inspect.Signature(parameters)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        Layer.__init__(self)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise _refused(name, signature, kwargs, error) from None
        bound.apply_defaults()
        self.__dict__["_options"] = list(bound.arguments)
        for key, value in bound.arguments.items():
            if isinstance(value, Tensor):
                self.register_buffer(key, value)
            else:
                setattr(self, key, value)

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        options = {key: getattr(self, key) for key in self._options}
        return function(*args, **options, **kwargs)

    def extra_repr(self: Any) -> str:
        shown = {
            key: getattr(self, key)
            for key in self._options
            if not isinstance(getattr(self, key), Tensor)
            and getattr(self, key) != signature.parameters[key].default
        }
        return ", ".join(f"{key}={value!r}" for key, value in shown.items())

    shown = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = signature.replace(parameters=[shown, *parameters])  # type: ignore[attr-defined]
    doc = (function.__doc__ or "").strip().split("\n")[0]
    body = {
        "__init__": __init__,
        "forward": forward,
        "extra_repr": extra_repr,
        "__doc__": f"{doc} PyTorch: nn.{name}.",
        "__module__": _module_of_caller(),
        "__qualname__": name,
    }
    return type(name, (Layer,), body)


def _module_of_caller() -> str:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None and frame.f_back.f_back is not None
    found: str = frame.f_back.f_back.f_globals["__name__"]
    return found


def _refused(
    name: str, signature: inspect.Signature, kwargs: dict[str, Any], error: TypeError
) -> ArgumentTypeError:
    unknown = [key for key in kwargs if key not in signature.parameters]
    guess = nearest(unknown[0], list(signature.parameters)) if unknown else None
    return ArgumentTypeError(
        f"{name}: {error}",
        rule="the arguments are " + ", ".join(signature.parameters),
        fix=f"write {guess}=" if guess else "",
    )

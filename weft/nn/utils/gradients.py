"""Gradients of parameters scaled and clamped, and parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.nn.optim.clipping import clip_grad_norm_ as _clip_norm
from weft.nn.optim.clipping import clip_grad_value_ as _clip_value
from weft.nn.optim.clipping import global_norm
from weft.support.errors import NotFinite, ShapeError
from weft.tensor.tensor import Tensor


def _listed(parameters: Any) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    """The norm of all tensors as if they were one vector.

    >>> get_total_norm([Tensor([3.0]), Tensor([4.0])]).item()
    5.0
    """
    listed = _listed(tensors)
    norm = global_norm(listed, norm_type) if listed else Tensor(0.0)
    if error_if_nonfinite:
        _require_finite(norm, norm_type)
    return norm


def _require_finite(norm: Tensor, norm_type: float) -> None:
    if not bool(norm.isfinite().item()):
        raise NotFinite(
            f"the norm of order {norm_type} of the gradients is {norm.item()}",
            rule="error_if_nonfinite asks for an error here",
            fix="pass error_if_nonfinite=False to scale by it anyway",
        )


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale `.grad` of all parameters to a common norm of at most `max_norm`; return the norm.

    >>> weight = Tensor([3.0, 4.0], requires_grad=True)
    >>> _ = (weight * weight).sum().backward()
    >>> clip_grad_norm_(weight, 1.0).item(), [round(each, 3) for each in weight.grad.tolist()]
    (10.0, [0.6, 0.8])
    """
    listed = [each for each in _listed(parameters) if each.grad is not None]
    if error_if_nonfinite:
        get_total_norm([each.grad for each in listed], norm_type, True)
    return _clip_norm(listed, max_norm, norm_type) if listed else Tensor(0.0)


clip_grad_norm = clip_grad_norm_


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp each element of `.grad` of all parameters to ±`clip_value`."""
    _clip_value(_listed(parameters), clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters as one vector, in their order.

    >>> parameters_to_vector([Tensor([[1.0, 2.0]]), Tensor([3.0])]).tolist()
    [1.0, 2.0, 3.0]
    """
    flat = [each.flatten() for each in parameters]
    return flat[0].cat(*flat[1:]) if len(flat) > 1 else flat[0]


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the parts of a vector to parameters."""
    at, listed = 0, list(parameters)
    total = sum(int(each.numel()) for each in listed)
    if vec.shape != (total,):
        raise ShapeError(
            f"vector_to_parameters: a vector of shape {vec.shape}",
            rule=f"the parameters have {total} elements together",
        )
    for each in listed:
        count = int(each.numel())
        each.assign(vec[at : at + count].detach().reshape(each.shape).cast(each.dtype))
        at += count

"""`grad` and `backward` with the arguments of torch.autograd."""

from __future__ import annotations

from typing import Any

from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _total(outputs: Any, seeds: Any, name: str) -> Tensor:
    """One number whose gradient is that of all outputs with their seeds."""
    listed = _listed(outputs)
    given = [None] * len(listed) if seeds is None else _listed(seeds)
    if len(given) != len(listed):
        raise ArgumentError(f"{name}: {len(given)} gradients for {len(listed)} outputs")
    total: Any = None
    for output, seed in zip(listed, given, strict=True):
        if seed is None and output.numel() != 1:
            raise ArgumentError(
                f"{name}: an output has {output.numel()} elements",
                rule="without grad_outputs an output is one number",
                fix="reduce it with sum() or mean(), or pass grad_outputs=",
            )
        part = output.sum() if seed is None else (output * seed.detach()).sum()
        total = part if total is None else total + part
    result: Tensor = total
    return result


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of outputs with respect to inputs. Graphs are always kept.

    >>> x = Tensor([3.0], requires_grad=True)
    >>> (first,) = grad((x * x).sum(), x, create_graph=True)
    >>> grad(first.sum(), x)[0].tolist()
    [2.0]
    """
    targets = _listed(inputs)
    total = _total(outputs, grad_outputs, "grad")
    if not allow_unused and not materialize_grads:
        found: list[Tensor | None] = list(total.gradient(*targets, materialize_grads=False))
    else:
        found = [_one(total, target, materialize_grads) for target in targets]
    return tuple(each if create_graph or each is None else each.detach() for each in found)


def _one(total: Tensor, target: Tensor, materialize: bool) -> Tensor | None:
    try:
        return total.gradient(target, materialize_grads=materialize)[0]
    except ArgumentError:
        return None


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, **_: Any
) -> None:
    """Add the gradients of tensors to `.grad` of the leaves they depend on."""
    _total(tensors, grad_tensors, "backward").backward()

"""Optimizers as objects: they hold parameters and state, and write what a method computes.

The loop is `optimizer.zero_grad(); loss.backward(); optimizer.step()`. A step computes gradients,
state and parameters in one schedule: each gradient is computed once, where its parameter is
updated, and no weight is copied for somebody who might still read a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from weft.nn.optim.descent import sgd
from weft.nn.optim.method import Method
from weft.support.errors import ArgumentError, ArgumentTypeError, UnknownAttribute
from weft.support.message import nearest
from weft.support.signatures import NamedErrors
from weft.tensor.tensor import Tensor
from weft.tensor.trees import tensors_in


class Optimizer(NamedErrors):
    """Parameters, and the method by which they follow their gradients.

    `params` that do not require a gradient (`requires_grad=False`), such as running statistics,
    are computed with each step and not changed. The parameters are computed when the optimizer is
    made, so that the first step is the same program as every other. `fused` is accepted for
    programs that choose: the scheduler fuses by itself.

    >>> from weft.nn.optim import sgd
    >>> weight = Tensor([1.0, 2.0])
    >>> optimizer = Optimizer([weight], lr=0.5, method=sgd(momentum=0.9))
    >>> _ = (weight * weight).sum().backward()
    >>> optimizer.step()
    >>> weight.tolist()
    [0.0, 0.0]
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float | None = None,
        device: str | None = None,
        fused: bool | None = None,
        *,
        method: Method | None = None,
    ) -> None:
        listed = list({id(each): each for each in _require_tensors(params)}.values())
        self.params = [each for each in listed if _is_parameter(each)]
        self.buffers = [each for each in listed if not _is_parameter(each)]
        if not self.params:
            raise ArgumentError(
                f"{type(self).__name__}: no parameter requires a gradient",
                facts=[("given", f"{len(listed)} tensors")],
                rule="an optimizer has something to optimize",
            )
        for each in self.params:
            each.requires_grad_(True)
        self.method = method or sgd(device=device)
        self.state = self.method.init(self.params)
        if lr is not None:
            self.lr = lr
        self.params[0].realize(*self.params[1:], *self.buffers, *tensors_in(self.state))

    @property
    def device(self) -> Any:
        """The device of the parameters."""
        return self.params[0].device

    def __repr__(self) -> str:
        count = sum(int(each.numel()) for each in self.params)
        return f"<{type(self).__name__} of {len(self.params)} tensors, {count} parameters>"

    # Hidden from the type checker, which would accept every misspelling if it saw this.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            known = [each for each in (*self.__dict__, *dir(type(self))) if each[0] != "_"]
            guess = None if name.startswith("_") else nearest(name, known)
            raise UnknownAttribute(
                f"{type(self).__name__} has no attribute {name!r}",
                rule="" if guess or name.startswith("_") else "it has " + ", ".join(known),
                fix=f"write {guess}" if guess else "",
            )

    @property
    def lr(self) -> Tensor:
        """The learning rate, of shape (1,); setting it to a number writes that number there."""
        found: Tensor = self.state["lr"].reshape(1)
        return found

    @lr.setter
    def lr(self, value: Any) -> None:
        self.state["lr"].assign(value)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or make those there are zeros."""
        for each in self.params:
            is_kept = not set_to_none and each.grad is not None
            each.grad = each.zeros_like() if is_kept else None

    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor | None:
        """Update the parameters by their gradients, and compute all of it now.

        Gradients stay readable until the next `zero_grad`. A parameter without one stays as it is.
        A `closure` is called first; it computes gradients and returns the loss, which is returned.
        """
        loss = closure() if closure else None
        wanted = self.schedule_step()
        wanted[0].realize(*wanted[1:], *([] if loss is None else [loss]))
        return loss

    def schedule_step(self) -> list[Tensor]:
        """Write the update without computing it, and return the tensors to realize together."""
        grads = [each.grad for each in self.params]
        if all(g is None for g in grads):
            raise ArgumentError(
                f"{type(self).__name__}: no parameter has a gradient",
                rule="a step follows the gradients of a loss",
                fix="call loss.backward() before step()",
            )
        new, state = self.method.update(grads, self.state, self.params)
        for target, value in zip(tensors_in(self.state), tensors_in(state), strict=True):
            if target is not value:
                target.assign(value)
        for p, value in zip(self.params, new, strict=True):
            if p is not value:
                p.assign(value)
        given = [g for g in grads if g is not None]
        return [*self.params, *tensors_in(self.state), *self.buffers, *given]


def _is_parameter(tensor: Tensor) -> bool:
    return tensor._wants is not False and tensor.is_floating_point()


def _require_tensors(params: Iterable[Tensor]) -> list[Tensor]:
    if isinstance(params, Tensor) or not isinstance(params, Iterable):
        is_one = isinstance(params, Tensor)
        raise ArgumentTypeError(
            f"optimizer: the parameters are a {type(params).__name__}",
            rule="parameters are tensors in a list",
            fix="write [x]" if is_one else "pass nn.state.get_parameters(model)",
        )
    listed = list(params)
    for number, each in enumerate(listed):
        if not isinstance(each, Tensor):
            raise ArgumentTypeError(
                f"optimizer: parameter {number} is a {type(each).__name__}",
                rule="parameters are tensors",
                fix="make an optimizer for each group of parameters, and join them by "
                "OptimizerGroup"
                if isinstance(each, Mapping)
                else "pass nn.state.get_parameters(model)",
            )
    return listed


class OptimizerGroup(Optimizer):
    """Several optimizers as one: each has parameters, a method and a learning rate of its own.

    >>> a, b = Tensor([1.0]), Tensor([1.0])
    >>> group = OptimizerGroup(Optimizer([a], lr=0.5), Optimizer([b], lr=0.25))
    >>> _ = (a + b).sum().backward()
    >>> group.step()
    >>> a.tolist(), b.tolist()
    ([0.5], [0.75])
    """

    def __init__(self, *optimizers: Optimizer) -> None:
        if not optimizers:
            raise ArgumentError("OptimizerGroup: no optimizers", rule="a group has one or more")
        self.optimizers = optimizers
        self.params = [each for one in optimizers for each in one.params]
        self.buffers = [each for one in optimizers for each in one.buffers]
        if len({id(each) for each in self.params}) != len(self.params):
            raise ArgumentError(
                "OptimizerGroup: a parameter belongs to two optimizers",
                rule="each parameter is updated by one optimizer",
            )

    def __getitem__(self, number: int) -> Optimizer:
        return self.optimizers[number]

    def __iter__(self) -> Iterator[Optimizer]:
        return iter(self.optimizers)

    def schedule_step(self) -> list[Tensor]:
        return [each for one in self.optimizers for each in one.schedule_step()]

"""Training in half precision: masters of the weights in float32, and scaled losses.

Both are methods around a method, pure like every other: a step that overflows leaves parameters
and state as they were, without a look at any number from Python, so it can be jitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft.ir.dtypes import DType, dtypes
from weft.nn.initial import in_memory
from weft.nn.optim.method import Gradients, Method, State, remembered
from weft.nn.optim.optimizer import Optimizer
from weft.nn.state import get_state_dict
from weft.support.errors import ArgumentError
from weft.tensor.host.convert import dtype_of
from weft.tensor.tensor import Tensor


def cast_parameters(
    model: Any, dtype: DType | str, skip: Callable[[str], bool] = lambda name: False
) -> None:
    """Make every float parameter of a model one of another dtype, except those `skip` names.

    Running statistics and other state without gradients stay as they are.
    """
    target = dtype_of(dtype, dtypes.bfloat16)
    if not target.is_float:
        raise ArgumentError(f"cast_parameters: to {target.name}", rule="parameters are floats")
    for name, each in get_state_dict(model).items():
        if each._wants is not False and each.is_floating_point() and not skip(name):
            each.replace(each.detach().cast(target)._same())


@remembered
def master_weights(method: Method) -> Method:
    """The method applied to float32 copies, from which the parameters are rounded each time."""

    def init(params: Sequence[Tensor]) -> State:
        masters = [_wide(p).clone() for p in params]
        return {**method.init(masters), "master": masters}

    def update(
        grads: Gradients, state: State, params: Sequence[Tensor]
    ) -> tuple[list[Tensor], State]:
        masters, inner = method.update(grads, _without(state, "master"), state["master"])
        new = [
            p if g is None else master.cast(p.dtype)
            for p, g, master in zip(params, grads, masters, strict=True)
        ]
        return new, {**inner, "master": masters}

    return Method(init, update)


def _wide(p: Tensor) -> Tensor:
    inner = p.detach()
    return inner.float() if p.dtype.bits < 32 else inner


def _without(state: State, *names: str) -> State:
    return {name: part for name, part in state.items() if name not in names}


@remembered
def loss_scaling(
    method: Method,
    initial_scale: float = 2.0**16,
    growth_interval: int = 2000,
    growth: float = 2.0,
    backoff: float = 0.5,
) -> Method:
    """The method for gradients of a loss times `state["scale"]`, which adapts itself.

    A step in which any gradient is not finite changes nothing but the scale, which becomes
    smaller; after `growth_interval` good steps in a row it becomes larger.
    """

    def init(params: Sequence[Tensor]) -> State:
        device = params[0].device
        own = {
            "scale": in_memory(initial_scale, (), dtypes.float32, device),
            "good_steps": in_memory(0.0, (), dtypes.float32, device),
        }
        return {**method.init(params), **own}

    def update(
        grads: Gradients, state: State, params: Sequence[Tensor]
    ) -> tuple[list[Tensor], State]:
        scale, good = state["scale"], state["good_steps"]
        scaled = [None if g is None else g.float() / scale for g in grads]
        is_fine = _all_finite([g for g in scaled if g is not None])
        old = _without(state, "scale", "good_steps")
        new, inner = method.update(scaled, old, params)
        grows = good + 1 >= growth_interval
        own = {
            "scale": is_fine.where(grows.where(scale * growth, scale), scale * backoff),
            "good_steps": is_fine.where(grows.where(0.0, good + 1), 0.0),
        }
        kept = [_chosen(is_fine, n, p) for n, p in zip(new, params, strict=True)]
        return kept, {**_chosen(is_fine, inner, old), **own}

    return Method(init, update)


def _all_finite(grads: Sequence[Tensor]) -> Tensor:
    flags = [g.isfinite().all() for g in grads]
    result = flags[0]
    for flag in flags[1:]:
        result = result & flag
    return result


def _chosen(condition: Tensor, new: Any, old: Any) -> Any:
    """The new tree where a condition holds, else the old one."""
    if isinstance(new, dict):
        return {name: _chosen(condition, new[name], old[name]) for name in new}
    if isinstance(new, list):
        return [_chosen(condition, n, o) for n, o in zip(new, old, strict=True)]
    return new if new is old else condition.where(new, old.detach())


class MixedPrecision(Optimizer):
    """An optimizer for a model in float16 or bfloat16: float32 masters and a scaled loss.

    >>> from weft.nn.optim import adam
    >>> weight = Tensor([1.0, 2.0], dtype="float16")
    >>> optimizer = MixedPrecision([weight], adam(lr=0.5), initial_scale=128.0)
    >>> _ = optimizer.scaled((weight * weight).sum()).backward()
    >>> optimizer.step()
    >>> weight.tolist(), weight.dtype.name
    ([0.5, 1.5], 'float16')
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        method: Method,
        initial_scale: float = 2.0**16,
        growth_interval: int = 2000,
    ) -> None:
        wrapped = loss_scaling(master_weights(method), initial_scale, growth_interval)
        super().__init__(params, method=wrapped)

    def scaled(self, loss: Tensor) -> Tensor:
        """Return the loss times the scale of now, in float32; call `backward` on that."""
        scale: Tensor = self.state["scale"]
        return loss.float() * scale

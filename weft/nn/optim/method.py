"""The functional core of optimizers: a method is two pure functions of tensors.

`init(params)` makes the state; `update(grads, state, params)` returns new parameters and a new
state as lazy expressions. Nothing is written and nothing runs: the classes of `optimizer.py` do
that, and `jit` captures either. The learning rate is a tensor of the state, so that it can change
without a new program.

State is in memory from the start, so that the first step is the same program as every other. It
is a dict: `lr` is a number, `step` counts the updates of each parameter (where a method
needs that), and every other entry is a list with a tensor for each parameter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec

from weft.ir.dtypes import DType, dtypes
from weft.nn.initial import in_memory
from weft.nn.optim.rule_bodies import RuleBodies
from weft.support.errors import ArgumentError
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor

State = dict[str, Any]
Gradients = Sequence[Tensor | None]
Mask = Callable[[Tensor], bool] | Sequence[bool] | None


class Method(NamedTuple):
    """How parameters follow from gradients, as two pure functions.

    >>> from weft.nn.optim import sgd
    >>> method = sgd(lr=0.5)
    >>> weight = Tensor([1.0, 2.0])
    >>> (weight,), state = method.update([Tensor([2.0, 2.0])], method.init([weight]), [weight])
    >>> weight.tolist()
    [0.0, 1.0]
    """

    init: Callable[[Sequence[Tensor]], State]
    update: Callable[[Gradients, State, Sequence[Tensor]], tuple[list[Tensor], State]]
    made_by: Callable[[], Method] | None = None  # what a pickle has of it

    def __reduce__(self) -> tuple[Any, ...]:
        if self.made_by is None:
            return Method, (self.init, self.update)
        return self.made_by, ()


Options = ParamSpec("Options")


def remembered(make: Callable[Options, Method]) -> Callable[Options, Method]:
    """Let methods remember how they were made, so that they can be pickled."""

    @functools.wraps(make)
    def made(*args: Options.args, **kwargs: Options.kwargs) -> Method:
        again: Any = functools.partial(made, *args, **kwargs)
        return make(*args, **kwargs)._replace(made_by=again)

    return made


class Now(NamedTuple):
    """What a rule may know besides parameter, gradient and slots."""

    lr: Tensor
    counted: Tensor | None
    decay: float

    @property
    def step(self) -> Tensor:
        """The number of this update, from 1 on, for a method that counts."""
        assert self.counted is not None
        return self.counted

    def decayed(self, x: Tensor, p: Tensor) -> Tensor:
        """A gradient or a step, and what the weight decay adds to it."""
        return x + self.decay * p if self.decay else x


class Common(NamedTuple):
    """What every method takes besides numbers of its own."""

    lr: float
    weight_decay: float
    mask: Mask  # which parameters decay
    device: str | None  # where the state is; by its parameter, if not given


Held = dict[str, Tensor]  # the state of one parameter, by the names of its slots
Result = tuple[Tensor, Held]
UpdateRule = Callable[[Tensor, Tensor, Held, Now], Result]  # of parameter and gradient
# The shapes of a parameter's slots, by name.
Slots = Callable[[Tensor], Mapping[str, tuple[int, ...]]]


def like_parameter(*names: str) -> Slots:
    """Slots with the shape of their parameter."""
    return lambda p: dict.fromkeys(names, tuple(map(known, p.shape)))


def state_dtype(p: Tensor) -> DType:
    """State has at least 32 bits: sums of small steps vanish in a half."""
    return p.dtype if p.dtype.bits > 32 else dtypes.float32


def per_parameter(
    rule: UpdateRule, slots: Slots, common: Common, counts: bool = False, initial: float = 0.0
) -> Method:
    """The method that follows a rule for each parameter by itself.

    `slots` names the state of a parameter, whose elements start as `initial`; where it `counts`,
    the updates of each parameter are counted. A parameter without a gradient stays as it is, and
    so does its state.
    """
    lr, weight_decay, given, device = common
    # A traced step is not followed in here, so nothing in here may change between its calls.
    mask: Mask = given if given is None or callable(given) else tuple(given)
    require_nonnegative(lr=lr, weight_decay=weight_decay)
    bodies = RuleBodies(rule)

    def init(params: Sequence[Tensor]) -> State:
        on = device or (params[0].device if params else None)
        state: State = {"lr": in_memory(lr, (), dtypes.float32, on)}
        if counts:
            state["step"] = in_memory(0.0, (len(params),), dtypes.float32, on)
        for p in params:
            for name, shape in slots(p).items():
                made = in_memory(initial, shape, state_dtype(p), device or p.device)
                if made.device == p.device and made.shape == p.shape:
                    made = _sharded_like(made, p)
                state.setdefault(name, []).append(made)
        return state

    def update(
        grads: Gradients, state: State, params: Sequence[Tensor]
    ) -> tuple[list[Tensor], State]:
        decays = _decays(mask, params)
        new: State = {"lr": state["lr"]}
        if counts:
            new["step"] = state["step"] + _present(grads, state["step"])
        made: list[Tensor] = []
        taken: dict[str, int] = {}
        for number, (p, g) in enumerate(zip(params, grads, strict=True)):
            names = list(slots(p))
            own = {name: state[name][taken.get(name, 0)] for name in names}
            now = Now(
                new["lr"],
                _own_count(new["step"], number) if counts else None,
                weight_decay if decays[number] else 0.0,
            )
            result, kept = (p, own) if g is None else _applied(bodies, p, g, own, now, device)
            made.append(result)
            for name in names:
                new.setdefault(name, []).append(kept[name])
                taken[name] = taken.get(name, 0) + 1
        return made, new

    return Method(init, update)


def _own_count(steps: Tensor, number: int) -> Tensor:
    """The count of one parameter. Its number is data: equal parameters have equal kernels."""
    if steps.shape[0] == 1:
        return steps[0]
    return steps[Tensor([number], dtype=dtypes.int32, device=steps.device)].reshape(())


def _sharded_like(state: Tensor, p: Tensor) -> Tensor:
    """State in memory, on several devices in the layout of its parameter."""
    sharded = state.shard_like(p)
    if sharded is not state:
        sharded._storage.take_memory()
    return sharded


def _applied(
    rule: UpdateRule, p: Tensor, g: Tensor, slots: Held, now: Now, device: str | None
) -> Result:
    """The rule in the dtype of the state, on the device of the state."""
    dtype, where = state_dtype(p), device or p.device

    def inside(x: Tensor) -> Tensor:
        return x.to(where).cast(dtype)

    counted = None if now.counted is None else inside(now.counted)
    now = Now(inside(now.lr), counted, now.decay)
    new, kept = rule(inside(p.detach()), inside(g.detach()), slots, now)
    return new.cast(p.dtype).to(p.device), kept


def _present(grads: Gradients, step: Tensor) -> Any:
    """1 for each parameter that has a gradient."""
    if all(g is not None for g in grads):
        return 1.0
    return Tensor([float(g is not None) for g in grads], device=step.device)


def _decays(mask: Mask, params: Sequence[Tensor]) -> list[bool]:
    if mask is None:
        return [True] * len(params)
    if callable(mask):
        return [bool(mask(p)) for p in params]
    if len(mask) != len(params):
        raise ArgumentError(
            f"a weight decay mask of {len(mask)} for {len(params)} parameters",
            rule="a mask is a function of a parameter, or has a bool for each parameter",
        )
    return [bool(each) for each in mask]


def require_nonnegative(**values: float) -> None:
    """Raise for a hyperparameter below 0, or one that is not a number."""
    for name, value in values.items():
        if not value >= 0:
            raise ArgumentError(f"optimizer: {name} is {value}", rule=f"{name} is 0 or more")


def require_fraction(**values: float) -> None:
    """Raise for a hyperparameter outside of 0 … 1; 1 itself keeps everything forever."""
    for name, value in values.items():
        if not 0 <= value < 1:
            raise ArgumentError(
                f"optimizer: {name} is {value}", rule=f"{name} is from 0 to below 1"
            )


def norm(x: Tensor) -> Tensor:
    """√Σx²."""
    return (x * x).sum().sqrt()

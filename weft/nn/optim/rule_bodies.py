"""Rules of optimizers as bodies: what a rule builds for one parameter is built once for its kind.

A model has hundreds of parameters of a few shapes. The rule runs on placeholders of the first of a
kind; from then on an update of that kind is a call for each result, which is written out when it
is scheduled, as if the rule had run again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft.ir.build import call, param
from weft.ir.inline import inline_body
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.tensor.autodiff.modes import grad_mode
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor

if TYPE_CHECKING:
    from weft.nn.optim.method import Held, Now, Result

# What a rule brought in from elsewhere: then it is not a function of its arguments alone.
_OUTSIDE: Final = sum(
    1 << op for op in (Op.BUFFER, Op.AFTER, Op.CALL, Op.COPY, Op.SHARD, Op.BIND, Op.VARIABLE)
)


class RuleBodies:
    """A rule of `per_parameter` with the bodies that were made of it, called as the rule is.

    The bodies of a kind are None where the rule has to run each time.
    """

    def __init__(self, rule: Callable[..., Result]) -> None:
        self._rule = rule
        self._known: dict[Any, list[UOp] | None] = {}

    def __call__(self, p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        given = [p, g, *slots.values(), now.lr]
        if now.counted is not None:
            given.append(now.counted)
        nodes = [each.uop for each in given]
        device = p.device
        kinds = tuple([(node.dtype, node.shape) for node in nodes])
        is_plain = device.__class__ is str and all(each.device == device for each in given)
        if not is_plain or any(size.__class__ is not int for _, shape in kinds for size in shape):
            return self._rule(p, g, slots, now)
        key = (kinds, tuple(slots), now.decay, now.counted is None, device, grad_mode.is_off)
        if key not in self._known:
            self._known[key] = self._try_bodies(kinds, slots, now, device)
        bodies = self._known[key]
        if bodies is None:
            return self._rule(p, g, slots, now)
        new, *kept = [p._new(call(body, *nodes)) for body in bodies]
        return new, dict(zip(slots, kept, strict=True))

    def _try_bodies(self, kinds: Any, slots: Held, now: Now, device: str) -> list[UOp] | None:
        """The bodies of the new parameter and of its slots, over the arguments in their order."""
        inside = [
            Tensor._of(Storage(param(slot, *kind), device)) for slot, kind in enumerate(kinds)
        ]
        first = 2 + len(slots)
        held = dict(zip(slots, inside[2:first], strict=True))
        counted = None if now.counted is None else inside[-1]
        now = now._replace(lr=inside[first], counted=counted)
        new, kept = self._rule(inside[0], inside[1], held, now)
        results = [new, *(kept[name] for name in slots)]
        if any(each.device != device or each.uop.ops & _OUTSIDE for each in results):
            return None
        return [inline_body(each.uop) for each in results]

"""Writes: assign, in-place operators and writes through views.

They mean what NumPy means when every line runs at once. A write makes the next version of the
storage; nothing runs until a value is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.engine.devices import is_file
from weft.ir import movement
from weft.ir.dtypes import BOOL
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.support.errors import DTypeError, NotSupported, ShapeError
from weft.support.source_line import user_line
from weft.tensor.autodiff.leaves import remember, wanted_leaves
from weft.tensor.autodiff.modes import grad_mode
from weft.tensor.checks import require_broadcast_to, without_leading_ones
from weft.tensor.methods.elementwise import lift

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def assign(self: Tensor, x: Any) -> Tensor:
    """Replace all elements, cast and broadcast to this tensor, and return it.

    The memory stays the same once there is some. To a tensor that requires a gradient the new
    value is a constant, so that an optimizer can write its parameters; what was assigned to memory
    is a constant once it is read, so that averages and caches need no graph of all their past.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([1, 2, 3])
    >>> view = x[1:]
    >>> x.assign(x * 10).tolist(), view.tolist()
    ([10, 20, 30], [20, 30])
    """
    if self._storage.memory is not None:
        self._storage.keeps_graph = False
    return set_all(self, x)


def set_all(self: Tensor, x: Any) -> Tensor:
    """Write all elements, and return the tensor; gradients go on through what is written."""
    value = x if isinstance(x, self.__class__) else self.__class__(x, device=_origin(self))
    if self._steps:
        require_writable(self)
    self._write(value.detach() if self._wants else value, "assign")
    return self


def replace(self: Tensor, x: Tensor) -> Tensor:
    """Make this tensor a tensor of the other one's storage, and return it.

    Nothing is written: views of what it was before keep that, and so does the memory. The shape
    stays; to write into the memory that there is, use `assign`.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([1, 2])
    >>> x.replace(Tensor([3, 4])).tolist()
    [3, 4]
    """
    if x.shape != self.shape:
        raise ShapeError(
            f"replace: shape {x.shape} for a tensor of shape {self.shape}",
            facts=[("tensor", self.shape), ("replacement", x.shape)],
            rule="a tensor keeps its shape",
        )
    self._storage, self._steps, self._seen = x._storage, x._steps, None
    if self._wants:
        remember(self, True)
    return self


def write(self: Tensor, value: Any, name: str) -> None:
    """Make the storage's next version, in which this view has the value."""
    if isinstance(value, (list, tuple)):
        value = self.__class__(value, device=_origin(self))
    new = _to_file(self, value) if is_file(self.device) else lift(self, value, name)
    require_no_expand(self, name)
    shape = self.shape
    if name == "index" or not shape:  # `opt.lr.assign(Tensor([0.1]))`
        new = without_leading_ones(new, len(shape))
    require_broadcast_to(name, new.shape, shape)
    node = new.cast(self.dtype).uop
    if node is self.uop:  # the second half of `x[i] += 1`
        return
    if shape_of(node) or self._storage.memory is None:
        node = movement.broadcast(node, shape)
    self._storage.write(self._steps, node)
    if self._storage.uop.line is None:
        self._storage.uop.line = user_line()
    if is_file(self.device):  # what nobody reads would never be in the file
        self.realize()


def _origin(self: Tensor) -> str:
    """Where the value of a write is made: a file takes it from the host."""
    return "CPU" if is_file(self.device) else self.device


def _to_file(self: Tensor, value: Any) -> Tensor:
    """What is written to a file, from any device; the file itself cannot compute."""
    if isinstance(value, self.__class__) and not isinstance(value.device, str):
        return value.to("CPU")
    return value if isinstance(value, self.__class__) else self.__class__(value, device="CPU")


def update(self: Tensor, result: Tensor, name: str) -> Tensor:
    """The end of an in-place operator: write the result, unless its kind does not fit."""
    require_writable(self)
    before, after = self.dtype, result.dtype
    loses = (
        after.is_inexact > before.is_inexact
        or after.is_complex > before.is_complex
        or (before.kind == BOOL and after.kind != BOOL)
    )
    if loses:
        raise DTypeError(
            f"{name}: the result is {after.name} and cannot be written to {before.name}",
            rule="an in-place operation keeps the dtype of the tensor",
            fix=f"write x = x.cast({after!r}) first, or cast the operand",
        )
    if result.shape != self.shape:
        raise ShapeError(
            f"{name}: the result has shape {result.shape} and cannot be written in place",
            facts=[("tensor", self.shape), ("result", result.shape)],
            rule="an in-place operation keeps the shape of the tensor",
        )
    self._write(result, name)
    return self


def require_no_expand(self: Tensor, name: str) -> None:
    for step in self._steps:
        if step[0] == Op.EXPAND:
            raise ShapeError(
                f"{name}: a write through an expanded view",
                facts=[("view", self.shape), ("storage", shape_of(self._storage.uop))],
                rule="several elements of an expanded view share one address in memory",
                fix="copy it first: x = x.clone()",
            )


def require_writable(self: Tensor) -> None:
    """A leaf that requires a gradient is written by `assign` alone, and not through a view."""
    if grad_mode.is_off or not (self._wants or _shows_leaf(self)):
        return
    what = "a view of a tensor" if self._steps else "a tensor"
    raise NotSupported(
        f"{what} that requires a gradient cannot be changed in place",
        rule="its gradient is that of the value it had when it was used",
        fix="use x.assign(...) between steps, or write it in `with weft.no_grad():`",
    )


def _shows_leaf(self: Tensor) -> bool:
    """Whether a tensor is a part of a leaf that requires a gradient; what is detached is not."""
    steps = self._steps
    if not steps or any(step[0] == Op.DETACH for step in steps):
        return False
    return any(leaf._storage is self._storage for leaf in wanted_leaves())

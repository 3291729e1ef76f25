"""Shape methods with a trailing underscore: the tensor itself becomes the view.

Memory is shared as before: only how this tensor sees it changes, and other views of the same
memory stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft.ir.movement import apply_all
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.tensor.methods.examples import with_example

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

_EXAMPLES: Final = {
    "squeeze": ("Tensor([[1, 2]]).squeeze_().shape", "(2,)"),
    "unsqueeze": ("Tensor([1, 2]).unsqueeze_(0).shape", "(1, 2)"),
    "t": ("Tensor([[1, 2]]).t_().shape", "(2, 1)"),
    "transpose": ("Tensor([[1, 2]]).transpose_(0, 1).shape", "(2, 1)"),
    "swapaxes": ("Tensor([[1, 2]]).swapaxes_(0, 1).shape", "(2, 1)"),
    "swapdims": ("Tensor([[1, 2]]).swapdims_(0, 1).shape", "(2, 1)"),
}


def _becoming(name: str) -> Callable[..., Tensor]:
    def function(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return become(self, getattr(self, name)(*args, **kwargs))

    function.__name__ = function.__qualname__ = f"{name}_"
    summary = f"Become what `{name}` returns. PyTorch: {name}_."
    function.__doc__ = with_example(summary, *_EXAMPLES[name])
    return function


def become(self: Tensor, other: Tensor) -> Tensor:
    """Let a tensor see the memory that another sees, as the other sees it."""
    self._storage, self._steps, self._seen = other._storage, other._steps, None
    return self


squeeze_, unsqueeze_, t_ = _becoming("squeeze"), _becoming("unsqueeze"), _becoming("t")
transpose_ = _becoming("transpose")
swapaxes_, swapdims_ = _becoming("swapaxes"), _becoming("swapdims")


def set_(self: Tensor, source: Any = None) -> Tensor:
    """Become a view of another tensor: both see one memory from now on. PyTorch: set_.

    >>> from weft.tensor import Tensor
    >>> x, y = Tensor([1.0]), Tensor([2.0, 3.0])
    >>> x.set_(y).tolist()
    [2.0, 3.0]
    """
    return become(self, self.empty(0, dtype=self.dtype) if source is None else source)


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both see the same elements of the same memory. PyTorch: is_set_to.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([1.0])
    >>> x.is_set_to(x.detach()), x.is_set_to(Tensor([1.0]))
    (True, False)
    """
    if self._storage is not tensor._storage:
        return False
    return _shown(self) is _shown(tensor)


def _shown(x: Tensor) -> UOp:
    """The node of what a tensor sees, whether or not a gradient goes through."""
    return apply_all(x._storage.uop, [step for step in x._steps if step[0] != Op.DETACH])


def detach_(self: Tensor) -> Tensor:
    """Stop gradients here: what is computed from this tensor on has none of it. PyTorch: detach_.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([1.0], requires_grad=True)
    >>> (x * 2).detach_().requires_grad
    False
    """
    become(self, self.detach())
    self.requires_grad = False
    return self

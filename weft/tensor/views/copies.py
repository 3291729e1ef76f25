"""Views under the names that say copy, and what changes no value.

A lazy tensor decides by itself what is a copy: a write to either leaves the other alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft.tensor.methods.examples import with_example

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# By the name of the method whose result is copied.
VIEWS: Final = """
    diagonal expand narrow permute select slice squeeze t transpose unfold unsqueeze view
"""
LISTS: Final = "split split_with_sizes unbind"


_EXAMPLES: Final = {
    "diagonal": ("Tensor([[1, 2], [3, 4]]).diagonal_copy().tolist()", "[1, 4]"),
    "expand": ("Tensor([1]).expand_copy((2,)).tolist()", "[1, 1]"),
    "narrow": ("Tensor([1, 2, 3]).narrow_copy(0, 1, 2).tolist()", "[2, 3]"),
    "permute": ("Tensor([[1, 2]]).permute_copy((1, 0)).tolist()", "[[1], [2]]"),
    "select": ("Tensor([[1, 2], [3, 4]]).select_copy(0, 1).tolist()", "[3, 4]"),
    "slice": ("Tensor([1, 2, 3]).slice_copy(0, 1).tolist()", "[2, 3]"),
    "squeeze": ("Tensor([[1, 2]]).squeeze_copy().tolist()", "[1, 2]"),
    "t": ("Tensor([[1, 2]]).t_copy().tolist()", "[[1], [2]]"),
    "transpose": ("Tensor([[1, 2]]).transpose_copy(0, 1).tolist()", "[[1], [2]]"),
    "unfold": ("Tensor([1, 2, 3]).unfold_copy(0, 2, 1).tolist()", "[[1, 2], [2, 3]]"),
    "unsqueeze": ("Tensor([1]).unsqueeze_copy(0).tolist()", "[[1]]"),
    "view": ("Tensor([1, 2]).view_copy((2, 1)).tolist()", "[[1], [2]]"),
    "split": ("len(Tensor([1, 2]).split_copy(1))", "2"),
    "split_with_sizes": ("len(Tensor([1, 2]).split_with_sizes_copy([1, 1]))", "2"),
    "unbind": ("len(Tensor([1, 2]).unbind_copy())", "2"),
}


def _copying(name: str) -> Callable[..., Any]:
    def function(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        result = getattr(self, name)(*args, **kwargs)
        if isinstance(result, tuple):
            return tuple(each._same() for each in result)
        return result._same()

    function.__name__ = function.__qualname__ = f"{name}_copy"
    summary = f"Return `{name}` as a value of its own. PyTorch: {name}_copy."
    function.__doc__ = with_example(summary, *_EXAMPLES[name])
    return function


def attach(cls: type[Tensor]) -> None:
    """Give a class the copying form of each view."""
    for name in (VIEWS + LISTS).split():
        setattr(cls, f"{name}_copy", _copying(name))


def same(self: Tensor) -> Tensor:
    """Return this value. PyTorch: positive, resolve_conj, resolve_neg.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).positive().tolist()
    [1.0]
    """
    return self._same()


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Add up until the shape broadcasts to this one's no more: the gradient of expand.

    PyTorch: sum_to_size.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).sum_to_size(1, 2).tolist()
    [[4, 6]]
    """
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    lead = self.ndim - len(shape)
    total = self.sum(tuple(range(lead))) if lead else self
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and total.shape[i] != 1)
    return total.sum(axes, keepdim=True) if axes else total._same()

"""Views under the names that say copy, what changes no value, and copies of other sizes.

A lazy tensor decides by itself what is a copy: a write to either leaves the other alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft.engine.buffer_nodes import new_buffer
from weft.engine.buffers import buffer_of
from weft.engine.contents import copy_contents
from weft.ir.shapes import Shape, same_shape
from weft.ir.sizes import shape_value
from weft.support.errors import NotSupported, ShapeError
from weft.tensor.checks import ints_of
from weft.tensor.core import realize_all
from weft.tensor.methods.examples import with_example
from weft.tensor.storage import Storage
from weft.tensor.trace.state import tracing

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# By the name of the method whose result is copied.
VIEWS: Final = """
    detach diagonal expand narrow permute select slice squeeze t transpose unfold unsqueeze view
    view_as_complex view_as_real
"""
LISTS: Final = "split split_with_sizes unbind"


_EXAMPLES: Final = {
    "detach": ("Tensor([1.0]).detach_copy().tolist()", "[1.0]"),
    "view_as_complex": ("Tensor([[1.0, 2.0]]).view_as_complex_copy().tolist()", "[(1+2j)]"),
    "view_as_real": ("Tensor([1 + 2j]).view_as_real_copy().tolist()", "[[1.0, 2.0]]"),
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


def with_sizes(self: Tensor, *sizes: Any) -> Tensor:
    """Return a copy whose sizes are written otherwise: as bound Variables, or as ints again.

    A jitted function called with it has one trace for all values of the variables. The copy is
    computed, and no gradient goes through it.

    >>> from weft.tensor import Tensor
    >>> from weft import Variable
    >>> rows = Variable("rows", 1, 8)
    >>> Tensor([[1], [2]]).with_sizes(rows.bind(2), 1).shape
    (bind(rows, 2), 1)
    """
    wanted = ints_of("with_sizes", sizes[0] if sizes else (), sizes[1:])
    if same_shape(wanted, self.shape):
        return self
    _require_resizable(self, wanted)
    whole = self.clone() if self._steps else self
    realize_all([whole])
    made = new_buffer(self.dtype, wanted, whole._storage.device)
    copy_contents(buffer_of(whole._storage.uop), buffer_of(made), made)
    return self._of(Storage.over(made, whole._storage.device))


def _require_resizable(x: Tensor, wanted: Shape) -> None:
    if tracing.trace is not None or tracing.depth:
        raise NotSupported(
            "with_sizes: inside of a traced function",
            rule="sizes are written otherwise before a function is traced for them",
            fix="call it on the argument, and the function with the result",
        )
    if x._wants:
        raise NotSupported(
            "with_sizes: of a tensor that requires a gradient",
            rule="no gradient goes through the copy",
            fix="ask for the gradient of the copy: x.with_sizes(...).requires_grad_()",
        )
    if not isinstance(x.device, str):
        raise NotSupported(
            "with_sizes: of a tensor over several devices", rule="it is on one device"
        )
    if shape_value(x.shape) != shape_value(wanted):
        raise ShapeError(
            f"with_sizes: {shape_value(x.shape)} elements are not {shape_value(wanted)}",
            facts=[("from", x.shape), ("to", wanted)],
            rule="each size keeps its value",
            fix="bind the Variables to the sizes of now: n.bind(x.shape[0])",
        )


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

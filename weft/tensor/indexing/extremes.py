"""`max` and `min` as both PyTorch and NumPy mean them.

`x.max(axis=1)` are values. `x.max(1)` and `x.max(dim=1)` are values too, which unpack as PyTorch's
pair: `values, indices = x.max(1)`, `x.max(1).indices`, `x.max(1)[1]`. With another tensor the two
are compared element by element.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.tensor.methods import reduce
from weft.tensor.methods.pairs import Picked

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

_NAMES = {"dim": "axis", "keepdims": "keepdim"}


def _extreme(function: Callable[..., Tensor], name: str, of_two: str) -> Callable[..., Tensor]:
    @functools.wraps(function)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not args and not kwargs:
            return function(self)
        other = args[0] if args else kwargs.get("other")
        if isinstance(other, self.__class__):
            return getattr(self, of_two)(other)  # type: ignore[no-any-return]
        as_values = "axis" in kwargs
        kwargs = {_NAMES.get(key, key): value for key, value in kwargs.items()}
        found = function(self, *args, **kwargs)
        axis = args[0] if args else kwargs.get("axis")
        if isinstance(axis, int) and not as_values and found.dtype is self.dtype:
            keepdim = args[1] if len(args) > 1 else kwargs.get("keepdim", False)
            found._pair = (name, self, axis, keepdim)
        return found

    vars(method)["reads_names"] = True  # `dim` and `axis` differ
    return method


def pair_of(self: Tensor) -> Picked:
    """The values and the indices that `max` or `min` along an axis found."""
    assert self._pair is not None
    name, source, axis, keepdim = self._pair
    return Picked(self._of(self._storage, self._steps), getattr(source, name)(axis, keepdim))


max_ = _extreme(reduce.max_, "argmax", "maximum")
min_ = _extreme(reduce.min_, "argmin", "minimum")

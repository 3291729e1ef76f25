"""Images whose convolutions run on matrix units lie in memory with their channels last.

In and Out: a tensor graph. A convolution multiplies the channels of a pixel, so these are what
copies of boxes bring as rows. Its factors are materialized with channels last, its result has them
last, and so does all that is computed from it: an op on values whose axes are permuted becomes the
op, permuted. So between convolutions nothing is copied into another order:

    relu(conv(x))   ->   relu(conv'(stage(x.permute(0, 2, 3, 1)))).permute(0, 3, 1, 2)

What leaves the graph, or is read by what has an order of its own, is a view of that. Targets
without such copies see their graphs unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weft.ir.build import global_stage, reduce_axes
from weft.ir.movement import pad, shrink
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.ir.views import unmoved
from weft.ir.walk import map_graph, with_sources
from weft.schedule.context import ScheduleContext
from weft.schedule.layout.align_factors import is_large, matrix_inputs
from weft.schedule.layout.convolutions import (
    Convolution,
    ConvolutionFactor,
    convolution_of,
)
from weft.schedule.layout.gather_windows import Windows, gathered, windows_of
from weft.schedule.layout.view_axes import (
    axis_above,
    base_of_factor,
    inverse,
    permuted,
    permuted_factor,
    sizes_of,
    with_base,
    with_last,
    without_cast,
)
from weft.target.target import Target

# A value is laid out as an operand is that has at least this part of its elements, or at least
# the other part and no larger operand in another order: windows show an image many times.
LEAST_SHARE: Final = 0.5
LEAST_SHOWN: Final = 1 / 64
_PERMUTED: Final = ELEMENTWISE | {Op.STAGE, Op.REDUCE}


def channels_last(root: UOp, context: ScheduleContext) -> UOp:
    """Lay out images, and what is computed from them, as matrix units read them."""
    dtypes, alignment = matrix_inputs(context.target)
    if not dtypes or not root.ops >> Op.REDUCE & 1:
        return root
    layouts = _Layouts(alignment, context.target)

    def laid_out(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = with_sources(node, made)
        found = None
        if new.op == Op.REDUCE and is_large(new.src[0]):
            found = convolution_of(new, dtypes, layouts.last)
        if found is not None:
            return layouts.convolved(new, found)
        if new.op == Op.STORE:
            return layouts.stored(new)
        return layouts.reordered(new) if new.op in _PERMUTED and layouts.last else new

    return map_graph(root, laid_out)


class _Layouts:
    """Which values have another axis last than their users see.

    `last` has them by the nodes that compute them; `sums` are those of convolutions, and what is
    computed from these in the same kernel.
    """

    def __init__(self, alignment: int, target: Target) -> None:
        self.alignment = alignment
        self.target = target
        self.last: set[UOp] = set()
        self.sums: set[UOp] = set()
        self._copies: dict[tuple[UOp, int], UOp] = {}

    def convolved(self, reduction: UOp, found: Convolution) -> UOp:
        """A convolution of factors whose channels are last, and so are those of the result."""
        first, second = map(self.seen, found.factors)
        found = Convolution((first, second), found.column)
        windows = windows_of(reduction, found, self.target)
        if windows is not None:
            return self.gathered(reduction, windows)
        factors = list(map(self.laid_out, found.factors))
        rank = len(shape_of(reduction))
        order = with_last(rank, found.column)
        views = [permuted_factor(each, order) for each in factors]
        product = make(Op.MUL, reduction.dtype, tuple(views))
        axes = [order.index(axis) for axis in reduction.arg[1]]
        result = reduce_axes(product, Op.ADD, sorted(axes))
        self.last.add(result)
        self.sums.add(result)
        return permuted(result, inverse(order))

    def seen(self, factor: ConvolutionFactor) -> ConvolutionFactor:
        """A factor whose channels are those that its value has last."""
        is_last = factor.base in self.last
        return factor._replace(channel=len(shape_of(factor.base)) - 1) if is_last else factor

    def laid_out(self, factor: ConvolutionFactor) -> UOp:
        """The view that a factor is, of a value with its channels last."""
        if factor.channel is None:
            return factor.view
        new = self.with_channels_last(factor.base, factor.channel)
        return with_base(factor.view, factor.base, new)

    def gathered(self, reduction: UOp, windows: Windows) -> UOp:
        """A convolution as a product of rows of windows."""
        other = windows.other
        if not windows.is_window_summed:  # slopes, pixel by pixel
            other = other._replace(view=self.laid_out(other))
        view = without_cast(other.view, base_of_factor(other.view))
        total, result = gathered(reduction, windows, view, self.alignment)
        self.last.add(total)
        self.sums.add(total)
        return result

    def with_channels_last(self, base: UOp, channel: int) -> UOp:
        """A value, materialized with an axis last and in rows that copies can read."""
        sizes = sizes_of(base)
        line = max(self.alignment // base.dtype.itemsize, 1)
        more = -sizes[channel] % line
        is_last = all(size == 1 for size in sizes[channel + 1 :])
        if is_last and not more:
            return base
        if (base, channel) not in self._copies:
            order = with_last(len(sizes), channel)
            moved = permuted(base.src[0] if base.op == Op.STAGE else base, order)
            ends = [sizes[axis] for axis in order]
            if more:
                moved = pad(moved, [*((0, 0) for _ in ends[1:]), (0, more)])
            whole = global_stage(moved)
            if more:
                whole = shrink(whole, [(0, size) for size in ends])
            self._copies[base, channel] = permuted(whole, inverse(order))
        return self._copies[base, channel]

    def reordered(self, node: UOp) -> UOp:
        """An op that computes its elements in the order in which it reads most of them."""
        axis = self.fast_axis(node)
        if axis is None:
            return node
        rank = len(shape_of(node))
        order = with_last(rank, axis)
        src = tuple([permuted(source, order) for source in node.src])
        if node.op == Op.REDUCE:
            axes = tuple(sorted(order.index(each) for each in node.arg[1]))
            result = make(Op.REDUCE, node.dtype, src, (node.arg[0], axes))
        else:
            result = make(node.op, node.dtype, src, node.arg)
        self.last.add(result)
        if node.op in ELEMENTWISE and any(unmoved(s) in self.sums for s in src):
            self.sums.add(result)
        return permuted(result, inverse(order))

    def fast_axis(self, node: UOp) -> int | None:
        """The axis along which an op reads memory; None where there is nothing to permute."""
        sizes = sizes_of(node.src[0]) if node.op == Op.REDUCE else sizes_of(node)
        if sum(size > 1 for size in sizes) < 2:
            return None
        axis = self._read_along(node.src, sizes)
        if axis is None and node.op == Op.REDUCE and node.src[0].op in ELEMENTWISE:
            axis = self._read_along(node.src[0].src, sizes, has_windows=True)
        is_kept = axis is not None and sizes[axis] > 1
        return axis if is_kept and not (node.op == Op.REDUCE and axis in node.arg[1]) else None

    def _read_along(
        self, sources: Sequence[UOp], sizes: Sequence[int], has_windows: bool = False
    ) -> int | None:
        """The axis along which the largest source is read that has another one last."""
        found: tuple[int, int] | None = None
        for source in sources:
            base = unmoved(source)
            if base not in self.last or len(shape_of(source)) != len(sizes):
                continue
            count = _count(sizes_of(base))
            least = LEAST_SHARE if self._is_outdone(count, sources) else LEAST_SHOWN
            if not has_windows and count < least * _count(sizes_of(source)):
                continue
            axis = axis_above(source, base, len(shape_of(base)) - 1)
            if axis is not None and (found is None or count > found[0]):
                found = count, axis
        return None if found is None else found[1]

    def _is_outdone(self, count: int, sources: Sequence[UOp]) -> bool:
        """Whether a source in an order of its own has more elements."""
        others = [base for base in map(unmoved, sources) if base not in self.last]
        return any(_count(sizes_of(base)) > count for base in others)

    def stored(self, store: UOp) -> UOp:
        """A store in the order of its memory: a convolution is materialized in its own first."""
        value = store.src[1]
        base = unmoved(value)
        if base is value or base not in self.sums or not sizes_of(base):
            return store
        axis = axis_above(value, base, len(shape_of(base)) - 1)
        if axis is not None and all(size == 1 for size in sizes_of(value)[axis + 1 :]):
            return store
        kept = with_base(value, base, global_stage(base))
        return make(store.op, store.dtype, (store.src[0], kept, *store.src[2:]), store.arg)


def _count(sizes: Sequence[int]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count

"""What every family of methods stands on: a tensor is a storage, seen through movement steps.

`uop` is the node of the value now: the storage's current version with the steps applied. Reading
it is how arithmetic captures a value; a later write makes another version and leaves it alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from weakref import ref

from weft.engine.devices import DEVICE_NAMES
from weft.ir import movement
from weft.ir.dtypes import DType
from weft.ir.layouts import layout_of
from weft.ir.movement import Movement
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, make
from weft.support.errors import UnknownAttribute
from weft.support.message import nearest
from weft.support.source_line import user_line
from weft.tensor.autodiff.leaves import note_wanted
from weft.tensor.autodiff.modes import grad_mode
from weft.tensor.autodiff.passes import forget_passes, gradient_on_demand, leads_to_wanted
from weft.tensor.names_elsewhere import try_advice
from weft.tensor.realize import realize
from weft.tensor.storage import Storage
from weft.tensor.trace.state import GoneStorage, tracing
from weft.tensor.turns import lock, tracer, wait_for_trace

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


class NamingType(type):
    """A class that answers a misspelt name with the nearest one."""

    def __getattr__(cls, name: str) -> Any:
        # Private names are asked for by protocols, often, and nobody reads the message.
        raise unknown_name(cls.__name__, name, () if name.startswith("_") else dir(cls))


def unknown_name(owner: str, name: str, known: Iterable[str]) -> UnknownAttribute:
    public = [each for each in known if not each.startswith("_")]
    advice = try_advice(name, public)
    if advice is not None:
        rule, fix = advice
        return UnknownAttribute(f"{owner} has no attribute {name!r}", rule=rule, fix=fix)
    guess = None if name.startswith("_") else nearest(name, public)
    return UnknownAttribute(
        f"{owner} has no attribute {name!r}", fix=f"write {guess}" if guess else ""
    )


class Core(metaclass=NamingType):
    """The parts of a tensor, and how one tensor makes another."""

    __slots__ = ("__weakref__", "_grad", "_pair", "_seen", "_steps", "_storage", "_wants")
    _storage: Storage
    _steps: tuple[Movement, ...]
    # The version that `uop` was last asked for, and the result.
    _seen: tuple[UOp, UOp] | None
    _grad: Tensor | None
    # What `max` or `min` along an axis was taken of: method, tensor, axis, keepdim.
    _pair: tuple[str, Tensor, int, bool] | None
    # What `requires_grad` says.
    _wants: bool | None

    @classmethod
    def _of(cls, storage: Storage, steps: tuple[Movement, ...] = ()) -> Tensor:
        made: Any = object.__new__(cls)
        made._storage = storage
        made._steps = steps
        made._seen = made._grad = made._pair = made._wants = None
        return made  # type: ignore[no-any-return]

    @classmethod
    def _value(cls, uop: UOp, device: Any) -> Tensor:
        """A new tensor with the value of a node, on a device."""
        if uop.line is None:
            uop.line = user_line()
        return cls._of(Storage(uop, device))

    def _new(self, uop: UOp) -> Tensor:
        """A new tensor with the value of a node, on this tensor's device.

        Every operation ends here, so it calls as little as it can.
        """
        if uop.line is None:
            uop.line = user_line()
        device = self._storage.device
        if device.__class__ is tuple:
            layout_of(uop)
        if grad_mode.is_off and uop.dtype.is_inexact:
            uop = make(Op.DETACH, uop.dtype, (uop,))
        made: Any = object.__new__(self.__class__)
        made._storage = Storage(uop, device)
        made._steps = ()
        made._seen = made._grad = made._pair = made._wants = None
        return made  # type: ignore[no-any-return]

    def _same(self) -> Tensor:
        """A new tensor with this value, which later writes to either keep apart."""
        return self._new(self.uop)

    def _view(self, *steps: Movement) -> Tensor:
        """A tensor that shares the storage and sees it through further steps."""
        made = self._of(self._storage, self._steps + steps)
        uop = made.uop
        if uop.line is None:
            uop.line = user_line()
        return made

    @property
    def uop(self) -> UOp:
        """The node of the current value."""
        base = self._storage.uop
        if tracer.thread and wait_for_trace():
            base = self._storage.uop
        if not self._steps:
            return base
        if self._seen is None or self._seen[0] is not base:
            self._seen = (base, movement.apply_all(base, self._steps))
        return self._seen[1]

    @property
    def grad(self) -> Tensor | None:
        """What `backward` has added up for this tensor; None before."""
        if tracing.trace is not None:
            tracing.trace.note_grad_read(self)
        return self._grad if self._grad is not None else gradient_on_demand(self)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if tracing.trace is not None:
            tracing.trace.note_grad_write(self)
        self._grad = value
        forget_passes(self._storage)

    @property
    def requires_grad(self) -> bool | None:
        """Whether `backward` gives this tensor a gradient, or goes through it on its way.

        None where nobody said so.
        """
        return self._wants if self._wants is not None else leads_to_wanted(self)

    @requires_grad.setter
    def requires_grad(self, value: bool | None) -> None:
        self._wants = value
        note_wanted(self, bool(value))

    @property
    def shape(self) -> Shape:
        """The size of each axis: ints, or nodes where a size is symbolic."""
        return shape_of(self.uop)

    @property
    def dtype(self) -> DType:
        """What an element is, such as `dtypes.float32`."""
        return self._storage.uop.dtype

    @property
    def device(self) -> Any:
        """The name of the device that has the memory, or will have it; of several, a tuple."""
        return DEVICE_NAMES[self._storage.device]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(shape_of(self.uop))

    # Hidden from the type checker, which would accept every misspelling if it saw this.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in ("values", "indices") and self._pair is not None:
                from weft.tensor.indexing.extremes import pair_of

                return getattr(pair_of(self), name)
            raise unknown_name("a Tensor", name, dir(self.__class__))

    def __repr__(self) -> str:
        if isinstance(self._storage, GoneStorage):
            return f"<Tensor without a value: {self._storage.summary}>"
        from weft.tensor.host.shown import described

        return described(self)  # type: ignore[arg-type]  # every Core is a Tensor

    def _repr_html_(self) -> str:
        from weft.tensor.host.shown import as_html

        return as_html(self)  # type: ignore[arg-type]  # every Core is a Tensor

    def __hash__(self) -> int:
        return id(self)


def realize_all(tensors: Iterable[Core]) -> None:
    """Compute the storages of some tensors.

    A tensor that is the only view of its storage needs the elements it shows and no others, so it
    gets a storage of its own, unless others show the same bits. While a function is traced nothing
    is computed, because all of it is computed when the trace runs.
    """
    tensors = list(tensors)
    if tracing.trace is not None:
        tracing.trace.note_realized([tensor._storage for tensor in tensors])
        return
    with lock:
        storages: list[Storage] = []
        for tensor in tensors:
            is_lazy = tensor._storage.uop.op != Op.BUFFER and tensor._storage.memory is None
            if is_lazy and tensor._steps and not tensor._storage.is_linked:
                _take_alone(tensor)
            storages.append(tensor._storage)
        realize(storages)


def _take_alone(tensor: Core) -> None:
    """Give a view a storage of its own, unless somebody else holds the one that it is of."""
    shared, steps = ref(tensor._storage), tensor._steps
    own = Storage(_without_gradient_mark(tensor), tensor._storage.device)
    own.keeps_graph = all(step[0] != Op.DETACH for step in steps)
    tensor._storage = own  # which was the last reference to the other, or it was not
    other = shared()
    if other is None:
        tensor._steps = ()
    else:
        tensor._storage = other


def _without_gradient_mark(tensor: Core) -> UOp:
    return movement.apply_all(
        tensor._storage.uop, [step for step in tensor._steps if step[0] != Op.DETACH]
    )

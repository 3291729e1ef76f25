"""The check whether a call has the signature of the last one, without making a key.

Most calls are like the one before: whole tensors of the same shapes, the same values, and bound
variables with any value. For those this check and the run itself are all that a call costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import DType
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.rewrite.trace_file import current
from weft.support.setting import scope
from weft.tensor.jit.program import TracedProgram
from weft.tensor.jit.signature import SCALARS, WeakIdentity
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor
from weft.tensor.trace.state import GoneStorage, tracing
from weft.tensor.trees import LEAF, flatten
from weft.tensor.turns import tracer

if TYPE_CHECKING:
    from weft.tensor.jit.jit import Jit


class FastPath:
    """What the arguments and surroundings of the last call were."""

    def __init__(self, jitted: Jit, program: TracedProgram, args: tuple[Any, ...]) -> None:
        self.program = program
        # A trace belongs to a scope, so it is asked for once.
        self.finish = program.finish if current() is None else program.finish_watched
        self._shared = jitted.shared
        self._scope = scope.get()
        self._training = Tensor.training
        # For each argument what its tensor must be, or None and the value that it must be.
        self._wanted: list[tuple[DType, Any, str, Any] | None] = []
        self._values: list[Any] = []
        for arg in args:
            row = None
            if isinstance(arg, Tensor):
                node = arg._storage.uop
                row = (node.dtype, node.arg[1], node.arg[2], arg._wants)
            self._wanted.append(row)
            if isinstance(arg, UOp):
                self._values.append(arg.src[0])
            else:  # an object is compared without being kept alive
                self._values.append(arg if isinstance(arg, SCALARS) else WeakIdentity(arg))

    @classmethod
    def try_make(
        cls, jitted: Jit, program: TracedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> FastPath | None:
        """A check for arguments that are whole tensors, apart from each other, and values."""
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        sizes = [arg for arg in args if isinstance(arg, UOp)]
        storages = {tensor._storage for tensor in tensors}
        fits = (
            not kwargs
            and all(flatten(arg, []) == LEAF for arg in args)
            and all(isinstance(arg, SCALARS) or _can_be_watched(arg) for arg in args)
            and all(size.op == Op.BIND for size in sizes)
            and len({size.src[0].arg[0] for size in sizes}) == len(sizes)
            and program.is_plain
            and not (program.gradients_in or program.read_gradients)
            and len(program.rows) == len(tensors) == len(storages)
            and jitted.shared.isdisjoint(storages)
            and not any(tensor._steps or tensor._storage.uop.src for tensor in tensors)
        )
        return cls(jitted, program, args) if fits else None

    def try_inputs(self, args: tuple[Any, ...]) -> tuple[list[Storage], dict[UOp, UOp]] | None:
        """The storages of the arguments and the bound variables if all is as it was, else None."""
        if (
            scope.get() is not self._scope
            or tracing.depth
            or self.program.is_stale
            or Tensor.training is not self._training
            or len(args) != len(self._wanted)
            or not self.program.state.holds()
        ):
            return None
        inputs: list[Storage] = []
        variables: dict[UOp, UOp] = {}
        for arg, wanted, value in zip(args, self._wanted, self._values, strict=True):
            if wanted is None:
                if value.__class__ is UOp:
                    if arg.__class__ is not UOp or arg.op != Op.BIND or arg.src[0] is not value:
                        return None
                    variables[value] = arg
                elif arg is not value and (
                    value.__class__ is not WeakIdentity or value() is not arg
                ):
                    return None
                continue
            if arg.__class__ is not Tensor or arg._steps or arg._wants is not wanted[3]:
                return None
            storage = arg._storage
            node = storage.uop
            if node.op != Op.BUFFER or node.dtype is not wanted[0]:
                return None
            _, shape, device = node.arg
            if shape != wanted[1] or device != wanted[2] or node.src or storage in self._shared:
                return None
            if storage.is_linked:
                return None
            grad = arg._grad
            if grad is not None and not isinstance(grad._storage, GoneStorage):
                return None
            inputs.append(storage)
        if len(inputs) > 1 and len(set(inputs)) != len(inputs):
            return None
        if tracer.thread:  # some may be placeholders
            return None
        return inputs, variables


def _can_be_watched(thing: Any) -> bool:
    return type(thing).__weakrefoffset__ != 0

"""Custom kernels: a kernel that the user writes as UOps, called like any function of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.engine.storage import new_buffer
from weft.ir.build import param
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.spec import verify
from weft.ir.spec_kernel import KERNEL_SPEC
from weft.ir.uop import UOp, make
from weft.ir.walk import topological
from weft.support.errors import ArgumentTypeError
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor


def custom_kernel(
    build: Callable[..., UOp],
    *inputs: Tensor,
    shape: Sequence[int],
    dtype: DType | None = None,
    name: str = "custom",
) -> Tensor:
    """Run a kernel written by hand and return the tensor that it fills.

    `build(output, *inputs)` receives the memory of the result and of each input as PARAM nodes and
    returns the STORE that writes the result, over ranges from `weft.ir.build.range_`.

    >>> from weft.ir.build import index_of, load, range_, store
    >>> def add_one(out, x):
    ...     i = range_(0, 4)
    ...     return store(index_of(out, [i]), load(index_of(x, [i])) + 1.0, [i])
    >>> custom_kernel(add_one, Tensor([1.0, 2.0, 3.0, 4.0]), shape=(4,)).tolist()
    [2.0, 3.0, 4.0, 5.0]
    """
    if not inputs:
        raise ArgumentTypeError(
            "custom_kernel: there is no input",
            law="the device of the inputs is where the kernel runs",
            fix="pass at least one tensor",
        )
    kind = inputs[0].dtype if dtype is None else dtype
    device = inputs[0].device
    arguments = [tensor.uop for tensor in inputs]
    memory = [param(0, kind, shape)]
    memory += [param(slot, x.dtype, shape_of(x)) for slot, x in enumerate(arguments, 1)]
    body = _kernel(build(*memory), name)
    output = new_buffer(kind, shape, device)
    call = make(Op.CALL, dtypes.void, (output, *arguments), body)
    return Tensor._of(Storage(make(Op.AFTER, kind, (output, call)), device))


def _kernel(stores: UOp, name: str) -> UOp:
    """The KERNEL around a STORE, or around a SINK of several; checked, since a person wrote it."""
    if stores.op not in (Op.STORE, Op.SINK):
        raise ArgumentTypeError(
            "custom_kernel: build returned no STORE",
            law="a kernel is a STORE, or a SINK of STOREs",
            fix="return weft.ir.build.store(place, value, ranges)",
        )
    ranges = sorted(n.arg for n in topological(stores) if n.op == Op.RANGE)
    loops = tuple((number, "loop") for number in ranges)
    src = stores.src if stores.op == Op.SINK else (stores,)
    made = make(Op.KERNEL, dtypes.void, src, (name, loops))
    verify(made, KERNEL_SPEC, pass_name="custom kernel")
    return made

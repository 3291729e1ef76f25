"""Custom kernels: UOps or finished programs of a user's own, called like a function of tensors.

In the graph this is a CALL whose body is a KERNEL or a PROGRAM. The body fills memory that it is
not given as an argument: the values of the call. So it nests in functions, and what it computes
is known by a gradient alone that is given with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from weft.ir.build import Size, call, item, param
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.program import Program, as_node
from weft.ir.shapes import shape_of
from weft.ir.spec.kernel import KERNEL_SPEC
from weft.ir.spec.spec import verify
from weft.ir.uop import UOp, make
from weft.ir.views import memory_of
from weft.ir.walk import topological
from weft.support.errors import ArgumentError, ArgumentTypeError
from weft.support.source_line import user_line
from weft.tensor.autodiff.custom_gradient import Gradient, with_gradient
from weft.tensor.tensor import Tensor

Build = Callable[..., UOp] | Program


@overload
def custom_kernel(
    build: Build,
    *inputs: Tensor,
    shape: Sequence[Size],
    dtype: DType | None = None,
    name: str = "custom",
    gradient: Gradient | None = None,
) -> Tensor: ...


@overload
def custom_kernel(
    build: Build,
    *inputs: Tensor,
    shape: Sequence[Sequence[Size]],
    dtype: DType | Sequence[DType] | None = None,
    name: str = "custom",
    gradient: Gradient | None = None,
) -> tuple[Tensor, ...]: ...


def custom_kernel(
    build: Build,
    *inputs: Tensor,
    shape: Sequence[Size] | Sequence[Sequence[Size]],
    dtype: DType | Sequence[DType] | None = None,
    name: str = "custom",
    gradient: Gradient | None = None,
) -> Any:
    """Run a kernel written by hand and return the tensor that it fills, or the tensors.

    `build(*outputs, *inputs)` receives memory as PARAM nodes and returns the STORE that writes the
    output, over ranges from `weft.ir.build.range_`; a SINK of STOREs where `shape` holds
    several shapes, one for each output. The dtype is that of the first input unless it is given.

    >>> from weft.ir.build import index_of, load, range_, store
    >>> def add_one(out, x):
    ...     i = range_(0, 4)
    ...     return store(index_of(out, [i]), load(index_of(x, [i])) + 1.0, [i])
    >>> custom_kernel(add_one, Tensor([1.0, 2.0, 3.0, 4.0]), shape=(4,)).tolist()
    [2.0, 3.0, 4.0, 5.0]

    Instead of `build` there may be a finished `Program`, which takes the memory of its outputs and
    then that of its inputs. `gradient(inputs, outputs, gradients)` is as for `@function`.
    """
    if not inputs:
        raise ArgumentTypeError(
            "custom_kernel: there is no input",
            rule="the device of the inputs is where the kernel runs",
            fix="pass at least one tensor",
        )
    has_several = all(isinstance(sizes, (tuple, list)) for sizes in shape) and bool(shape)
    shapes: Sequence[Any] = shape if has_several else [shape]
    kinds = _kinds(dtype, len(shapes), inputs[0].dtype)
    device = inputs[0].device
    arguments = [tensor.uop for tensor in inputs]
    given = [param(slot, x.dtype, shape_of(x)) for slot, x in enumerate(arguments)]
    made = [
        param(slot, kind, sizes)
        for slot, (kind, sizes) in enumerate(zip(kinds, shapes, strict=True), len(given))
    ]
    if isinstance(build, Program):
        body = _program(build, [*made, *given])
    else:
        body = _kernel(build(*made, *given), name, made)
    done = call(body, *arguments)
    done.line = user_line()
    values = [item(done, number, kind) for number, kind in enumerate(kinds)]
    if gradient is not None:
        values = with_gradient(values, arguments, gradient, device)
    results = tuple(Tensor._value(value, device) for value in values)
    return results if has_several else results[0]


def _kinds(dtype: DType | Sequence[DType] | None, count: int, default: DType) -> list[DType]:
    """The dtype of each output."""
    if dtype is None or isinstance(dtype, DType):
        return [default if dtype is None else dtype] * count
    if len(dtype) != count:
        raise ArgumentError(
            f"custom_kernel: there are {count} outputs and {len(dtype)} dtypes",
            rule="each output has a dtype, or one is given for all",
        )
    return list(dtype)


def _kernel(stores: UOp, name: str, outputs: list[UOp]) -> UOp:
    """The KERNEL around a STORE, or around a SINK of several; checked, since a person wrote it."""
    if stores.op not in (Op.STORE, Op.SINK):
        raise ArgumentTypeError(
            "custom_kernel: build returned no STORE",
            rule="a kernel is a STORE, or a SINK of STOREs",
            fix="return weft.ir.build.store(address, value, ranges)",
        )
    nodes = topological(stores)
    written = {memory_of(node.src[0]) for node in nodes if node.op == Op.STORE}
    if written != set(outputs):
        raise ArgumentError(
            "custom_kernel: the kernel writes other memory than its outputs",
            facts=[("outputs", len(outputs)), ("memory written", len(written))],
            rule="a kernel writes every output, and no input",
        )
    ranges = sorted(node.arg for node in nodes if node.op == Op.RANGE)
    loops = tuple((number, "loop") for number in ranges)
    src = stores.src if stores.op == Op.SINK else (stores,)
    made = make(Op.KERNEL, dtypes.void, src, (name, loops))
    verify(made, KERNEL_SPEC, pass_name="custom kernel")
    return made


def _program(program: Program, memory: list[UOp]) -> UOp:
    """The PROGRAM of a finished program, if it fits the memory that it is called with."""
    taken = [parameter.dtype for parameter in program.parameters]
    if taken != [address.dtype for address in memory] or not (program.source or program.binary):
        raise ArgumentError(
            f"custom_kernel: the program {program.name!r} does not fit its call",
            facts=[
                ("takes", ", ".join(dtype.name for dtype in taken)),
                ("is given", ", ".join(address.dtype.name for address in memory)),
            ],
            rule="a program has a source, and takes its outputs, then its inputs",
        )
    return as_node(program, memory)

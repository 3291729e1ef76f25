"""A program as what PyTorch calls: its tensors in and out, without copies on the CPU.

A `Compiled` is called by AOTAutograd with a list of tensors and sizes. Memory that comes again at
the same address is the same tensor of Weft: parameters are wrapped once. Each set of shapes is a
trace of the JIT of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from weft.interop.torch.graph import Expected, Program, Ref, Step, dtype_of
from weft.interop.torch.layout import order_of
from weft.interop.torch.sizes import Sizes
from weft.support.errors import InternalError, UsageError
from weft.support.source_line import NOWHERE
from weft.tensor.host.values import stored_array
from weft.tensor.jit.jit import jit
from weft.tensor.tensor import Tensor

_MOST_WRAPPED: Final = 8  # addresses that an input is remembered at


class Compiled:
    """A graph of PyTorch that Weft runs; `traced` is the jitted function."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._boxed_call = True  # PyTorch reads this of the object, and hands over a list
        self._torch: Any = import_module("torch")
        self._values = [each for each in program.outputs if each.kind == "value"]
        self._wrapped: list[dict[Any, Tensor]] = [{} for _ in program.inputs]
        self.traced = jit(self._results)

    def __call__(self, args: list[Any]) -> list[Any]:
        given = list(args)
        args.clear()  # nobody else holds what is used up here
        program = self.program
        sizes = Sizes(program.symbols, given)
        drawn = [draw(sizes) for draw in program.draws]
        everything = [*given, *program.constants, *drawn]
        orders: list[Any] = [None] * len(everything)
        for number, value in enumerate(everything):
            if isinstance(value, self._torch.Tensor) and not value.is_contiguous():
                orders[number] = order = order_of(value.shape, value.stride())
                everything[number] = value.contiguous() if order is None else value.permute(order)
        inputs = [self._input(*each) for each in enumerate(everything)]
        results = self.traced(tuple(orders) if any(orders) else None, *inputs)
        return self._outputs(given, results, sizes)

    def _input(self, number: int, value: Any) -> Any:
        """A tensor without gaps as one of Weft over the same memory."""
        if not isinstance(value, self._torch.Tensor):
            return value
        address = value.data_ptr()
        known = self._wrapped[number]
        found = known.get((address, value.shape))
        if found is None or found.dtype is not dtype_of(value.dtype):
            if len(known) >= _MOST_WRAPPED:
                known.clear()
            found = known[address, value.shape] = _wrapped(value, address)
        return found

    def _outputs(self, given: Sequence[Any], results: Sequence[Tensor], sizes: Sizes) -> list[Any]:
        tensors = iter(results)
        memories: set[int] = set()
        made: list[Any] = []
        for output in self.program.outputs:
            if output.kind == "input":
                made.append(given[output.source])
            elif output.kind == "number":
                made.append(sizes.number(output.source))
            else:
                made.append(self._shown(next(tensors), output.layout, sizes, memories))
        return made

    def _shown(self, value: Tensor, layout: Any, sizes: Sizes, memories: set[int]) -> Any:
        """A tensor of PyTorch over the memory of a result, of which there is no other."""
        dtype = _torch_dtype(self._torch, value)
        array = stored_array(value)
        if not array.size:
            return layout.shown(self._torch.empty(array.shape, dtype=dtype), sizes)
        found = self._torch.from_numpy(array)
        found = found if found.dtype == dtype else found.view(dtype)
        address = found.data_ptr()
        if address in memories:
            found = found.clone()
        memories.add(address)
        return layout.shown(found, sizes)

    def _results(self, orders: Any, *inputs: Any) -> list[Tensor]:
        """What the JIT traces: the outputs that are tensors, in the order of their memory."""
        program = self.program
        values: dict[int, Any] = {}
        for number, value in zip(program.inputs, inputs, strict=True):
            values[number] = value
        for number, order in zip(program.inputs, orders or (), strict=bool(orders)):
            if order is not None:
                inverse = sorted(range(len(order)), key=order.__getitem__)
                values[number] = values[number].permute(tuple(inverse))
        for step in program.steps:
            values[step.result] = _run(step, values)
        return [
            each.layout.packed(values[each.source]).clone()
            for each in self._values
            if each.layout is not None
        ]


def _wrapped(value: Any, address: int) -> Tensor:
    dtype = dtype_of(value.dtype)
    shape = tuple(map(int, value.shape))
    made = Tensor.from_blob(address, shape, dtype=dtype, device="CPU")
    return made.requires_grad_(False)


def _torch_dtype(torch: Any, value: Tensor) -> Any:
    names = {
        "fp8e4m3": "float8_e4m3fn",
        "fp8e5m2": "float8_e5m2",
        "fp8e4m3fnuz": "float8_e4m3fnuz",
        "fp8e5m2fnuz": "float8_e5m2fnuz",
    }
    return getattr(torch, names.get(value.dtype.name, value.dtype.name))


def _run(step: Step, values: dict[int, Any]) -> Any:
    """Compute a node, and give its results the dtypes that PyTorch expects."""
    args = [_filled(each, values) for each in step.args]
    kwargs = {key: _filled(value, values) for key, value in step.kwargs.items()}
    if step.call is None:
        return step.function(*args, **kwargs)
    try:
        found = step.function(step.call, *args, **kwargs)
    except UsageError as error:
        error.what = f"torch.compile: {step.name}: {error.what}"
        error.args = (error.what,)
        error.where = NOWHERE
        raise
    return _fitted(step, found, step.expected)


def _filled(template: Any, values: dict[int, Any]) -> Any:
    if isinstance(template, Ref):
        return values[template.number]
    if type(template) is tuple:
        return tuple(_filled(each, values) for each in template)
    return template


def _fitted(step: Step, found: Any, expected: Any) -> Any:
    if type(expected) is tuple:
        return tuple(_fitted(step, *pair) for pair in zip(found, expected, strict=False))
    if not isinstance(expected, Expected) or not isinstance(found, Tensor):
        return found
    if expected.shape is not None and tuple(found.shape) != expected.shape:
        raise InternalError(
            f"torch.compile: {step.name} has the shape {found.shape}, PyTorch {expected.shape}"
        )
    return found if found.dtype is expected.dtype else found.cast(expected.dtype)

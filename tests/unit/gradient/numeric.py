"""What the tests of gradients share: central differences, the spec, and torch as a second opinion.

A case is a graph over float64 buffers, numbered from 0. The seed of every check is a buffer of
random numbers, so that a gradient that is right only for ones does not pass.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.gradient.reverse import gradients
from weft.ir.arrays.values import Array
from weft.ir.build import buffer, sink
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.spec.spec import verify
from weft.ir.spec.tensor import TENSOR_SPEC
from weft.ir.uop import UOp, make
from weft.reference.tensor import evaluate

Arrays = dict[int, Array]
SEED = 99  # the number of the buffer that holds the seed
STEP = 1e-5


def memory(number: int, *shape: Any, dtype: DType = dtypes.float64) -> UOp:
    return buffer(number, dtype, shape, "CPU")


def on(op: int, *sources: UOp) -> UOp:
    return make(op, sources[-1].dtype, sources)


def move(op: int, source: UOp, arg: tuple[Any, ...], *symbolic: UOp) -> UOp:
    return make(op, source.dtype, (source, *symbolic), arg)


def derive(output: UOp, targets: Sequence[UOp], seed: UOp | None = None) -> list[UOp]:
    """The gradients, all of which exist and obey the spec."""
    found = gradients(output, targets, seed)
    assert None not in found
    results = [each for each in found if each is not None]
    verify(sink(*results), TENSOR_SPEC, "gradient")
    for target, result in zip(targets, results, strict=True):
        assert result.dtype is target.dtype
    return results


def check(
    output: UOp,
    targets: Sequence[UOp],
    arrays: Mapping[int, Array],
    seed: int = 0,
    variables: Mapping[str, int] | None = None,
    tolerance: float = 1e-6,
) -> None:
    """Compare with central differences, for every element of the targets, which are buffers."""
    value = evaluate(output, arrays, variables)
    weights = np.random.default_rng(seed).uniform(0.5, 1.5, value.shape)
    results = derive(output, targets, buffer(SEED, output.dtype, output.shape, "CPU"))
    found = evaluate(results, {**arrays, SEED: weights}, variables)
    for target, result in zip(targets, found, strict=True):
        expected = differences(
            lambda given: float(np.sum(evaluate(output, given, variables) * weights)),
            arrays,
            target.arg[0],
        )
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


def differences(
    function: Callable[[Arrays], float], arrays: Mapping[int, Array], number: int
) -> Array:
    """The slope by each element of one buffer."""
    start = arrays[number]
    slopes = np.zeros(start.shape)
    for address in np.ndindex(start.shape):
        ends = []
        for step in (STEP, -STEP):
            moved = start.copy()
            moved[address] += step
            ends.append(function({**arrays, number: moved}))
        slopes[address] = (ends[0] - ends[1]) / (2 * STEP)
    return slopes


def check_second_order(output: UOp, x: UOp, arrays: Mapping[int, Array]) -> None:
    """Compare the gradient of a nonlinear function of the gradient with central differences."""
    (first,) = derive(output, [x])
    check(first * first, [x], arrays, tolerance=1e-5)


def check_torch(
    graph: Callable[..., UOp], function: Callable[..., Any], *arrays: Array, seed: int = 0
) -> None:
    """Compare graph(*buffers) with function(*tensors): value and gradients, NaN included."""
    import torch

    inputs = [memory(number, *array.shape) for number, array in enumerate(arrays)]
    contents = dict(enumerate(arrays))
    output = graph(*inputs)
    weights = np.random.default_rng(seed).uniform(0.5, 1.5, output.shape)
    results = derive(output, inputs, memory(SEED, *output.shape))
    found = evaluate([output, *results], {**contents, SEED: weights})
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    value = function(*tensors)
    value.backward(torch.tensor(weights))
    expected = [value.detach(), *(tensor.grad for tensor in tensors)]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-12, atol=1e-14)


def reduced(op: int, value: UOp, *axes: int) -> UOp:
    return make(Op.REDUCE, value.dtype, (value,), (op, axes))

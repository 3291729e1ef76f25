"""Gradients compared with differences of values, as torch.autograd.gradcheck does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.autograd.functional import jvp
from weft.autograd.grad import grad
from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError, GradcheckError, NotSupported
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor

Function = Callable[..., Any]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _checked_inputs(inputs: Any) -> tuple[list[Any], list[int]]:
    """The inputs, and the positions of those whose gradient is checked."""
    given = _listed(inputs)
    positions = [
        number for number, each in enumerate(given) if isinstance(each, Tensor) and each._wants
    ]
    if not positions:
        raise ArgumentError(
            "gradcheck: no input requires a gradient",
            rule="the gradients of inputs with requires_grad=True are checked",
        )
    for number in positions:
        if given[number].dtype.is_complex:
            raise NotSupported(
                "gradcheck: a complex input",
                rule="inputs and results are real",
                fix="check a function of view_as_real(x), and of its result",
            )
        if given[number].dtype is not dtypes.float64:
            warnings.warn(
                f"gradcheck: input {number} is {given[number].dtype.name}; differences need "
                "float64 to be exact",
                stacklevel=3,
            )
    return given, positions


def _results(func: Function, given: list[Any]) -> list[Tensor]:
    found = [each for each in _listed(func(*given)) if isinstance(each, Tensor)]
    return [each for each in found if each.is_floating_point()]


def _differences(func: Function, given: list[Any], position: int, eps: float) -> list[Any]:
    """For each result, its change by each element of an input: (elements in, elements out)."""
    at = given[position].detach().numpy()
    rows: list[list[Any]] = []
    for element in range(at.size):
        sides = []
        for step in (eps, -eps):
            moved = at.reshape(-1).copy()
            moved[element] += step
            x = Tensor(moved.reshape(at.shape), device=given[position].device)
            values = _results(func, [*given[:position], x, *given[position + 1 :]])
            sides.append([each.detach().numpy().astype(np.float64).reshape(-1) for each in values])
        up, down = sides
        rows.append([(a - b) / (2 * eps) for a, b in zip(up, down, strict=True)])
    return [np.stack(each) for each in zip(*rows, strict=True)] if rows else []


def _slopes(output: Tensor, x: Tensor) -> Any:
    """The gradients of each element of a result: (elements in, elements out)."""
    size = int(output.numel())
    columns = []
    for element in range(size):
        seed = np.zeros(size, np.float64)
        seed[element] = 1.0
        seed_of = Tensor(seed.reshape(output.shape), dtype=output.dtype, device=output.device)
        (found,) = grad(output, x, seed_of, allow_unused=True, materialize_grads=True)
        assert found is not None
        columns.append(found.numpy().astype(np.float64).reshape(-1))
    return np.stack(columns, axis=1) if columns else np.zeros((int(x.numel()), 0))


def _changes(func: Function, given: list[Any], position: int, number: int) -> Any:
    """The same by forward mode."""
    x = given[position]
    size = int(x.numel())
    rows = []

    def one(each: Tensor) -> Tensor:
        return _results(func, [*given[:position], each, *given[position + 1 :]])[number]

    for element in range(size):
        along = np.zeros(size, np.float64)
        along[element] = 1.0
        tangent = Tensor(along.reshape(x.shape), dtype=x.dtype, device=x.device)
        _, change = jvp(one, x.detach(), tangent)
        rows.append(change.numpy().astype(np.float64).reshape(-1))
    return np.stack(rows)


def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether gradients are the differences of values: (f(x + eps) - f(x - eps)) / 2 eps.

    Every element is moved; `fast_mode` changes nothing. Inputs are float64 and require gradients.

    >>> gradcheck(lambda x: x.sin(), Tensor([0.5, 1.0], dtype="float64", requires_grad=True))
    True
    """
    given, positions = _checked_inputs(inputs)
    try:
        for position in positions:
            _compare(func, given, position, eps, atol, rtol, check_backward_ad, check_forward_ad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _compare(
    func: Function,
    given: list[Any],
    position: int,
    eps: float,
    atol: float,
    rtol: float,
    is_backward: bool,
    is_forward: bool,
) -> None:
    wanted = _differences(func, given, position, eps)
    outputs = _results(func, given)
    for number, (output, differences) in enumerate(zip(outputs, wanted, strict=True)):
        found = []
        if is_backward:
            found.append(("the gradient", _slopes(output, given[position])))
        if is_forward:
            found.append(("forward mode", _changes(func, given, position, number)))
        for kind, slopes in found:
            if not np.allclose(slopes, differences, rtol=rtol, atol=atol, equal_nan=True):
                raise GradcheckError(
                    f"gradcheck: {kind} of result {number} by input {position} is not its change",
                    facts=[("computed", slopes.tolist()), ("differences", differences.tolist())],
                    rule=f"they agree within {atol:g} + {rtol:g} of the difference",
                )


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    **options: Any,
) -> bool:
    """Whether gradients of gradients are the differences of gradients.

    >>> gradgradcheck(lambda x: x**3, Tensor([0.5, 1.0], dtype="float64", requires_grad=True))
    True
    """
    given, positions = _checked_inputs(inputs)
    outputs = _results(func, given)
    rng = np.random.default_rng(0)
    if grad_outputs is None:
        seeds = [
            Tensor(
                rng.normal(size=tuple(map(known, each.shape))),
                dtype=each.dtype,
                device=each.device,
            )
            for each in outputs
        ]
    else:
        seeds = [each.detach() for each in _listed(grad_outputs)]
    for each in seeds:
        each.requires_grad_()
    count = len(given)

    def gradients(*values: Any) -> tuple[Any, ...]:
        args = [
            each.requires_grad_() if number in positions and not each._wants else each
            for number, each in enumerate(values[:count])
        ]
        results = _results(func, args)
        total: Any = 0.0
        for result, seed in zip(results, values[count:], strict=True):
            total = total + (result * seed).sum()
        wanted = [args[number] for number in positions]
        return grad(total, wanted, create_graph=True, allow_unused=True, materialize_grads=True)

    return gradcheck(
        gradients, (*given, *seeds), eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, **options,
    )  # fmt: skip

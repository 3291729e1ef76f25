"""Random calls of the tensor API, compared with PyTorch: values, dtypes, shapes and gradients.

    python -m fuzz.api --count 20000 --seed 1 --device CPU

A case is a method with random legal arguments (`fuzz.api_calls`) on random arrays, those without
elements and without axes included. `--only N` runs one case of a seed and prints its inputs.
Where PyTorch refuses a call the case says nothing, because Weft may allow more.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from typing import Any, Final

import numpy as np

import fuzz.api_calls_layers
import fuzz.api_calls_shapes  # noqa: F401 -- these add their calls
from fuzz.api_calls import MAKERS, torch
from fuzz.api_draw import Call, Draw
from weft.ir.uop import sweep
from weft.support.settings import Context
from weft.tensor import Tensor

# A formula of halves rounds after every op; PyTorch computes many of them in float32.
_HALF: Final = 16.0
_GRADIENT_TOLERANCE: Final = 1e-7


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def make_call(seed: int, number: int) -> Call:
    draw = Draw(seed * 1_000_003 + number)
    return MAKERS[draw.choice(sorted(MAKERS))](draw)


def try_expected(call: Call) -> list[Any] | None:
    """PyTorch's outputs, floats computed in float64 and rounded once; None where it refuses."""
    inputs = [torch().from_numpy(np.array(array)) for array in call.arrays]
    try:
        native = listed(call.theirs(*[each.clone() for each in inputs]))
        wide = native
        if any(each.is_floating_point() for each in native) and call.name != "cast":
            wider = [x.double() if x.is_floating_point() else x for x in inputs]
            wide = listed(call.theirs(*wider))
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
        return None
    return [exact.to(each.dtype) for each, exact in zip(native, wide, strict=True)]


def try_difference(call: Call) -> str | None:
    """What a call does that PyTorch's does not, or None."""
    wanted = try_expected(call)
    if wanted is None:
        return None
    try:
        found = listed(call.ours(*[Tensor(array) for array in call.arrays]))
        got = [each.numpy() for each in found]
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    if len(got) != len(wanted):
        return f"{len(got)} outputs, not {len(wanted)}"
    for ours, array, theirs in zip(found, got, wanted, strict=True):
        name = str(theirs.dtype).removeprefix("torch.")
        if ours.dtype.name != name or ours.shape != tuple(theirs.shape):
            return f"{ours.dtype.name} {ours.shape}, not {name} {tuple(theirs.shape)}"
        problem = _values_differ(array, theirs, call.ulps)
        if problem:
            return problem
    return _gradients_differ(call) if call.has_gradient else None


def _values_differ(got: Any, theirs: Any, ulps: float) -> str | None:
    wanted = theirs.to(torch().float64).numpy() if theirs.is_floating_point() else theirs.numpy()
    if got.dtype.kind != "f":
        return None if np.array_equal(got, wanted) else f"{got.tolist()}, not {wanted.tolist()}"
    limits = np.finfo(got.dtype)
    scale = float(limits.eps) * ulps * (_HALF if got.dtype.itemsize == 2 else 1)
    finite = np.abs(np.where(np.isfinite(wanted), wanted, 0.0))
    wide = got.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (wide == wanted) | (np.isnan(wide) & np.isnan(wanted))
        near = np.abs(wide - wanted) <= scale * max(
            np.max(finite, initial=0.0), float(limits.tiny)
        )
    if np.all(same | near):
        return None
    return f"{got.tolist()}, not {wanted.tolist()}"


def _gradients_differ(call: Call) -> str | None:
    """The gradients of a weighted sum of all outputs, both computed in float64."""
    arrays = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in call.arrays]
    theirs = [torch().from_numpy(np.array(array)) for array in arrays]
    targets = [x.requires_grad_() for x in theirs if x.is_floating_point()]
    if not targets:
        return None
    total: Any = 0.0
    for each in listed(call.theirs(*theirs)):
        if each.is_floating_point():
            total = (each * _weights(tuple(each.shape), torch().from_numpy)).sum() + total
    if isinstance(total, float):  # no output is a float
        return None
    wanted = torch().autograd.grad(total, targets, materialize_grads=True)
    try:
        ours = [Tensor(array) for array in arrays]
        total = 0.0
        for each in listed(call.ours(*ours)):
            if each.is_floating_point():
                total = (each * _weights(each.shape, Tensor)).sum() + total
        found = total.gradient(*[x for x in ours if x.is_floating_point()], materialize_grads=True)
        got = [each.numpy() for each in found]
    except Exception as error:
        return f"gradient: {type(error).__name__}: {str(error).splitlines()[0]}"
    for number, (mine, other) in enumerate(zip(got, wanted, strict=True)):
        array = other.numpy()
        scale = max(float(np.max(np.abs(array), initial=0.0)), 1.0)
        if mine.shape != array.shape or not np.allclose(
            mine, array, rtol=0, atol=_GRADIENT_TOLERANCE * scale, equal_nan=True
        ):
            return f"gradient {number}: {mine.tolist()}, not {array.tolist()}"
    return None


def _weights(shape: Any, make: Any) -> Any:
    return make(np.random.default_rng(7).normal(size=tuple(shape)))


def describe(call: Call) -> str:
    shapes = ", ".join(f"{array.dtype.name}{array.shape}" for array in call.arrays)
    return f"{call.name}({call.text}) on {shapes}"


def check(seed: int, count: int, device: str, only: int | None = None) -> dict[int, str]:
    """Run cases; what went wrong, by the number of the case."""
    problems = {}
    numbers = range(count) if only is None else [only]
    scope = Context(DEVICE=device, CACHE=False, CHECK="memory")
    with scope, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number in numbers:
            call = make_call(seed, number)
            problem = try_difference(call)
            if problem is not None:
                problems[number] = f"{describe(call)}: {problem}"
            if only is not None:
                print(describe(call), *call.arrays, sep="\n")
            if number % 200 == 199:
                sweep()
    return problems


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--device", default="PYTHON")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed} on {options.device}")
    start = time.perf_counter()
    problems = check(options.seed, options.count, options.device, options.only)
    for number, text in problems.items():
        print(f"case {number}: {text[:600]}")
    kinds = Counter(text.partition("(")[0] for text in problems.values())
    seconds = time.perf_counter() - start
    print(f"{options.count} cases, {len(problems)} differences {dict(kinds)}, {seconds:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

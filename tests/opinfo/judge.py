"""How one sample is judged: results and gradients beside PyTorch's."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

import weft
from tests.opinfo.samples import RANDOM, flat, function_of, samples_of, weft_of
from weft import Tensor

RTOL: Final = 2e-3
ATOL: Final = 2e-4


class Verdict(NamedTuple):
    """What became of a sample: whether it is right, and the reason where it is not."""

    values: str  # "" where right
    gradients: str | None  # None where there are none


class Skipped(Exception):  # noqa: N818 -- not an error
    """PyTorch itself does not compute this sample."""


def judge(
    op: Any, most: int, seconds: int = 30, seed: int = 0, dtype: str = "float32"
) -> list[tuple[str, Verdict]]:
    """The verdicts on the samples of an operator, each with the call in words."""
    function = function_of(op)
    assert function is not None, op.name
    verdicts = []
    for sample in samples_of(op, most, seed, _has_slopes(op, dtype), dtype):
        try:
            with limited(seconds), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                verdict = _verdict(op, function, sample)
        except Skipped:
            continue
        except TimeoutError:
            verdict = Verdict("TimeoutError", None)
        verdicts.append((_words(sample), verdict))
    return verdicts


def _has_slopes(op: Any, dtype: str) -> bool:
    import torch

    return bool(op.supports_autograd) and getattr(torch, dtype) in op.supported_backward_dtypes(
        "cpu"
    )


def _verdict(op: Any, function: Callable[..., Any], sample: Any) -> Verdict:
    try:
        expected = op(sample.input, *sample.args, **sample.kwargs)
    except Exception as error:
        raise Skipped from error
    if sample.kwargs.get("dropout_p"):  # random
        raise Skipped
    leaves: list[tuple[Any, Tensor]] = []
    try:
        arguments = weft_of((sample.input, *sample.args), leaves)
        keywords = {
            name: weft_of(value, leaves)
            for name, value in sample.kwargs.items()
            if name not in ("device", "layout", "pin_memory")
        }
        actual = function(*arguments, **keywords)
        problem = _compare(op, actual, expected)
        if problem and "value" in problem:  # of what is not unique, the sample says what is
            problem = _compare_processed(op, sample, actual, expected) or problem
            problem = "" if problem == "same" else problem
    except TimeoutError:
        raise
    except Exception as error:
        problem = _reason(error)
        return Verdict(problem, problem if _slopes_wanted(op, sample, expected) else None)
    if not _slopes_wanted(op, sample, expected) or op.name in (*RANDOM, "zero_"):
        return Verdict(problem, None)
    if problem:
        return Verdict(problem, problem)
    try:
        return Verdict(problem, _compare_gradients(sample, actual, expected, leaves))
    except Skipped:
        return Verdict(problem, None)
    except TimeoutError:
        raise
    except Exception as error:
        return Verdict(problem, _reason(error))


def _slopes_wanted(op: Any, sample: Any, expected: Any) -> bool:
    if not op.supports_autograd:
        return False
    return any(getattr(each, "requires_grad", False) for each in flat(expected))


def _compare(op: Any, actual: Any, expected: Any) -> str:
    if isinstance(expected, tuple) and isinstance(actual, Tensor):
        actual = tuple(actual)  # what unpacks is a tuple too
    ours, theirs = list(flat(actual)), list(flat(expected))
    if len(ours) != len(theirs):
        return f"{len(ours)} results for {len(theirs)}"
    for mine, other in zip(ours, theirs, strict=True):
        problem = _difference(mine, other, op.name in RANDOM)
        if problem:
            return problem
    return ""


def _compare_processed(op: Any, sample: Any, actual: Any, expected: Any) -> str:
    """ "same" where results agree after `output_process_fn_grad`: signs of eigenvectors differ."""
    process = sample.output_process_fn_grad
    try:
        before, after = process(expected), process(actual)
    except Exception:
        return ""
    if before is expected:
        return ""
    return _compare(op, after, before) or "same"


def _difference(mine: Any, other: Any, only_shape: bool) -> str:
    a, b = _array(mine), _array(other)
    if a.shape != b.shape:
        return f"shape {a.shape} for {b.shape}"
    if a.dtype.kind != b.dtype.kind and {a.dtype.kind, b.dtype.kind} != {"i", "u"}:
        return f"dtype {a.dtype} for {b.dtype}"
    if only_shape:
        return ""
    is_narrow = str(getattr(other, "dtype", "")).endswith("bfloat16")
    if is_narrow or (
        b.dtype.kind in "fc" and b.dtype.itemsize < (8 if b.dtype.kind == "c" else 4)
    ):
        close = np.isclose(a.astype("f4"), b.astype("f4"), 2e-2, 1e-2, equal_nan=True)
    elif b.dtype.kind in "fc":
        close = np.isclose(a, b, RTOL, ATOL, equal_nan=True)
    else:
        close = a == b
    if not close.all():
        index = np.argwhere(~close)[0] if close.ndim else ()
        return f"value {a[tuple(index)]!s} for {b[tuple(index)]!s}"
    return ""


def _array(value: Any) -> np.ndarray:
    import torch

    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        value = value.clone() if value._is_zerotensor() else value
    if str(getattr(value, "dtype", "")).endswith("bfloat16"):
        value = value.float()
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def _compare_gradients(
    sample: Any, actual: Any, expected: Any, leaves: list[tuple[Any, Tensor]]
) -> str:
    import torch

    process = sample.output_process_fn_grad
    if isinstance(expected, tuple) and isinstance(actual, Tensor):
        actual = tuple(actual)
    pairs = zip(flat(process(actual)), flat(process(expected)), strict=True)
    wanted = [pair for pair in pairs if getattr(pair[1], "requires_grad", False)]
    theirs = [torch.view_as_real(b.resolve_conj()) if b.is_complex() else b for _, b in wanted]
    mine = [weft.view_as_real(a) if b.is_complex() else a for a, b in wanted]
    inputs = [value for value, _ in leaves]
    if not theirs or not inputs:
        raise Skipped
    seeds = [_seed(each.shape) for each in theirs]
    try:
        total = sum(
            (each * torch.from_numpy(s)).sum() for each, s in zip(theirs, seeds, strict=True)
        )
        slopes = torch.autograd.grad(total, inputs, allow_unused=True)
    except Exception as error:
        raise Skipped from error
    output = sum((each * Tensor(s)).sum() for each, s in zip(mine, seeds, strict=True))
    targets = [tensor for _, tensor in leaves]
    ours = output.gradient(*targets, materialize_grads=True)
    for number, (slope, one) in enumerate(zip(slopes, ours, strict=True)):
        a = _array(one)
        b = np.zeros_like(a) if slope is None else _array(slope)
        if a.shape != b.shape:
            return f"gradient {number}: shape {a.shape} for {b.shape}"
        scale = max(1.0, float(np.nanmax(np.abs(b), initial=0))) if np.isfinite(b).all() else 1.0
        narrow = one.dtype.itemsize == 2
        close = np.isclose(a, b, *((5e-2, 2e-2 * scale) if narrow else (5e-3, 1e-3 * scale)), True)
        if not close.all():
            index = tuple(np.argwhere(~close)[0])
            return f"gradient {number}: {a[index]!s} for {b[index]!s}"
    return ""


def _seed(shape: Any) -> np.ndarray:
    count = int(np.prod(shape))
    return (np.cos(np.arange(count) * 1.7) + 1.5).astype("float32").reshape(tuple(shape))


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:160]


def _words(sample: Any) -> str:
    def word(value: Any) -> str:
        import torch

        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype)[6:]}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "(" + ", ".join(map(word, value)) + ")"
        return repr(value)[:60]

    parts = [word(sample.input), *map(word, sample.args)]
    parts += [f"{name}={word(value)}" for name, value in sample.kwargs.items()]
    return ", ".join(parts)


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in the block after some seconds."""

    def expire(*_: Any) -> None:
        raise TimeoutError(f"{seconds} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

"""PyTorch's own samples of its operators (`op_db`), and what stands for them here.

A sample is a call: an input, arguments and keywords. `function_of` finds the name in Weft's
namespaces; `weft_of` makes Weft's values of PyTorch's.
"""

from __future__ import annotations

import inspect
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

import weft
from weft import Tensor, dtypes

# Operators whose results are random or undefined: shapes and dtypes are compared.
RANDOM: Final = frozenset(
    """normal uniform cauchy exponential geometric log_normal bernoulli multinomial randn
    randn_like rand_like randint randint_like empty empty_like new_empty empty_strided
    new_empty_strided empty_permuted nn.functional.dropout nn.functional.dropout2d
    nn.functional.dropout3d nn.functional.alpha_dropout nn.functional.feature_alpha_dropout
    nn.functional.rrelu nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d
    nn.functional.multi_head_attention_forward svd_lowrank pca_lowrank""".split()  # noqa: SIM905
)
# Names of PyTorch's inside: its dispatcher, its sparse layouts, its compiler of CUDA strings.
INTERNAL: Final = ("jiterator_", "torch.", "_", "sparse.", "to_sparse", "hash_tensor")


def op_database(dtype: str = "float32") -> list[Any]:
    """`op_db` of a dtype; it imports a package that programs need not have."""
    if "expecttest" not in sys.modules:
        try:
            import expecttest  # type: ignore[import-not-found]  # noqa: F401
        except ImportError:
            module = types.ModuleType("expecttest")
            module.TestCase = unittest.TestCase  # type: ignore[attr-defined]
            sys.modules["expecttest"] = module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
        from torch.testing._internal.common_methods_invocations import op_db

        return [op for op in op_db if getattr(torch, dtype) in op.dtypes]


def is_internal(name: str) -> bool:
    return name.startswith(INTERNAL) and not name.startswith("__")


def function_of(op: Any) -> Callable[..., Any] | None:
    """What a sample of an operator calls: what has its name here.

    `op_db` calls some operators by a function of its own that arranges the arguments; the same
    function runs here, with Weft instead of `torch`.
    """
    found = named(op.name)
    code = getattr(op.op, "__code__", None)
    if found is None or code is None or op.op.__name__ != "<lambda>":
        return found
    if "torch" not in code.co_names or "wrapper_set_seed" in code.co_names:
        return found
    return types.FunctionType(
        code,
        {**op.op.__globals__, "torch": weft},
        "rebound",
        op.op.__defaults__,
        op.op.__closure__,
    )


def named(name: str) -> Callable[..., Any] | None:
    """What has this name in Weft: a function of a namespace, or a method."""
    if "." in name:
        owner: Any = weft
        for part in name.split("."):
            owner = _try_attribute(owner, part)
            if owner is None:
                return None
        return owner  # type: ignore[no-any-return]
    found = inspect.getattr_static(Tensor, name, None)
    if isinstance(found, property):
        return lambda x: getattr(x, name)
    if found is not None:
        return getattr(Tensor, name)  # type: ignore[no-any-return]
    return _try_attribute(weft, name)  # type: ignore[no-any-return]


def _try_attribute(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except (AttributeError, ImportError):
        return None


def chosen(items: list[Any], most: int) -> list[Any]:
    """At most so many of them, evenly from the first to the last."""
    if len(items) <= most:
        return items
    indices = np.linspace(0, len(items) - 1, most).round().astype(int)
    return [items[index] for index in sorted(set(indices.tolist()))]


def samples_of(
    op: Any, most: int, seed: int = 0, requires_grad: bool = False, dtype: str = "float32"
) -> list[Any]:
    import torch

    torch.manual_seed(seed)
    np.random.seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = op.sample_inputs("cpu", getattr(torch, dtype), requires_grad)
        return chosen(list(samples), most)


def weft_of(value: Any, leaves: list[tuple[Any, Tensor]] | None = None) -> Any:
    """The value with Weft's tensors and dtypes; `leaves` collects those that want gradients."""
    import torch

    if isinstance(value, torch.Tensor):
        wants = value.requires_grad and leaves is not None
        value_of = value.detach().resolve_conj().resolve_neg().cpu()
        narrow = value.dtype == torch.bfloat16
        array = (value_of.float() if narrow else value_of).numpy()
        dtype = dtypes.bfloat16 if narrow else None
        made = Tensor(array, dtype=dtype, requires_grad=True if wants else None)
        if wants and leaves is not None:
            leaves.append((value, made))
        return made
    if isinstance(value, torch.dtype):
        return getattr(dtypes, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return None
    if isinstance(value, (torch.memory_format, torch.layout)):
        return str(value).removeprefix("torch.")
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(weft_of(each, leaves) for each in value)
    if callable(value) and getattr(value, "__module__", "").startswith("torch"):
        name = getattr(value, "__name__", None) or type(value).__name__
        return getattr(weft.nn.functional, name, None) or getattr(weft.nn, name)()
    if isinstance(value, dict):
        return {key: weft_of(each, leaves) for key, each in value.items()}
    return value


def flat(value: Any) -> Iterator[Any]:
    """The leaves of nested tuples and lists."""
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from flat(each)
    else:
        yield value

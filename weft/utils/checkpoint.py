"""Gradients that compute inner values again, by the names of torch.utils.checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.support.module_names import missing_name
from weft.tensor.autodiff.transforms import checkpoint as checkpointed


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function whose inner values are computed again for its gradient, not kept.

    `weft.checkpoint(function)` is that function.

    >>> from weft import Tensor
    >>> x = Tensor([0.0])
    >>> checkpoint(lambda x: (x.exp() + 1).log(), x, use_reentrant=False).gradient(x)[0].tolist()
    [0.5]
    """
    return checkpointed(function)(*args, **kwargs)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **_: Any
) -> Any:
    """Call functions one after the other; within each of several parts nothing is kept.

    >>> from weft import Tensor
    >>> checkpoint_sequential([Tensor.relu, Tensor.square], 2, Tensor([3.0])).tolist()
    [9.0]
    """
    steps = list(functions)
    size = max(len(steps) // segments, 1)
    bounds = [*range(0, size * segments, size)][:segments]
    for number, start in enumerate(bounds):
        stop = len(steps) if number + 1 == len(bounds) else start + size
        input = checkpoint(_chain(steps[start:stop]), input)
    return input


def _chain(steps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x

    return run


__getattr__ = missing_name(__name__)

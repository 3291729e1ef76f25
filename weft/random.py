"""Seeds and states of random numbers, with the names of torch.random."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft.functions import get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Iterator[None]:
    """Draw as if nothing had been drawn meanwhile, once the scope ends.

    >>> from weft import Tensor
    >>> with fork_rng():
    ...     first = Tensor.rand(2).tolist()
    >>> Tensor.rand(2).tolist() == first
    True
    """
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)

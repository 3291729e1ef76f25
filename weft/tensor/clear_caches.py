"""Give back the memory of everything that this process can make again."""

from __future__ import annotations

import gc

from weft.engine.devices import open_devices
from weft.engine.spare import SPARE
from weft.ir.uop import sweep
from weft.support.bounded_cache import clear_bounded_caches
from weft.support.cache import forget_memory
from weft.tensor.turns import lock


def clear_caches() -> None:
    """Forget schedules, kernels and other things that can be made again, and free idle memory.

    Tensors, and the traces of jitted functions that are still there, keep what they use. The
    cache on disk stays as it is. No program needs this: what is remembered is bounded.

    >>> from weft import Tensor, clear_caches
    >>> x = (Tensor([1, 2]) + 1).realize()
    >>> clear_caches()
    >>> (x + 1).tolist()
    [3, 4]
    """
    with lock:
        clear_bounded_caches()
        forget_memory()
        gc.collect()  # cycles hold nodes and memory, too
        sweep()
        for device in open_devices():
            SPARE.release(device)

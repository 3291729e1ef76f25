"""A kernel written by hand, used among ordinary tensors: sums over windows of a sequence.

    python examples/custom_kernel.py

`custom_kernel` hands memory of the result and of the inputs to a function, which returns the store
that fills the result. Weft compiles it like its own kernels, for every device.
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from weft import GlobalCounters, Tensor, UOp, custom_kernel
from weft.ir.build import index_of, load, range_, reduce_ranges, store
from weft.ir.ops import Op


def window_sums(size: int) -> Callable[[UOp, UOp], UOp]:
    """The kernel for windows of a size: out[row, i] = x[row, i] + … + x[row, i + size - 1]."""

    def kernel(out: UOp, x: UOp) -> UOp:
        rows, positions = out.shape
        row, position, tap = range_(0, rows), range_(1, positions), range_(2, size)
        element = load(index_of(x, [row, position + tap]))
        total = reduce_ranges(element, Op.ADD, [tap])
        return store(index_of(out, [row, position]), total, [row, position])

    return kernel


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--length", type=int, default=1000)
    parser.add_argument("--window", type=int, default=9)
    args = parser.parse_args(argv)

    x = Tensor.randn(args.rows, args.length).realize()
    shape = (args.rows, args.length - args.window + 1)
    GlobalCounters.reset()
    smooth = custom_kernel(window_sums(args.window), x * 2, shape=shape) / args.window
    found = smooth.numpy()
    print(f"{GlobalCounters.kernel_count} kernels: x * 2, the sums, the quotient")

    windows = np.lib.stride_tricks.sliding_window_view(x.numpy() * 2, args.window, axis=1)
    difference = float(np.abs(found - windows.mean(-1)).max())
    print(f"largest difference from NumPy: {difference:.1e}")
    return difference


if __name__ == "__main__":
    main()

"""`weft demo`: a small network learns handwritten digits, and the numbers of the run.

The digits (1,797 pictures of 8x8) come with Weft, so nothing is downloaded.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from weft.cli.terminal import columns, positive, wrapped
from weft.support.errors import ArgumentError
from weft.support.progress import progress

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

SHADES = " .:-=+*#%@"
TEST_ROWS = 297
ENOUGH = 0.9  # what a network that has learned names right


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epochs", type=positive, default=12, help="times through all (12)")
    parser.add_argument("--batch", type=positive, default=100, help="digits in a step (100)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and order (0)")


def run(options: argparse.Namespace) -> int:
    """Train, then print accuracy, kernels, speed, compile time and some predictions."""
    from weft import nn
    from weft.engine.counters import GlobalCounters
    from weft.tensor.tensor import Tensor

    Tensor.manual_seed(options.seed)
    pictures, labels = _digits(nn)
    train = pictures[:-TEST_ROWS], labels[:-TEST_ROWS]
    test = pictures[-TEST_ROWS:], labels[-TEST_ROWS:]
    if options.batch > len(train[0]):
        raise ArgumentError(
            f"demo: a batch of {options.batch} from {len(train[0])} digits",
            rule="a batch is at most as large as the training set",
        )
    GlobalCounters.reset()
    start = time.perf_counter()
    model = _Network(nn)
    step = _training_step(model, nn)
    loader = nn.DataLoader(train, options.batch, shuffle=True, seed=options.seed, drop_last=True)
    loss = 0.0
    for epoch in range(options.epochs):
        for x, y in progress(loader, f"epoch {epoch + 1}/{options.epochs}"):
            result = step(x, y)
        loss = result.item()
    seconds = time.perf_counter() - start
    guesses = model(Tensor(test[0])).argmax(1).numpy()
    accuracy = float((guesses == test[1]).mean())
    print(f"loss {loss:.3f}, {100 * accuracy:.1f} % of {TEST_ROWS} unseen digits named right")
    _print_counters(seconds)
    shown = (columns(92) + 3) // 19  # a picture has 16 columns, and 3 stand between two
    _show(test[0][:shown], guesses[:shown], test[1][:shown])
    if accuracy <= ENOUGH:
        print(f"\nfewer than {ENOUGH:.0%} are right: more --epochs help", file=sys.stderr)
    return 0 if accuracy > ENOUGH else 1


def _print_counters(seconds: float) -> None:
    from weft.engine.compile import CompileStatistics
    from weft.engine.counters import GlobalCounters

    print(
        wrapped(
            f"{seconds:.2f} s, {GlobalCounters.kernel_count} kernels run,"
            f" {GlobalCounters.global_ops / seconds / 1e9:.1f} GFLOPS;"
            f" {CompileStatistics.generated} kernels compiled,"
            f" {CompileStatistics.from_disk} found on disk, in {CompileStatistics.seconds:.2f} s"
        )
        + "\n"
    )


class _Network:
    """A convolution, a pool and two linear layers."""

    def __init__(self, nn: Any) -> None:
        self.convolution = nn.Conv2d(1, 16, 3, padding=1)
        self.hidden = nn.Linear(16 * 4 * 4, 64)
        self.last = nn.Linear(64, 10)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.convolution(x).relu().max_pool2d()  # (batch, 16, 4, 4)
        result: Tensor = self.last(self.hidden(x.flatten(1)).relu())
        return result


def _training_step(model: _Network, nn: Any) -> Any:
    from weft.tensor.jit.jit import jit
    from weft.tensor.tensor import Tensor

    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.003)

    @jit
    @Tensor.train()
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).cross_entropy(y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _digits(nn: Any) -> tuple[Any, Any]:
    """All digits in an order of their own: pictures (n, 1, 8, 8) from 0 to 1, and labels."""
    import numpy as np

    parts = [each.numpy() for each in nn.datasets.digits()]
    pictures, labels = np.concatenate(parts[::2]), np.concatenate(parts[1::2])
    order = np.random.default_rng(0).permutation(len(labels))
    scaled = pictures.reshape(-1, 1, 8, 8).astype(np.float32) / pictures.max()
    return scaled[order], labels[order].astype(np.int32)


def _show(pictures: Any, guesses: Any, labels: Any) -> None:
    """Some digits side by side, each under what the network takes it for."""
    heads = [
        f"looks like {guess}" if guess == label else f"{label}, taken for {guess}"
        for guess, label in zip(guesses, labels, strict=True)
    ]
    print("   ".join(f"{head:16}" for head in heads))
    for row in range(8):
        lines = ["".join(SHADES[int(9 * x)] * 2 for x in picture[0][row]) for picture in pictures]
        print("   ".join(lines))

"""Time until 98.5 % of MNIST's test images are right: the example's network beside torch's.

    python -m bench.mnist                       # both, one after the other, on all cores
    python -m bench.mnist --threads 1 --epochs 1

Both start from the same weights and see the same batches in the same order, with the same
optimizer and schedule; torch runs eagerly. After each part of an epoch the test images are
counted; the time to train and to count is what is compared, compilation included. Seconds of the
processor are shown beside those of the clock: where other programs run, only they can be trusted,
and torch's threads wait by spinning, so that its clock suffers most. Needs torch and MNIST.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from mnist_convnet import ConvNet

from weft import Context, Tensor, jit, nn

GOAL, BATCH, LR, CHECKS = 0.985, 100, 0.01, 4  # CHECKS counts in each epoch
Arrays = tuple[Any, Any, Any, Any]
Step = Callable[[Any, Any], float]
Count = Callable[[Any, Any], int]


class Result(NamedTuple):
    """What one side took, and how far it came."""

    clock: float
    processor: float
    accuracy: float
    steps: int


def images() -> Arrays:
    x, y, x_test, y_test = (part.numpy() for part in nn.datasets.mnist())
    scale = np.float32(255)
    return x / scale, y.astype(np.int32), x_test / scale, y_test.astype(np.int32)


def weft_side(model: ConvNet, total: int) -> tuple[Step, Count]:
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=LR, weight_decay=0.01)
    scheduler = nn.optim.Scheduler(optimizer, nn.optim.one_cycle(LR, total))

    @jit
    @Tensor.train()
    def train(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).cross_entropy(y, label_smoothing=0.05)
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss

    right = jit(lambda x, y: (model(x).argmax(1) == y).sum())
    return (
        lambda x, y: train(Tensor(x), Tensor(y)).item(),
        lambda x, y: int(right(Tensor(x), Tensor(y)).item()),
    )


def torch_side(weights: dict[str, Any], total: int) -> tuple[Step, Count]:
    import torch
    from torch import nn as layers

    first, second = (layers.Conv2d(i, o, 3, padding=1) for i, o in ((1, 8), (8, 16)))
    parts = (first, layers.BatchNorm2d(8), second, layers.BatchNorm2d(16), layers.Linear(784, 10))
    names = ("first", "first_norm", "second", "second_norm", "last")
    for name, part in zip(names, parts, strict=True):
        start = f"{name}."
        kept = {key.removeprefix(start): v for key, v in weights.items() if key.startswith(start)}
        part.load_state_dict({key: torch.from_numpy(v.copy()) for key, v in kept.items()})
    between = (layers.ReLU(), layers.MaxPool2d(2))
    first_half, second_half = (*parts[:2], *between), (*parts[2:4], *between)
    model = layers.Sequential(*first_half, *second_half, layers.Flatten(), parts[4])
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, total) / LR)

    def train(x: Any, y: Any) -> float:
        model.train()
        optimizer.zero_grad()
        inputs, labels = torch.from_numpy(x), torch.from_numpy(y).long()
        loss = layers.functional.cross_entropy(model(inputs), labels, label_smoothing=0.05)
        loss.backward()
        optimizer.step()
        scheduler.step()
        return float(loss.item())

    @torch.no_grad()
    def right(x: Any, y: Any) -> int:
        model.eval()
        return int((model(torch.from_numpy(x)).argmax(1).numpy() == y).sum())

    return train, right


def rate(step: int, total: int) -> float:
    """The learning rate of `one_cycle`."""
    first, peak = LR / 25, 0.3 * total - 1
    if step <= peak:
        start, end, part = first, LR, step / peak
    else:
        start, end, part = LR, first / 1e4, min((step - peak) / (total - 1 - peak), 1.0)
    return end + (start - end) * 0.5 * (1 + math.cos(math.pi * part))


def run(side: tuple[Step, Count], data: Arrays, epochs: int) -> Result:
    """Train until the goal is reached, or to the end."""
    x, y, x_test, y_test = data
    train, right = side
    numbers = np.random.default_rng(0)
    count = len(x) // BATCH
    clock, processor = time.perf_counter(), time.process_time()
    done, accuracy = 0, 0.0
    for _ in range(epochs):
        order = numbers.permutation(len(x))[: count * BATCH].reshape(count, BATCH)
        for number, rows in enumerate(order, 1):
            train(x[rows], y[rows])
            done += 1
            if number % (count // CHECKS) == 0:
                starts = range(0, len(x_test) - BATCH + 1, BATCH)
                found = [right(x_test[i : i + BATCH], y_test[i : i + BATCH]) for i in starts]
                accuracy = sum(found) / (len(found) * BATCH)
                if accuracy >= GOAL:
                    break
        if accuracy >= GOAL:
            break
    return Result(time.perf_counter() - clock, time.process_time() - processor, accuracy, done)


def main(argv: Sequence[str] | None = None) -> dict[str, Result]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=60_000, help="how many images to train on")
    args = parser.parse_args(argv)
    import torch

    torch.set_num_threads(args.threads)
    Tensor.manual_seed(0)
    x, y, x_test, y_test = images()
    data = x[: args.limit], y[: args.limit], x_test, y_test
    model = ConvNet(28)
    weights = {name: t.numpy().copy() for name, t in nn.state.get_state_dict(model).items()}
    total = args.epochs * (len(data[0]) // BATCH)
    with Context(THREADS=args.threads):
        results = {"Weft": run(weft_side(model, total), data, args.epochs)}
    results["torch"] = run(torch_side(weights, total), data, args.epochs)
    for name, (clock, processor, accuracy, steps) in results.items():
        print(f"{name:6} {accuracy:.2%} after {steps} steps: {clock:.1f} s", end="")
        print(f", {processor:.1f} s of the processor")
    weft, torch_result = results["Weft"], results["torch"]
    print(f"Weft over torch: {weft.clock / torch_result.clock:.2f} by the clock, ", end="")
    print(f"{weft.processor / torch_result.processor:.2f} by the processor")
    return results


if __name__ == "__main__":
    main()

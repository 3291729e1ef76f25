"""A large batch in small pieces: the same steps with a fraction of the memory.

    python examples/gradient_accumulation.py

One model sees whole batches, another one the same batches in pieces whose gradients add up. Both
end with the same weights, up to rounding.
"""

import argparse
from collections.abc import Sequence

import numpy as np

from weft import GlobalCounters, Tensor, nn, progress


def perceptron() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def train(model: nn.Sequential, loader: nn.DataLoader, pieces: int, title: str) -> int:
    """Train for an epoch, and return the most bytes that were in use."""
    optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=0.1, momentum=0.9)
    accumulation = nn.optim.Accumulation(optimizer, every=pieces)
    GlobalCounters.reset()
    for x, y in progress(loader, title):
        model(x).cross_entropy(y).backward()
        accumulation.step()
    return max(GlobalCounters.peak_memory.values())


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--pieces", type=int, default=8)
    args = parser.parse_args(argv)

    Tensor.manual_seed(0)
    images, labels, *_ = (each.numpy() for each in nn.datasets.digits(test=0))
    data = images.reshape(-1, 64) / np.float32(16), labels.astype(np.int32)
    data = tuple(each[: len(each) // args.batch * args.batch] for each in data)
    whole, pieced = perceptron(), perceptron()
    nn.state.load_state_dict(pieced, nn.state.get_state_dict(whole))
    memory = [
        train(model, nn.DataLoader(data, args.batch // pieces), pieces, title)
        for model, pieces, title in ((whole, 1, "whole"), (pieced, args.pieces, "pieces"))
    ]
    pairs = zip(nn.state.get_parameters(whole), nn.state.get_parameters(pieced), strict=True)
    difference = max((a - b).abs().max().item() for a, b in pairs)
    print(f"whole batches: {memory[0] / 1e6:.2f} MB at most, pieces: {memory[1] / 1e6:.2f} MB")
    print(f"largest difference between the weights: {difference:.1e}")
    return difference


if __name__ == "__main__":
    main()

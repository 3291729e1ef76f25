"""A small convolutional network learns handwritten digits: about 98.8 % of MNIST in two epochs.

    python examples/mnist_convnet.py
    python examples/mnist_convnet.py --dataset digits --epochs 20   # nothing is downloaded

MNIST is downloaded once, or read from the folder that WEFT_DATA names.
"""

import argparse
from collections.abc import Sequence

import numpy as np

from weft import Tensor, jit, nn, progress


class ConvNet:
    """Two convolutions, each with a batch norm and a pool, then a linear layer."""

    def __init__(self, side: int, classes: int = 10) -> None:
        self.first, self.second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.first_norm, self.second_norm = nn.BatchNorm(8), nn.BatchNorm(16)
        self.last = nn.Linear(16 * (side // 4) ** 2, classes)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.first_norm(self.first(x)).relu().max_pool2d()  # (batch, 8, side/2, side/2)
        x = self.second_norm(self.second(x)).relu().max_pool2d()  # (batch, 16, side/4, side/4)
        return self.last(x.flatten(1))


def accuracy(model: ConvNet, images: np.ndarray, labels: np.ndarray, batch: int) -> float:
    """The part of the images that the model names right; a last, smaller batch is left out."""
    right = jit(lambda x, y: (model(x).argmax(1) == y).sum())
    loader = nn.DataLoader((images, labels), batch, drop_last=True)
    found = [int(right(x, y).item()) for x, y in loader]
    return sum(found) / (len(found) * batch)


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", choices=("mnist", "digits"), default="mnist")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--limit", type=int, default=60_000, help="how many images to train on")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)

    Tensor.manual_seed(args.seed)
    x_train, y_train, x_test, y_test = (
        each.numpy() for each in getattr(nn.datasets, args.dataset)()
    )
    scale = np.float32(x_train.max())
    x_train, y_train = x_train[: args.limit] / scale, y_train[: args.limit].astype(np.int32)
    x_test, y_test = x_test / scale, y_test.astype(np.int32)
    model = ConvNet(x_train.shape[-1])
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=args.lr, weight_decay=0.01)
    loader = nn.DataLoader(
        (x_train, y_train), args.batch, shuffle=True, seed=args.seed, drop_last=True, num_workers=1
    )
    schedule = nn.optim.one_cycle(args.lr, args.epochs * len(loader))
    scheduler = nn.optim.Scheduler(optimizer, schedule)

    @jit
    @Tensor.train()
    def train_step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).cross_entropy(y, label_smoothing=0.05)
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss

    result = 0.0
    for epoch in range(args.epochs):
        bar = progress(loader, f"epoch {epoch + 1}")
        for x, y in bar:
            bar.set_postfix(loss=f"{train_step(x, y).item():.3f}")
        result = accuracy(model, x_test, y_test, min(args.batch, len(x_test)))
        print(f"epoch {epoch + 1}: {result:.2%} of the test images are right")
    return result


if __name__ == "__main__":
    main()

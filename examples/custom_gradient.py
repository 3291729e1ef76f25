"""A gradient of your own: a network whose weights are -1 or 1 learns digits.

    python examples/custom_gradient.py

The sign of a number has the gradient 0 wherever it has one, so nothing is learned through it:
the signs stay as they were drawn, and only the norm between the layers learns.
`function(gradient=…)` replaces it by another gradient: the one of a straight line, where the
number is between -1 and 1. The digits come with Weft, so nothing is downloaded.
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from weft import Tensor, function, jit, nn, progress

PIXELS = 64


def plain_sign(x: Tensor) -> Tensor:
    return (x < 0).where(-1.0, 1.0)


def straight_through(inputs: tuple[Tensor], output: Tensor, gradient: Tensor) -> Tensor:
    """The gradient for the input, out of the gradient for the output."""
    (x,) = inputs
    return (x.abs() <= 1).where(gradient, 0.0)


sign = function(gradient=straight_through)(plain_sign)


class SignNet:
    """Two layers of signs. Each keeps the numbers that its signs are taken of."""

    def __init__(self, hidden: int, sign: Callable[[Tensor], Tensor]) -> None:
        self.first = Tensor.uniform(PIXELS, hidden, low=-0.5, high=0.5, requires_grad=True)
        self.second = Tensor.uniform(hidden, 10, low=-0.5, high=0.5, requires_grad=True)
        self.norm, self.sign = nn.BatchNorm(hidden), sign

    def __call__(self, x: Tensor) -> Tensor:
        h = self.norm(x @ self.sign(self.first)).relu()
        return h @ self.sign(self.second) / self.second.shape[0] ** 0.5


def learn(sign: Callable[[Tensor], Tensor], hidden: int, epochs: int) -> float:
    """Train with a sign, and return the part of the test images that are named right."""
    Tensor.manual_seed(0)
    x, y, x_test, y_test = (part.numpy() for part in nn.datasets.digits())
    images, tests = (part.reshape(-1, PIXELS) / np.float32(16) for part in (x, x_test))
    model = SignNet(hidden, sign)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.01)

    @jit
    @Tensor.train()
    def train_step(images: Tensor, labels: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(images).cross_entropy(labels)
        loss.backward()
        optimizer.step()
        return loss

    loader = nn.DataLoader((images, y.astype(np.int32)), 64, shuffle=True, drop_last=True)
    for _ in progress(range(epochs), "epochs"):
        for batch, labels in loader:
            train_step(batch, labels)
    return (model(Tensor(tests)).argmax(1) == Tensor(y_test)).float().mean().item()


def main(argv: Sequence[str] | None = None) -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--hidden", type=int, default=128)
    args = parser.parse_args(argv)

    x = Tensor([-3.0, -0.5, 0.5, 3.0])
    print("signs of", x.tolist(), "are", sign(x).tolist())
    print("with the gradient", sign(x).sum().gradient(x)[0].tolist())
    plain, straight = (learn(each, args.hidden, args.epochs) for each in (plain_sign, sign))
    print(f"the gradient of the sign itself: {plain:.1%} of the test images are right")
    print(f"the gradient of a straight line: {straight:.1%}")
    return plain, straight


if __name__ == "__main__":
    main()

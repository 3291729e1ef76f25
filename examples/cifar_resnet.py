"""A small residual network learns the ten classes of CIFAR-10.

    python examples/cifar_resnet.py
    python examples/cifar_resnet.py --synthetic 2000 --epochs 2   # nothing is downloaded

Images are flipped and moved at random while it learns; that is done by tensor ops inside the
jitted step, so it is part of the kernels. CIFAR-10 is downloaded once (170 MB), or read from the
folder that WEFT_DATA names. Synthetic images are stripes: a class is a width and a color.
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from weft import Tensor, jit, nn, progress

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
MEAN, SPREAD = 0.47, 0.25  # of all pixels of CIFAR-10, from 0 to 1


class Residual:
    """Two convolutions beside a path that keeps the input, or brings it to the new shape."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.first_norm, self.second_norm = nn.BatchNorm(outputs), nn.BatchNorm(outputs)
        self.short = None
        if stride != 1 or inputs != outputs:
            self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def __call__(self, x: Tensor) -> Tensor:
        h = self.first_norm(self.first(x)).relu()
        h = self.second_norm(self.second(h))
        return (h + (x if self.short is None else self.short(x))).relu()


class ResNet:
    """A convolution, then groups of residual blocks: each group halves the sides."""

    def __init__(self, width: int, depth: int, classes: int = 10) -> None:
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm(width)
        sizes = [width, width, 2 * width, 4 * width]
        self.blocks = [
            Residual(sizes[group] if number == 0 else sizes[group + 1], sizes[group + 1], stride)
            for group in range(3)
            for number in range(depth)
            for stride in [2 if group and number == 0 else 1]
        ]
        self.last = nn.Linear(4 * width, classes)

    def __call__(self, x: Tensor) -> Tensor:
        """Logits (batch, classes) of bytes (batch, 3, side, side)."""
        x = (x.float() / 255 - MEAN) / SPREAD
        x = self.stem_norm(self.stem(x)).relu()
        for block in self.blocks:
            x = block(x)
        return self.last(x.mean((2, 3)))


def augmented(x: Tensor, margin: int) -> Tensor:
    """Images (batch, channels, side, side), half of them flipped, each moved by up to a margin."""
    batch, side = x.shape[0], x.shape[-1]
    flip = Tensor.rand(batch, 1, 1, 1) < 0.5
    x = flip.where(x.flip(-1), x)
    # Pixel i of a moved axis is pixel i + shift of the image, and black beyond its edges.
    for axis in (2, 3):
        shape = [side if each == axis else 1 for each in range(4)]
        shift = Tensor.randint(batch, 1, 1, 1, low=-margin, high=margin + 1)
        position = Tensor.arange(side).reshape(shape) + shift
        inside = (position >= 0) & (position < side)
        moved = x.gather(axis, position.clamp(0, side - 1).expand(x.shape))
        x = inside.where(moved, 0)
    return x


def stripes(count: int, seed: int = 0) -> Split:
    """Images of stripes with noise, of five widths and two colors, in any direction."""
    numbers = np.random.default_rng(seed)
    labels = numbers.integers(0, 10, count).astype(np.uint8)
    turns = 0.25 * 1.6 ** (labels % 5)[:, None, None]  # radians per pixel
    angle, phase = numbers.uniform(0, 2 * np.pi, (2, count, 1, 1))
    y, x = np.mgrid[:32, :32]
    wave = np.sin((x * np.cos(angle) + y * np.sin(angle)) * turns + phase)  # (count, 32, 32)
    tint = np.array([[1.0, 0.3, 0.1], [0.1, 0.3, 1.0]])[labels // 5]
    pixels = 128 + 60 * wave[:, None] * tint[:, :, None, None]
    pixels = pixels + numbers.normal(0, 30, pixels.shape)
    images, cut = pixels.clip(0, 255).astype(np.uint8), count * 4 // 5
    return images[:cut], labels[:cut], images[cut:], labels[cut:]


def accuracy(model: ResNet, images: np.ndarray, labels: np.ndarray, batch: int) -> float:
    """The part of the images that the model names right; a last, smaller batch is left out."""
    right = jit(lambda x, y: (model(x).argmax(1) == y).sum())
    loader = nn.DataLoader((images, labels), batch, drop_last=True)
    found = [int(right(x, y).item()) for x, y in loader]
    return sum(found) / (len(found) * batch)


def trainer(
    model: ResNet, lr: float, steps: int, change: Callable[[Tensor], Tensor]
) -> Callable[[Tensor, Tensor], Tensor]:
    """The function that trains the model with a batch, whose images it changes first."""
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=lr, weight_decay=0.05)
    scheduler = nn.optim.Scheduler(optimizer, nn.optim.one_cycle(lr, steps))

    @jit
    @Tensor.train()
    def train_step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(change(x)).cross_entropy(y, label_smoothing=0.05)
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss

    return train_step


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--depth", type=int, default=1, help="residual blocks in each of 3 groups")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--margin", type=int, default=4, help="how far images are moved")
    parser.add_argument("--limit", type=int, default=50_000, help="how many images to train on")
    parser.add_argument("--synthetic", type=int, default=0, help="how many images to make up")
    args = parser.parse_args(argv)

    Tensor.manual_seed(0)
    if args.synthetic:
        x_train, y_train, x_test, y_test = stripes(args.synthetic)
    else:
        x_train, y_train, x_test, y_test = (part.numpy() for part in nn.datasets.cifar())
    x_train, y_train = x_train[: args.limit], y_train[: args.limit].astype(np.int32)
    y_test = y_test.astype(np.int32)
    model = ResNet(args.width, args.depth)
    loader = nn.DataLoader((x_train, y_train), args.batch, shuffle=True, drop_last=True)
    steps = args.epochs * len(loader)
    train_step = trainer(model, args.lr, steps, lambda x: augmented(x, args.margin))

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

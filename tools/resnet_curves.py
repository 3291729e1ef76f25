"""Train the network of `examples/cifar_resnet.py` in Weft and in PyTorch, and draw both losses.

    python tools/resnet_curves.py docs/images/cifar_resnet_loss.svg

Both start from the same weights and see the same images in the same order, moved and flipped by
Weft, with the same optimizer and schedule. Needs PyTorch and CIFAR-10. Prints the largest
difference of the two losses, how many test images each side names right, and the seconds of the
processor that each side took to train with one thread.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import cifar_resnet
from loss_curves import Losses, picture

from weft import Context, Tensor, jit, nn

LR, BATCH, WIDTH, DEPTH, MARGIN = 0.01, 128, 16, 1, 4


class Side(NamedTuple):
    """What one side reached."""

    losses: Losses
    accuracy: float
    processor: float


def batches(x: np.ndarray, y: np.ndarray, steps: int) -> Iterator[tuple[Any, Any]]:
    """Augmented batches, the same ones each time."""
    Tensor.manual_seed(1)
    change = jit(lambda images: cifar_resnet.augmented(images, MARGIN))
    loader = nn.DataLoader((x, y), BATCH, shuffle=True, drop_last=True)
    while True:
        for images, labels in loader:
            if not steps:
                return
            steps -= 1
            yield change(images).numpy().copy(), labels.numpy().copy()


def weft_side(model: Any, data: Any, steps: int) -> Side:
    x, y, x_test, y_test = data
    train_step = cifar_resnet.trainer(model, LR, steps, lambda images: images)
    losses, spent = [], 0.0
    for images, labels in batches(x, y, steps):
        start = time.process_time()
        losses.append(train_step(Tensor(images), Tensor(labels)).item())
        spent += time.process_time() - start
    return Side(losses, cifar_resnet.accuracy(model, x_test, y_test, BATCH), spent)


def torch_side(arrays: dict[str, Any], data: Any, steps: int) -> Side:
    import torch
    from torch.nn import functional as F  # noqa: N812 -- the usual name

    torch.set_num_threads(1)
    x, y, x_test, y_test = data
    held = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    learned = [t.requires_grad_() for n, t in held.items() if "running" not in n and t.ndim]
    optimizer = torch.optim.AdamW(learned, lr=LR, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LR, total_steps=steps, cycle_momentum=False
    )
    losses, spent = [], 0.0
    for images, labels in batches(x, y, steps):
        start = time.process_time()
        optimizer.zero_grad()
        logits = torch_logits(held, torch.from_numpy(images), trains=True)
        loss = F.cross_entropy(logits, torch.from_numpy(labels).long(), label_smoothing=0.05)
        loss.backward()
        optimizer.step()
        if len(losses) + 1 < steps:
            scheduler.step()
        losses.append(float(loss.item()))
        spent += time.process_time() - start
    right = 0
    whole = len(x_test) // BATCH * BATCH
    with torch.no_grad():
        for i in range(0, whole, BATCH):
            logits = torch_logits(held, torch.tensor(x_test[i : i + BATCH]), trains=False)
            right += int((logits.argmax(1).numpy() == y_test[i : i + BATCH]).sum())
    return Side(losses, right / whole, spent)


def torch_logits(held: dict[str, Any], x: Any, trains: bool) -> Any:
    """The same network, by the names of its weights."""
    from torch.nn import functional as F  # noqa: N812 -- the usual name

    def conv(x: Any, name: str, stride: int = 1) -> Any:
        weight = held[f"{name}.weight"]
        return F.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)

    def norm(x: Any, name: str) -> Any:
        parts = (held[f"{name}.{part}"] for part in ("running_mean", "running_var"))
        return F.batch_norm(x, *parts, held[f"{name}.weight"], held[f"{name}.bias"], trains)

    x = (x.float() / 255 - cifar_resnet.MEAN) / cifar_resnet.SPREAD
    x = norm(conv(x, "stem"), "stem_norm").relu()
    for number in range(3 * DEPTH):
        block, stride = f"blocks.{number}", 2 if number and number % DEPTH == 0 else 1
        h = norm(conv(x, f"{block}.first", stride), f"{block}.first_norm").relu()
        h = norm(conv(h, f"{block}.second"), f"{block}.second_norm")
        has_short = f"{block}.short.weight" in held
        x = (h + (conv(x, f"{block}.short", stride) if has_short else x)).relu()
    return F.linear(x.mean((2, 3)), held["last.weight"], held["last.bias"])


def both_sides(data: Any, steps: int) -> tuple[Side, Side]:
    Tensor.manual_seed(0)
    model = cifar_resnet.ResNet(WIDTH, DEPTH)
    arrays = {name: t.numpy().copy() for name, t in nn.state.get_state_dict(model).items()}
    with Context(THREADS=1):
        weft = weft_side(model, data, steps)
    return weft, torch_side(arrays, data, steps)


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--synthetic", type=int, default=0, help="how many images to make up")
    args = parser.parse_args(argv)
    if args.synthetic:
        x, y, x_test, y_test = cifar_resnet.stripes(args.synthetic)
    else:
        x, y, x_test, y_test = (part.numpy() for part in nn.datasets.cifar())
    data = x, y.astype(np.int32), x_test, y_test.astype(np.int32)
    weft, torch = both_sides(data, args.steps)
    differences = [abs(a - b) for a, b in zip(weft.losses, torch.losses, strict=True)]
    args.picture.parent.mkdir(parents=True, exist_ok=True)
    args.picture.write_text(picture(weft.losses, torch.losses, "loss"), encoding="utf-8")
    for count in sorted({min(20, args.steps), min(100, args.steps), args.steps}):
        print(f"largest difference in {count} steps: {max(differences[:count]):.1e}")
    for name, side in (("Weft", weft), ("PyTorch", torch)):
        print(
            f"{name}: last loss {side.losses[-1]:.4f}, {side.accuracy:.2%} of the test images,",
            end="",
        )
        print(f" {side.processor:.1f} s of the processor")
    return max(differences)


if __name__ == "__main__":
    main()

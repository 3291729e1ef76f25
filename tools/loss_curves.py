"""Train the GPT of `examples/char_gpt.py` in Weft and in PyTorch, and draw both losses.

    python tools/loss_curves.py docs/images/char_gpt_loss.svg

Both start from the same weights and see the same pieces of text in the same order, with the same
optimizer, schedule and clipping. Needs PyTorch. Prints the largest difference of the two losses.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import char_gpt

from weft import Tensor, nn

Losses = list[float]
LR, CONTEXT, BATCH, WIDTH, LAYERS, HEADS = 0.003, 64, 16, 96, 4, 4


def torch_loss(weights: dict[str, Any], tokens: Any, targets: Any) -> Any:
    """The loss of the same network, by the names of its weights."""
    from torch.nn import functional as F  # noqa: N812 -- the usual name

    def linear(x: Any, name: str) -> Any:
        return F.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))

    def norm(x: Any, name: str) -> Any:
        return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"])

    x = weights["token.weight"][tokens] + weights["position.weight"][: tokens.shape[1]]
    for number in range(LAYERS):
        block = f"blocks.{number}"
        qkv = linear(norm(x, f"{block}.attention_norm"), f"{block}.qkv")
        q, k, v = qkv.unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + linear(mixed, f"{block}.mix")
        inner = F.gelu(linear(norm(x, f"{block}.inner_norm"), f"{block}.up"), approximate="tanh")
        x = x + linear(inner, f"{block}.down")
    logits = linear(norm(x, "norm"), "head")
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def torch_losses(arrays: dict[str, Any], pieces: Iterator[Any], steps: int) -> Losses:
    import torch

    weights = {n: torch.from_numpy(a.copy()).requires_grad_() for n, a in arrays.items()}
    optimizer = torch.optim.AdamW(weights.values(), lr=LR, betas=(0.9, 0.99), weight_decay=0.01)
    losses = []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(step, steps)
        tokens, targets = (torch.from_numpy(part).long() for part in next(pieces))
        optimizer.zero_grad()
        loss = torch_loss(weights, tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def rate(step: int, steps: int) -> float:
    """The learning rate of a step, as the example has it."""
    rise, low = steps // 20, LR / 10
    if step < rise:
        return LR * step / rise
    part = (step - rise) / (steps - rise)
    return low + (LR - low) * 0.5 * (1 + math.cos(math.pi * part))


def both_losses(steps: int) -> tuple[Losses, Losses]:
    """The losses of Weft and of PyTorch, step by step."""
    Tensor.manual_seed(0)
    text = char_gpt.Text(nn.datasets.shakespeare())
    model = char_gpt.GPT(len(text.symbols), CONTEXT, WIDTH, LAYERS, HEADS)
    arrays = {name: t.numpy().copy() for name, t in nn.state.get_state_dict(model).items()}
    train_step = char_gpt.trainer(model, LR, steps)
    pieces = char_gpt.batches(text.train, BATCH, CONTEXT, seed=0)
    weft = [train_step(*(Tensor(part) for part in next(pieces))).item() for _ in range(steps)]
    pieces = char_gpt.batches(text.train, BATCH, CONTEXT, seed=0)
    return weft, torch_losses(arrays, pieces, steps)


def picture(weft: Losses, torch: Losses, title: str = "loss per character") -> str:
    """Both curves in one SVG: PyTorch's wide and pale, Weft's thin on top of it."""
    width, height, left, top = 640, 320, 50, 20
    low, high = 1.0, math.ceil(max(weft + torch))

    def point(step: float, loss: float) -> str:
        x = left + (width - left - 20) * step / max(len(weft) - 1, 1)
        return f"{x:.1f},{top + (height - top - 40) * (high - loss) / (high - low):.1f}"

    def curve(losses: Losses, style: str) -> str:
        points = " ".join(point(step, loss) for step, loss in enumerate(losses))
        return f'<polyline fill="none" {style} points="{points}"/>'

    def word(x: float, y: float, text: str, more: str = "") -> str:
        return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{text}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for loss in range(math.ceil(low), high + 1):
        start, end = point(0, loss), point(len(weft) - 1, loss)
        parts.append(f'<polyline stroke="#ddd" points="{start} {end}"/>')
        parts.append(
            word(left - 8, float(start.split(",")[1]) + 4, str(loss), 'text-anchor="end"')
        )
    for step in range(0, len(weft) + 1, max(len(weft) // 5, 1)):
        x = float(point(step, low).split(",")[0])
        parts.append(word(x, height - 22, str(step), 'text-anchor="middle"'))
    parts.append(word((left + width) / 2, height - 6, "step", 'text-anchor="middle"'))
    parts.append(word(left, top - 6, title))
    parts.append(curve(torch, 'stroke="#f4a582" stroke-width="5"'))
    parts.append(curve(weft, 'stroke="#2166ac" stroke-width="1"'))
    parts.append(word(width - 160, top + 20, "PyTorch (wide)", 'fill="#d6604d"'))
    parts.append(word(width - 160, top + 38, "Weft (thin)", 'fill="#2166ac"'))
    return "\n".join([*parts, "</svg>\n"])


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args(argv)
    weft, torch = both_losses(args.steps)
    differences = [abs(a - b) for a, b in zip(weft, torch, strict=True)]
    args.picture.parent.mkdir(parents=True, exist_ok=True)
    args.picture.write_text(picture(weft, torch), encoding="utf-8")
    for count in sorted({min(100, args.steps), args.steps}):
        print(f"largest difference in {count} steps: {max(differences[:count]):.1e}")
    print(f"last losses: Weft {weft[-1]:.4f}, PyTorch {torch[-1]:.4f}")
    return max(differences)


if __name__ == "__main__":
    main()

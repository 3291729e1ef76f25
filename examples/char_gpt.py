"""A small GPT learns to write like Shakespeare, one character after another.

    python examples/char_gpt.py
    python examples/char_gpt.py --steps 5000 --width 192 --layers 6   # better text, half an hour

The text is downloaded once, or read from the folder that WEFT_DATA names. At the end the model
writes on from a line of its own.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from weft import Tensor, jit, nn, progress

Pair = tuple[np.ndarray, np.ndarray]  # tokens, and what follows each of them


class Block:
    """Attention to what came before, then two products, each beside a residual path."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        self.attention_norm, self.inner_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.heads = heads

    def __call__(self, x: Tensor) -> Tensor:
        x = x + self.mix(self.attend(self.attention_norm(x)))
        return x + self.down(self.up(self.inner_norm(x)).gelu())

    def attend(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        qkv = self.qkv(x).reshape(batch, time, 3, self.heads, width // self.heads)
        q, k, v = (qkv[:, :, part].transpose(1, 2) for part in range(3))
        mixed = q.scaled_dot_product_attention(k, v, is_causal=True)  # (batch, heads, time, size)
        return mixed.transpose(1, 2).reshape(batch, time, width)


class GPT:
    def __init__(self, symbols: int, context: int, width: int, layers: int, heads: int) -> None:
        self.token, self.position = nn.Embedding(symbols, width), nn.Embedding(context, width)
        self.blocks = [Block(width, heads, 4 * width) for _ in range(layers)]
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)
        self.context = context
        deep = 0.02 / (2 * layers) ** 0.5  # the residual path adds this many products up
        for block in self.blocks:
            for layer, spread in (
                (block.qkv, 0.02),
                (block.up, 0.02),
                (block.mix, deep),
                (block.down, deep),
            ):
                draw(layer.weight, spread)
                layer.bias.assign(Tensor.zeros(*layer.bias.shape))
        for weight in (self.token.weight, self.position.weight, self.head.weight):
            draw(weight, 0.02)

    def __call__(self, tokens: Tensor) -> Tensor:
        """The logits (batch, time, symbols) of what follows each token (batch, time)."""
        x = self.token(tokens) + self.position(Tensor.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def draw(weight: Tensor, spread: float) -> None:
    weight.assign(Tensor.randn(*weight.shape) * spread)


class Text:
    """A text as numbers, one for each character that occurs in it."""

    def __init__(self, text: str) -> None:
        self.symbols = sorted(set(text))
        numbers = {symbol: number for number, symbol in enumerate(self.symbols)}
        self.tokens = np.array([numbers[symbol] for symbol in text], np.int32)
        cut = len(self.tokens) * 9 // 10
        self.train, self.test = self.tokens[:cut], self.tokens[cut:]

    def read(self, tokens: Sequence[int]) -> str:
        return "".join(self.symbols[token] for token in tokens)


def batches(tokens: np.ndarray, count: int, context: int, seed: int) -> Iterator[Pair]:
    """Without end: pieces from random positions of a text, and the same pieces one token later."""
    numbers = np.random.default_rng(seed)
    while True:
        starts = numbers.integers(0, len(tokens) - context, (count, 1))
        pieces = tokens[starts + np.arange(context + 1)]
        yield pieces[:, :-1].copy(), pieces[:, 1:].copy()


def loss_of(model: GPT, tokens: Tensor, targets: Tensor) -> Tensor:
    return model(tokens).flatten(0, 1).cross_entropy(targets.flatten())


def trainer(model: GPT, lr: float, steps: int) -> Callable[[Tensor, Tensor], Tensor]:
    """The function that trains the model with a batch and returns the loss."""
    optimizer = nn.optim.AdamW(
        nn.state.get_parameters(model), lr=lr, b1=0.9, b2=0.99, weight_decay=0.01
    )
    schedule = nn.optim.warmup_cosine(lr, steps // 20, steps, minimum=lr / 10)
    scheduler = nn.optim.Scheduler(optimizer, schedule)

    @jit
    @Tensor.train()
    def train_step(tokens: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model, tokens, targets)
        loss.backward()
        nn.optim.clip_grad_norm_(optimizer.params, 1.0)
        optimizer.step()
        scheduler.step()
        return loss

    return train_step


def evaluate(model: GPT, tokens: np.ndarray, count: int, rounds: int) -> float:
    """The loss on pieces of a text that the model has not seen."""
    loss = jit(lambda tokens, targets: loss_of(model, tokens, targets))
    pieces = batches(tokens, count, model.context, seed=1)
    losses = [loss(*(Tensor(part) for part in next(pieces))).item() for _ in range(rounds)]
    return float(np.mean(losses))


def write(model: GPT, start: Sequence[int], length: int, temperature: float) -> list[int]:
    """Go on from some tokens. The window has one size, so that one step serves all positions."""
    tokens = list(start)

    @jit
    def next_token(window: Tensor, last: Tensor) -> Tensor:
        logits = model(window)[0, last] / temperature
        return logits.softmax().multinomial()

    for _ in range(length):
        recent = tokens[-model.context :]
        window = np.zeros((1, model.context), np.int32)
        window[0, : len(recent)] = recent  # what comes after the last token changes nothing
        last = Tensor(np.array(len(recent) - 1, np.int32))
        tokens.append(int(next_token(Tensor(window), last).item()))
    return tokens


def main(argv: Sequence[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--length", type=int, default=300, help="how many characters to write")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--text", help="a file to learn from, instead of Shakespeare")
    args = parser.parse_args(argv)

    Tensor.manual_seed(0)
    if args.text:
        with open(args.text, encoding="utf-8") as file:
            text = Text(file.read())
    else:
        text = Text(nn.datasets.shakespeare())
    model = GPT(len(text.symbols), args.context, args.width, args.layers, args.heads)
    train_step = trainer(model, args.lr, args.steps)
    pieces = batches(text.train, args.batch, args.context, seed=0)
    losses = []
    bar = progress(range(args.steps), "steps")
    for _ in bar:
        tokens, targets = next(pieces)
        losses.append(train_step(Tensor(tokens), Tensor(targets)).item())
        bar.set_postfix(loss=f"{losses[-1]:.3f}")
    unseen = evaluate(model, text.test, args.batch, rounds=10)
    print(f"loss per character: {losses[0]:.2f} at first, {losses[-1]:.2f} at last", end="")
    print(f", {unseen:.2f} on text that it has not seen")
    start = text.train[: args.context]
    written = write(model, start[:1], args.length, args.temperature)
    print(text.read(written))
    return losses


if __name__ == "__main__":
    main()

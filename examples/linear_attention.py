"""Layers that remember in a matrix: RetNet-, Mamba-2- and RWKV-like, written as recurrences.

    python examples/linear_attention.py

Each layer has a state for each head, to which every token adds the outer product of a key and a
value, and which decays: by a constant, by a number that the token chooses, or by a row of them.
The recurrence is a plain `associative_scan`; Weft computes it, and its gradients, in chunks of
tokens, so that states of single tokens are not in memory.

The task: among noise, some tokens are marked; at every token, name the last marked one.
"""

import argparse
from collections.abc import Sequence

import numpy as np

from weft import Tensor, associative_scan, jit, nn

SYMBOLS, LENGTH, BATCH = 8, 128, 16


def states_of(decay: Tensor, added: Tensor) -> Tensor:
    """h[t] = decay[t] * h[t - 1] + added[t], along axis 0."""

    def join(first, then):
        return first[0] * then[0], then[0] * first[1] + then[1]

    return associative_scan(join, (decay, added))[1]


class Layer:
    """Queries, keys and values of heads; subclasses say how their states decay."""

    def __init__(self, size: int, heads: int) -> None:
        self.heads, self.norm, self.out = heads, nn.LayerNorm(size), nn.Linear(size, size)
        self.inside, self.gate = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def __call__(self, x: Tensor) -> Tensor:  # (tokens, batch, size)
        inside = self.inside(self.norm(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = (inside[:, :, number] for number in range(3))  # (tokens, batch, heads, size)
        decay, k = self.decay(x, k)
        states = states_of(decay, k.unsqueeze(-1) * v.unsqueeze(-2))
        read = (q.unsqueeze(-1) * states).sum(-2).layernorm().flatten(-2)
        return x + self.out(read * self.gate(x).silu())


class Retention(Layer):
    """RetNet: each head forgets at a rate of its own."""

    def decay(self, x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        rates = 1.0 - 2.0 ** -(1.0 + Tensor.arange(self.heads))
        shape = (*x.shape[:2], self.heads, 1, 1)
        return rates.reshape(1, 1, self.heads, 1, 1).expand(shape), k


class StateSpace(Layer):
    """Mamba-2: each token chooses a step for each head, by which it forgets and writes."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__(size, heads)
        self.step = nn.Linear(size, heads)

    def decay(self, x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        step = self.step(x).softplus()
        return (-step).exp().unsqueeze(-1).unsqueeze(-1), k * step.unsqueeze(-1)


class TimeMix(Layer):
    """RWKV: each token chooses how much of every row of the state it forgets."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__(size, heads)
        self.forget = nn.Linear(size, size)

    def decay(self, x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        kept = self.forget(x).sigmoid().unflatten(-1, (self.heads, -1))
        return kept.unsqueeze(-1), k * (1.0 - kept)


class Network:
    def __init__(self, kind: type[Layer], size: int, heads: int) -> None:
        self.symbols, self.marks = nn.Embedding(SYMBOLS, size), nn.Embedding(2, size)
        self.layer, self.named = kind(size, heads), nn.Linear(size, SYMBOLS)

    def __call__(self, symbols: Tensor, marks: Tensor) -> Tensor:
        return self.named(self.layer(self.symbols(symbols) + self.marks(marks)))


def drawn(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Symbols, marks and the last marked symbol of every token."""
    symbols = random.integers(0, SYMBOLS, (LENGTH, BATCH)).astype(np.int32)
    marks = random.random((LENGTH, BATCH)) < 0.1
    marks[0] = True
    last = np.maximum.accumulate(np.where(marks, np.arange(LENGTH)[:, None], 0))
    return symbols, marks.astype(np.int32), np.take_along_axis(symbols, last, 0)


def learn(kind: type[Layer], steps: int, size: int = 64, heads: int = 2) -> float:
    """Train a layer, and return the part of symbols that it names right."""
    Tensor.manual_seed(0)
    random, model = np.random.default_rng(0), Network(kind, size, heads)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.003)

    @jit
    @Tensor.train()
    def train_step(symbols: Tensor, marks: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        optimizer.zero_grad()
        names = model(symbols, marks)
        loss = names.flatten(0, 1).cross_entropy(wanted.flatten())
        loss.backward()
        optimizer.step()
        return loss, (names.argmax(-1) == wanted).mean()

    right = [float(train_step(*map(Tensor, drawn(random)))[1].item()) for _ in range(steps)]
    return float(np.mean(right[-10:]))


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=150)
    options = parser.parse_args(arguments)
    found = {
        kind.__name__: learn(kind, options.steps) for kind in (Retention, StateSpace, TimeMix)
    }
    for name, right in found.items():
        print(f"{name:12} names {right:.0%} of the last marked symbols")
    return found


if __name__ == "__main__":
    main()

"""Whole networks on a GPU beside torch: a step of training of GPT-2 and of ResNet-50.

    python -m bench device CUDA --only model

One source serves both libraries: `library` is weft or torch, and the networks are written with
the names that both have. Weights are float32, products bfloat16 (`autocast`). Torch runs eagerly
and compiled; its ResNet has channels last, as its users are told to write it. Times are those of
a step among others, the best of several; losses of some steps stand beside each other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Row = tuple[str, str, float, str, str]
Step = Callable[[], Any]
STEPS, ROUNDS = 10, 5


class GPT2(NamedTuple):
    """The sizes of a GPT: those of GPT-2 with 124 million parameters, and a batch."""

    layers: int = 12
    heads: int = 12
    width: int = 768
    vocabulary: int = 50304
    tokens: int = 1024
    batch: int = 8


def gpt(library: Any, sizes: GPT2) -> Any:
    """A decoder of blocks, which gives the loss, or scores where there are no targets."""
    nn, f = library.nn, library.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            width = sizes.width
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, tokens, width = x.shape
            parts = self.qkv(self.ln_1(x)).chunk(3, -1)
            shape = (batch, tokens, sizes.heads, width // sizes.heads)
            q, k, v = (each.reshape(shape).transpose(1, 2) for each in parts)
            y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape((batch, tokens, width)))
            return x + self.down(f.gelu(self.up(self.ln_2(x)), approximate="tanh"))

    class Decoder(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(sizes.vocabulary, sizes.width)
            self.positions = nn.Embedding(sizes.tokens, sizes.width)
            self.blocks = nn.ModuleList([Block() for _ in range(sizes.layers)])
            self.ln = nn.LayerNorm(sizes.width)

        def forward(self, ids: Any, targets: Any = None) -> Any:
            x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
            for block in self.blocks:
                x = block(x)
            scores = f.linear(self.ln(x), self.tokens.weight)
            if targets is None:
                return scores
            return f.cross_entropy(scores.reshape((-1, sizes.vocabulary)), targets.reshape((-1,)))

    return Decoder()


def resnet50(library: Any, classes: int = 1000) -> Any:
    """Bottleneck blocks, 3, 4, 6 and 3 of them: the loss, or scores where there are no classes."""
    nn, f = library.nn, library.nn.functional

    def conv(inputs: int, outputs: int, size: int, stride: int = 1) -> Any:
        return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)

    class Bottleneck(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inputs: int, inner: int, stride: int) -> None:
            super().__init__()
            outputs = 4 * inner
            self.conv1, self.bn1 = conv(inputs, inner, 1), nn.BatchNorm2d(inner)
            self.conv2, self.bn2 = conv(inner, inner, 3, stride), nn.BatchNorm2d(inner)
            self.conv3, self.bn3 = conv(inner, outputs, 1), nn.BatchNorm2d(outputs)
            self.down = None
            if stride != 1 or inputs != outputs:
                norm = nn.BatchNorm2d(outputs)
                self.down = nn.Sequential(conv(inputs, outputs, 1, stride), norm)

        def forward(self, x: Any) -> Any:
            y = self.bn1(self.conv1(x)).relu()
            y = self.bn2(self.conv2(y)).relu()
            y = self.bn3(self.conv3(y))
            return (y + (x if self.down is None else self.down(x))).relu()

    class Residual(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.bn1 = conv(3, 64, 7, 2), nn.BatchNorm2d(64)
            blocks, inputs = [], 64
            for stage, count in enumerate((3, 4, 6, 3)):
                for number in range(count):
                    stride = 2 if stage and not number else 1
                    blocks.append(Bottleneck(inputs, 64 << stage, stride))
                    inputs = 256 << stage
            self.blocks = nn.Sequential(*blocks)
            self.fc = nn.Linear(inputs, classes)

        def forward(self, x: Any, y: Any = None) -> Any:
            x = f.max_pool2d(self.bn1(self.conv1(x)).relu(), 3, 2, 1)
            scores = self.fc(self.blocks(x).mean((2, 3)))
            return scores if y is None else f.cross_entropy(scores, y)

    return Residual()


class Work(NamedTuple):
    """A network, its inputs as arrays, and how its parameters move."""

    about: str
    network: Callable[[Any], Any]
    inputs: list[Any]
    optimizer: Callable[[Any, Any], Any]
    is_image: bool


def works(batch: int = 128, sizes: GPT2 | None = None) -> list[Work]:
    """The networks, with inputs that are drawn once."""
    draw = np.random.default_rng(0)
    sizes = sizes or GPT2()
    ids = draw.integers(0, 50257, (sizes.batch, sizes.tokens + 1)).astype(np.int32)
    ids %= sizes.vocabulary
    images = draw.standard_normal((batch, 3, 224, 224)).astype(np.float32)
    classes = draw.integers(0, 1000, batch).astype(np.int32)
    return [
        Work(
            f"GPT-2 124M, {sizes.batch} x {sizes.tokens} tokens, AdamW",
            lambda library: gpt(library, sizes),
            [ids[:, :-1].copy(), ids[:, 1:].copy()],
            lambda library, p: library.optim.AdamW(p, lr=1e-4, weight_decay=0.1),
            False,
        ),
        Work(
            f"ResNet-50, batch {batch}, SGD",
            resnet50,
            [images, classes],
            lambda library, p: library.optim.SGD(p, lr=0.1, momentum=0.9),
            True,
        ),
    ]


def torch_state(work: Work) -> dict[str, Any]:
    """The weights of torch's network, with which both sides start; embeddings as GPT-2's."""
    import torch

    torch.manual_seed(0)
    state = {name: each.numpy() for name, each in work.network(torch).state_dict().items()}
    for name in ("tokens.weight", "positions.weight"):
        if name in state:
            state[name] *= 0.02
    return state


def weft_step(work: Work, state: dict[str, Any]) -> Step:
    """A jitted step."""
    import weft
    from weft import Tensor

    network = work.network(weft)
    network.load_state_dict({name: Tensor(each) for name, each in state.items()})
    network.train()
    optimizer = work.optimizer(weft, list(network.parameters()))
    inputs = [Tensor(each).realize() for each in work.inputs]

    @weft.jit
    def step(*inputs: Any) -> Any:
        optimizer.zero_grad()
        with weft.autocast("cuda"):
            loss = network(*inputs)
        loss.backward()
        optimizer.step()
        return loss

    return lambda: step(*inputs)


def torch_step(work: Work, state: dict[str, Any], is_compiled: bool) -> Step:
    """A step of torch, eager or with a compiled network."""
    import torch

    torch.backends.cudnn.benchmark = True
    last = {"memory_format": torch.channels_last} if work.is_image else {}
    network = work.network(torch).cuda().to(**last)
    network.load_state_dict({name: torch.from_numpy(each) for name, each in state.items()})
    optimizer = work.optimizer(torch, network.parameters())
    first, second = (torch.from_numpy(each).cuda() for each in work.inputs)
    first = first.to(**last) if work.is_image else first
    run = torch.compile(network) if is_compiled else network

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = run(first, second.long())
        loss.backward()
        optimizer.step()
        return loss

    return step


def measured(step: Step, wait: Callable[[], None]) -> tuple[float, float, list[float]]:
    """Seconds of the first step, of the best later one, and the first losses."""
    start = time.perf_counter()
    losses = [float(step().item())]
    first = time.perf_counter() - start
    losses += [float(step().item()) for _ in range(3)]
    seconds = []
    for _ in range(ROUNDS):
        wait()
        start = time.perf_counter()
        for _ in range(STEPS):
            step()
        wait()
        seconds.append((time.perf_counter() - start) / STEPS)
    return first, min(seconds), losses


def model_rows(name: str) -> list[Row]:
    """Networks: ours, torch's eager and compiled ones (`BENCH_COMPILED=0` leaves the last out)."""
    try:
        import torch
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []
    from weft.engine.devices import device

    rows: list[Row] = []
    for work in works():
        state = torch_state(work)
        sides: dict[str, Callable[[], Step]] = {
            "weft": lambda work=work, state=state: weft_step(work, state),  # type: ignore[misc]
            "torch eager": lambda work=work, state=state: torch_step(work, state, False),  # type: ignore[misc]
        }
        if os.environ.get("BENCH_COMPILED", "1") == "1":
            sides["torch compiled"] = lambda work=work, state=state: torch_step(work, state, True)  # type: ignore[misc]
        own = 0.0
        for side, make in sides.items():
            wait = device(name).synchronize if side == "weft" else torch.cuda.synchronize
            try:
                first, each, losses = measured(make(), wait)
            except Exception as problem:  # the others are still of use
                text = f"{type(problem).__name__}: {str(problem).splitlines()[0]}"
                rows.append(("model", f"{work.about}: {side}", 0.0, "failed", text))
                continue
            own = own or each
            note = f"first {first:.1f} s, ratio {each / own:.2f}, losses "
            note += " ".join(f"{loss:.4f}" for loss in losses)
            rows.append(("model", f"{work.about}: {side}", each * 1e3, "ms", note))
            torch.cuda.empty_cache()
    return rows

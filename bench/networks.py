"""Whole networks beside torch eager, on the CPU: forward with 1 and 8 inputs, and a training step.

    python -m bench --only networks [--json FILE]

One source serves both libraries: `library` is weft or torch, and the networks are written with
the names that both have, and start with equal weights. Weft's calls are jitted; nothing is tuned
for a network. The optimizer is AdamW in every step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bench.contest import Contest, Figures, Line, Subject, times_faster
from bench.device_models import GPT2, gpt, resnet50
from bench.network_models import bert, efficientnet, recurrent, unet_block, vit, wavenet

SUBJECT = Subject("networks", peer="torch")
SECONDS, CALLS = 0.5, 2  # of a round and a line, at least
TRAINED = 4  # inputs of a training step
FORWARD_1, FORWARD_8, STEP = "forward, batch 1", "forward, batch 8", f"training, batch {TRAINED}"
Call = Callable[[], Any]
Arrays = list[Any]


class Network(NamedTuple):
    """A network, what it takes, and what it is trained towards."""

    key: str
    name: str
    make: Callable[[Any], Any]
    inputs: Callable[[int], Arrays]  # of a batch of that size
    targets: Callable[[int], Any]
    is_classifier: bool = True


def _drawn(*shape: int) -> Callable[[int], Arrays]:
    return lambda batch: [_numbers().standard_normal((batch, *shape)).astype(np.float32)]


def _ids(most: int, *shape: int) -> Callable[[int], Any]:
    return lambda batch: _numbers().integers(0, most, (batch, *shape)).astype(np.int32)


def _numbers() -> np.random.Generator:
    return np.random.default_rng(0)


TOKENS, WORDS, SYMBOLS = 128, 30522, 50304
IMAGE, LATENT, SOUND, SERIES = (3, 224, 224), (320, 64, 64), (64, 4096), (64, 128)
_TEXT = _ids(WORDS, TOKENS)
NETWORKS = (
    Network("resnet50", "ResNet-50", resnet50, _drawn(*IMAGE), _ids(1000)),
    Network("efficientnet", "EfficientNet-B0", efficientnet, _drawn(*IMAGE), _ids(1000)),
    Network("vit", "ViT-S/16", vit, _drawn(*IMAGE), _ids(1000)),
    Network("bert", "BERT-base, 128 tokens", bert, lambda batch: [_TEXT(batch)], _ids(2)),
    Network(
        "gpt2",
        "GPT-2 124M, 128 tokens",
        lambda library: gpt(library, GPT2(tokens=TOKENS, vocabulary=SYMBOLS)),
        lambda batch: [_ids(SYMBOLS, TOKENS)(batch)],
        _ids(SYMBOLS, TOKENS),
    ),
    Network(
        "unet",
        "Stable Diffusion U-Net block",
        unet_block,
        lambda batch: [*_drawn(*LATENT)(batch), *_drawn(1280)(batch), *_drawn(77, 768)(batch)],
        lambda batch: _drawn(*LATENT)(batch)[0],
        is_classifier=False,
    ),
    Network("wavenet", "WaveNet, 20 layers", wavenet, _drawn(*SOUND), _ids(256, SOUND[1])),
    Network("lstm", "LSTM, 2 layers of 256", recurrent("LSTM"), _drawn(*SERIES), _ids(10)),
    Network("gru", "GRU, 2 layers of 256", recurrent("GRU"), _drawn(*SERIES), _ids(10)),
)


class Side(NamedTuple):
    """How a library is used: what makes its tensors, and what stands around a function."""

    library: Any
    tensor: Callable[[Any], Any]
    forward: Callable[[Call], Call]
    step: Callable[[Call], Call]


def _weft() -> Side:
    import weft
    from weft import Tensor

    return Side(weft, lambda array: Tensor(array).realize(), weft.jit, weft.jit)


def _torch() -> Side:
    import torch

    def tensor(array: Any) -> Any:
        made = torch.from_numpy(array.copy())
        return made if made.dtype == torch.float32 else made.long()

    return Side(torch, tensor, torch.no_grad(), lambda function: function)


def calls_of(network: Network, side: Side, state: dict[str, Any]) -> dict[str, Call]:
    """What the lines of a network call, by name; each returns the outputs or the loss."""
    library = side.library
    f = library.nn.functional

    def made(is_trained: bool) -> Any:
        model = network.make(library)
        model.load_state_dict({name: side.tensor(each) for name, each in state.items()})
        return model.train(is_trained)

    model, trained = made(False), made(True)
    optimizer = library.optim.AdamW(list(trained.parameters()), lr=1e-4)

    def step(*inputs: Any) -> Any:
        *inputs, y = inputs
        optimizer.zero_grad()
        out = trained(*inputs)
        loss = f.cross_entropy(*_flat(out, y)) if network.is_classifier else f.mse_loss(out, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def bound(function: Call, arrays: Arrays) -> Call:
        tensors = [side.tensor(array) for array in arrays]
        return lambda: function(*tensors)

    forward = side.forward(lambda *inputs: model(*inputs))
    return {
        FORWARD_1: bound(forward, network.inputs(1)),
        FORWARD_8: bound(forward, network.inputs(8)),
        STEP: bound(side.step(step), [*network.inputs(TRAINED), network.targets(TRAINED)]),
    }


def _flat(scores: Any, y: Any) -> tuple[Any, Any]:
    """Scores as rows of classes, and a class for each."""
    return (
        (scores, y) if y.ndim == 1 else (scores.reshape((-1, scores.shape[-1])), y.reshape((-1,)))
    )


def torch_state(network: Network) -> dict[str, Any]:
    """The weights with which both sides start."""
    import torch

    torch.manual_seed(0)
    return {name: each.numpy() for name, each in network.make(torch).state_dict().items()}


class Race(Contest):
    """The three lines of a network."""

    network: Network

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        if not has_peer:
            raise SystemExit("the weights of whole networks are drawn by torch")
        import torch

        from weft.engine.devices import device

        torch.set_num_threads(device("CPU").target.units)
        state = torch_state(self.network)
        self.calls = {
            name: calls_of(self.network, side, state)
            for name, side in (("weft", _weft()), ("torch", _torch()))
        }
        self.first = {
            name: {line: np.asarray(call().numpy()) for line, call in calls.items()}
            for name, calls in self.calls.items()
        }

    def weft(self) -> Figures:
        return self._play("weft")

    def peer(self) -> Figures:
        return self._play("torch")

    def _play(self, side: str) -> Figures:
        calls = self.calls[side]
        lines = {f"{self.network.name}, {line}": call for line, call in calls.items()}
        return {line: fastest(call) for line, call in lines.items()}

    def notes(self) -> list[str]:
        found = []
        for line, ours in self.first["weft"].items():
            theirs = self.first["torch"][line]
            difference = np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-9)
            if difference > 1e-3:
                text = f"results differ by {difference:.1e} of the greatest"
                found.append(f"{self.network.name}: {line}: {text}")
        return found


def fastest(call: Call) -> float:
    """The milliseconds of the fastest of the calls of a moment.

    One thread (`THREADS=1`) is measured by its processor time, which other work leaves alone.
    """
    from weft.engine.devices import device

    clock = time.process_time if device("CPU").target.units == 1 else time.perf_counter
    best, count, begin = math.inf, 0, clock()
    while count < CALLS or clock() - begin < SECONDS:
        start = clock()
        call()
        best, count = min(best, clock() - start), count + 1
    return best * 1e3


def _race(network: Network) -> type[Race]:
    row = type("Row", (Race,), {"network": network})
    row.__doc__ = f"{network.name}, forward and trained, jitted, beside torch eager."
    return row


for _network in NETWORKS:
    _lines = [
        Line(f"{_network.name}, {line}", "ms", times_faster(1))
        for line in (FORWARD_1, FORWARD_8, STEP)
    ]
    SUBJECT.benchmark(_network.key, *_lines, rounds=3)(_race(_network))

"""Right files of exported functions, as header, text and contents: what `function_files` edits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft import Tensor, Variable, function, jit, nn, save_function
from weft.export.container import read_container


class Parts(NamedTuple):
    """An exported function, taken apart."""

    header: dict[str, Any]
    text: str
    contents: list[bytes]


def _ramp(*shape: int) -> Tensor:
    count = int(np.prod(shape))
    return Tensor(np.arange(count, dtype=np.float32).reshape(shape) / 8).realize()


def _stateful() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    total = _ramp(4)

    def step(x: Tensor) -> Any:
        total.assign(total * 2 + x)
        total[1:3] = 0.5
        return {"total": total, "part": total[::2], "noise": Tensor.rand(3)}

    return step, (_ramp(4),)


def _written() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    def write(x: Tensor, index: Tensor, options: Any) -> Any:
        x[index] = 7.0
        return [x[1:], x.sum() * options["scale"], x[np.array([0, 5])]]

    return write, (_ramp(6), Tensor([1, 4]).realize(), {"scale": 3})


def _donated() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return jit(lambda x, y: (x + y, (x * y).sum(0)), donate=(0,)), (_ramp(3, 4), _ramp(3, 4))


def _layers() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    Tensor.manual_seed(0)
    convolution, table, last = nn.Conv2d(2, 3, 3), nn.Embedding(5, 4), nn.Linear(4, 3)

    def model(image: Tensor, words: Tensor) -> Any:
        return convolution(image).relu().max((2, 3)), last(table(words)).softmax(-1)

    return model, (_ramp(1, 2, 6, 6), Tensor([[1, 2], [0, 4]]).realize())


def _gathered() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    def gathered(x: Tensor, index: Tensor) -> Any:
        return x[index], x.scatter_reduce(0, index, x[:3], "sum"), x.sort()[0], x.cumsum(0)

    return gathered, (_ramp(7), Tensor([1, -2, 6]).realize())


def _called() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    product = function(lambda x, y: (x @ y, x.sum()))

    def called(x: Tensor) -> Any:
        first, total = product(x, x)
        return product(first, x)[0] + total

    return called, (_ramp(3, 3),)


def _symbolic() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    size = Variable("n", 1, 8)

    def sized(x: Tensor, n: Any) -> Any:
        return x[:n] * 2, x[:n].reshape(n, 1).expand(n, 3).sum(), x[:n].cat(x).max(), n * 2 + 1

    return sized, (_ramp(8), size.bind(3))


def _kept() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    def kept(x: Tensor) -> Any:
        mean = x.mean().realize()
        scale = Tensor([1.0, 2.0, 3.0])
        return (x - mean) * scale, x.T, x, x.int().cast("int8"), (x > mean).pad(((1, 0), (0, 2)))

    return kept, (_ramp(2, 3),)


SAMPLES: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "stateful": _stateful,
    "written": _written,
    "donated": _donated,
    "layers": _layers,
    "gathered": _gathered,
    "called": _called,
    "symbolic": _symbolic,
    "kept": _kept,
}


def samples(folder: Path) -> dict[str, Parts]:
    """A file of each sample."""
    found = {}
    for name, make in SAMPLES.items():
        traced, arguments = make()
        path = folder / f"{name}.weft"
        save_function(traced if hasattr(traced, "programs") else jit(traced), path, *arguments)
        header, (text, *contents) = read_container(path)
        found[name] = Parts(header, text.decode(), contents)
    return found

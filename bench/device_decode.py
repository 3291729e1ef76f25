"""One token of a language model on a GPU beside torch: decoding for one reader.

    python -m bench device CUDA --only decode

The shape is that of Llama 3.2 with a billion parameters, in bfloat16: every weight is read once
for a token, so bandwidth is the limit. One source serves both libraries, as in `device_models`;
torch's step is compiled with CUDA graphs (`mode="reduce-overhead"`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bench.device_models import Row, measured

Step = Callable[[], Any]


class Llama(NamedTuple):
    """The sizes of a decoder with grouped queries, and how many tokens it has behind it."""

    layers: int = 16
    heads: int = 32
    groups: int = 8
    size: int = 64  # of a head
    hidden: int = 8192
    vocabulary: int = 128256
    tokens: int = 1024
    position: int = 700

    @property
    def width(self) -> int:
        return self.heads * self.size


def decoder(library: Any, sizes: Llama) -> Any:
    """A network that takes a token and its position, writes its keys, and gives scores."""
    nn, f = library.nn, library.nn.functional
    kept = sizes.groups * sizes.size

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            width = sizes.width
            self.norm_1, self.norm_2 = nn.RMSNorm(width, 1e-5), nn.RMSNorm(width, 1e-5)
            self.q, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))
            self.k, self.v = (nn.Linear(width, kept, bias=False) for _ in range(2))
            self.gate, self.up = (nn.Linear(width, sizes.hidden, bias=False) for _ in range(2))
            self.down = nn.Linear(sizes.hidden, width, bias=False)

        def rotated(self, x: Any, cosine: Any, sine: Any) -> Any:
            x = x.reshape((1, 1, -1, sizes.size)).transpose(1, 2)
            left, right = x.chunk(2, -1)
            return x * cosine + library.cat((-right, left), -1) * sine

        def forward(self, x: Any, position: Any, rotation: Any, seen: Any, *cache: Any) -> Any:
            keys, values = cache
            h = self.norm_1(x)
            q, k = self.rotated(self.q(h), *rotation), self.rotated(self.k(h), *rotation)
            v = self.v(h).reshape((1, 1, sizes.groups, sizes.size)).transpose(1, 2)
            keys.index_copy_(2, position, k)
            values.index_copy_(2, position, v)
            y = f.scaled_dot_product_attention(q, keys, values, attn_mask=seen, enable_gqa=True)
            x = x + self.o(y.transpose(1, 2).reshape((1, 1, sizes.width)))
            h = self.norm_2(x)
            return x + self.down(f.silu(self.gate(h)) * self.up(h))

    class Decoder(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(sizes.vocabulary, sizes.width)
            self.layers = nn.ModuleList([Layer() for _ in range(sizes.layers)])
            self.norm = nn.RMSNorm(sizes.width, 1e-5)

        def forward(
            self, ids: Any, position: Any, rates: Any, positions: Any, *caches: Any
        ) -> Any:
            angles = position.float() * rates
            rotation = (
                angles.cos().to(self.norm.weight.dtype),
                angles.sin().to(self.norm.weight.dtype),
            )
            seen = (positions <= position).reshape((1, 1, 1, sizes.tokens))
            x = self.tokens(ids)
            for number, layer in enumerate(self.layers):
                x = layer(x, position, rotation, seen, *caches[2 * number : 2 * number + 2])
            return f.linear(self.norm(x), self.tokens.weight).argmax(-1)

    return Decoder()


def arrays(sizes: Llama) -> list[Any]:
    """A token, its position, the angles of a step along the text, and all positions."""
    half = 500000.0 ** (-np.arange(0, sizes.size, 2) / sizes.size)
    return [
        np.full((1, 1), 17, np.int32),
        np.full(1, sizes.position, np.int64),
        np.concatenate((half, half)).astype(np.float32),
        np.arange(sizes.tokens, dtype=np.int64),
    ]


def prepared(library: Any, sizes: Llama, to_device: Callable[[Any], Any], half: Any) -> list[Any]:
    """What a step takes: the arrays, and keys and values of each layer."""
    shape = (1, sizes.groups, sizes.tokens, sizes.size)
    count = 2 * sizes.layers
    caches = (to_device(np.zeros(shape, np.float32)).to(half) for _ in range(count))
    return [*map(to_device, arrays(sizes)), *caches]


def weft_decode(sizes: Llama) -> Step:
    """A jitted step."""
    import weft
    from weft import Tensor

    network = decoder(weft, sizes).to(weft.bfloat16)
    inputs = [each.realize() for each in prepared(weft, sizes, Tensor, weft.bfloat16)]
    step = weft.jit(network.forward)

    def run() -> Any:
        with weft.no_grad():
            return step(*inputs)

    return run


def torch_decode(sizes: Llama) -> Step:
    """A step of torch, compiled into CUDA graphs."""
    import torch

    network = decoder(torch, sizes).to(torch.bfloat16).cuda().eval()
    inputs = prepared(torch, sizes, lambda a: torch.from_numpy(a).cuda(), torch.bfloat16)
    compiled = torch.compile(network, mode="reduce-overhead")

    def run() -> Any:
        with torch.no_grad():
            return compiled(*inputs)

    return run


def decode_rows(name: str) -> list[Row]:
    """Microseconds of a token, ours and torch's."""
    try:
        import torch
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []
    from weft.engine.devices import device

    rows: list[Row] = []
    sides = {
        "weft": (weft_decode, device(name).synchronize),
        "torch compiled": (torch_decode, torch.cuda.synchronize),
    }
    for side, (make, wait) in sides.items():
        about = f"Llama 1B, one token at {Llama().position}: {side}"
        try:
            first, each, _ = measured(make(Llama()), wait)
        except Exception as problem:  # the other is still of use
            text = f"{type(problem).__name__}: {str(problem).splitlines()[0]}"
            rows.append(("decode", about, 0.0, "failed", text))
            continue
        rows.append(("decode", about, each * 1e6, "us", f"{1 / each:.0f}/s, first {first:.1f} s"))
    return rows

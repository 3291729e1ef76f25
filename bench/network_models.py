"""The networks of `bench/networks.py`, in the names that weft and torch share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Of each stage of EfficientNet-B0: how much wider inside, channels, blocks, stride, kernel size.
STAGES: tuple[tuple[int, ...], ...] = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
)
STAGES += ((6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))


def efficientnet(library: Any, classes: int = 1000) -> Any:
    """EfficientNet-B0: inverted bottlenecks with squeeze and excitation."""
    nn, f = library.nn, library.nn.functional

    def unit(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> list[Any]:
        padding = size // 2
        conv = nn.Conv2d(
            *(inputs, outputs, size, stride, padding), **{"groups": groups, "bias": False}
        )
        return [conv, nn.BatchNorm2d(outputs)]

    class Squeeze(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int, inner: int) -> None:
            super().__init__()
            self.down, self.up = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)

        def forward(self, x: Any) -> Any:
            y = self.up(f.silu(self.down(x.mean((2, 3), keepdim=True))))
            return x * y.sigmoid()

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inputs: int, outputs: int, wider: int, stride: int, size: int) -> None:
            super().__init__()
            inner = inputs * wider
            layers = [*unit(inputs, inner, 1), nn.SiLU()] if wider > 1 else []
            layers += [*unit(inner, inner, size, stride, inner), nn.SiLU()]
            layers += [Squeeze(inner, max(1, inputs // 4)), *unit(inner, outputs, 1)]
            self.layers = nn.Sequential(*layers)
            self.is_joined = stride == 1 and inputs == outputs

        def forward(self, x: Any) -> Any:
            y = self.layers(x)
            return x + y if self.is_joined else y

    class Efficient(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            layers, inputs = [*unit(3, 32, 3, 2), nn.SiLU()], 32
            for wider, outputs, count, stride, size in STAGES:
                for number in range(count):
                    step = 1 if number else stride
                    layers.append(Block(inputs, outputs, wider, step, size))
                    inputs = outputs
            self.layers = nn.Sequential(*layers, *unit(inputs, 1280, 1), nn.SiLU())
            self.head = nn.Linear(1280, classes)

        def forward(self, x: Any) -> Any:
            return self.head(self.layers(x).mean((2, 3)))

    return Efficient()


def attention(library: Any, width: int, heads: int, context: int | None = None) -> Any:
    """Attention of several heads; to a context of another width where one is given."""
    nn, f = library.nn, library.nn.functional

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.q = nn.Linear(width, width)
            self.k, self.v = (nn.Linear(context or width, width) for _ in range(2))
            self.out = nn.Linear(width, width)

        def forward(self, x: Any, y: Any = None) -> Any:
            batch, tokens, _ = x.shape
            y = x if y is None else y
            q, k, v = (
                layer(each).reshape((batch, each.shape[1], heads, width // heads)).transpose(1, 2)
                for layer, each in ((self.q, x), (self.k, y), (self.v, y))
            )
            mixed = f.scaled_dot_product_attention(q, k, v).transpose(1, 2)
            return self.out(mixed.reshape((batch, tokens, width)))

    return Attention()


def vit(library: Any, classes: int = 1000) -> Any:
    """ViT-S/16: twelve blocks of width 384 over 197 tokens, norms first."""
    nn, f = library.nn, library.nn.functional
    width, heads, layers, patch, tokens = 384, 6, 12, 16, 197

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = attention(library, width, heads)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.down(f.gelu(self.up(self.norm2(x))))

    class Transformer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.first = nn.Parameter(library.zeros(1, 1, width))
            self.positions = nn.Parameter(library.zeros(1, tokens, width))
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = library.cat([self.first.expand(x.shape[0], 1, width), x], 1) + self.positions
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x)[:, 0])

    return Transformer()


def bert(library: Any, classes: int = 2) -> Any:
    """BERT-base: twelve blocks of width 768, norms last; classes of the first token."""
    nn, f = library.nn, library.nn.functional
    width, heads, layers, words, places = 768, 12, 12, 30522, 512

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = attention(library, width, heads)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            x = self.norm1(x + self.attention(x))
            return self.norm2(x + self.down(f.gelu(self.up(x))))

    class Encoder(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.positions = nn.Embedding(words, width), nn.Embedding(places, width)
            self.norm = nn.LayerNorm(width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.pooler, self.head = nn.Linear(width, width), nn.Linear(width, classes)

        def forward(self, ids: Any) -> Any:
            x = self.norm(self.words(ids) + self.positions.weight[: ids.shape[1]])
            for block in self.blocks:
                x = block(x)
            return self.head(self.pooler(x[:, 0]).tanh())

    return Encoder()


def unet_block(library: Any) -> Any:
    """A block of Stable Diffusion's U-Net at 64 x 64: a residual part and a transformer."""
    nn, f = library.nn, library.nn.functional
    width, heads, context, steps = 320, 8, 768, 1280

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.GroupNorm(32, width), nn.GroupNorm(32, width)
            self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
            self.time = nn.Linear(steps, width)
            self.norm3, self.into, self.out = (
                nn.GroupNorm(32, width),
                *(nn.Conv2d(width, width, 1) for _ in range(2)),
            )
            self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])
            self.own = attention(library, width, heads)
            self.other = attention(library, width, heads, context)
            self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any, time: Any, text: Any) -> Any:
            y = self.conv1(f.silu(self.norm1(x)))
            y = y + self.time(f.silu(time))[:, :, None, None]
            x = x + self.conv2(f.silu(self.norm2(y)))
            batch, _, height, across = x.shape
            y = self.into(self.norm3(x)).flatten(2).transpose(1, 2)
            y = y + self.own(self.norms[0](y))
            y = y + self.other(self.norms[1](y), text)
            value, gate = self.up(self.norms[2](y)).chunk(2, -1)
            y = y + self.down(value * f.gelu(gate))
            return x + self.out(y.transpose(1, 2).reshape((batch, width, height, across)))

    return Block()


def wavenet(library: Any) -> Any:
    """Twenty gated layers of dilated convolutions over sound, and 256 scores for each sample."""
    nn, f = library.nn, library.nn.functional
    channels, skips, symbols, layers = 64, 128, 256, 20

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, dilation: int) -> None:
            super().__init__()
            self.dilation = dilation
            self.gates = nn.Conv1d(channels, 2 * channels, 2, dilation=dilation)
            self.mix, self.skip = nn.Conv1d(channels, channels, 1), nn.Conv1d(channels, skips, 1)

        def forward(self, x: Any) -> Any:
            value, gate = self.gates(f.pad(x, (self.dilation, 0))).chunk(2, 1)
            y = value.tanh() * gate.sigmoid()
            return x + self.mix(y), self.skip(y)

    class WaveNet(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([Layer(2 ** (i % 10)) for i in range(layers)])
            self.inner, self.out = nn.Conv1d(skips, skips, 1), nn.Conv1d(skips, symbols, 1)

        def forward(self, x: Any) -> Any:
            total: Any = 0
            for layer in self.layers:
                x, skip = layer(x)
                total = total + skip
            return self.out(self.inner(total.relu()).relu()).transpose(1, 2)

    return WaveNet()


def recurrent(kind: str) -> Callable[[Any], Any]:
    """Two layers of 256 of an LSTM or a GRU over 64 steps of 128 numbers, and ten classes."""

    def make(library: Any) -> Any:
        nn = library.nn

        class Recurrent(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.layers = getattr(nn, kind)(128, 256, 2, batch_first=True)
                self.head = nn.Linear(256, 10)

            def forward(self, x: Any) -> Any:
                return self.head(self.layers(x)[0][:, -1])

        return Recurrent()

    return make

"""Random trees of reductions, contractions and joins, with gradients: the lines of deep programs.

A tree is made from its root down: a value of some shape is a reduction of a larger one, a cat of
smaller ones, a product of two, or a value that is there already. `fuzz.deep_programs` runs the
lines; `lib` in them is one of `fuzz.deep_libraries`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Final

Shape = tuple[int, ...]
SIZES: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 20, 32, 33)
LETTERS: Final = "abcdefg"
# The most elements of a value, and the most lines: small programs run on the interpreter too.
SMALL: Final = (150, 14)
MIDDLE: Final = (1500, 26)
LARGE: Final = (12000, 44)

Form = Callable[[Shape, int], str | None]


class Tree:
    """One program: its lines, and the shape of each name."""

    def __init__(self, seed: int, limits: tuple[int, int] = MIDDLE) -> None:
        self.random = random.Random(seed)
        self.most_elements, self.most_lines = limits
        self.lines: list[str] = []
        self.shapes: dict[str, Shape] = {}
        self.leaves: list[str] = []
        # Rounding to small floats in between asks for a tolerance of its own.
        self.is_rounded = self.random.random() < 0.15
        self.forms, self.weights = self.table()
        self.outputs = self.build()

    def table(self) -> tuple[list[Form], list[int]]:
        rows: list[tuple[int, Form]] = [
            (3, self.unary),
            (5, self.binary),
            (3, self.choice),
            (4, self.cat),
            (2, self.pad),
            (3, self.part),
            (8, self.reduction),
            (6, self.reduction_kept),
            (6, self.centered),
            (6, self.normalized),
            (4, self.matmul),
            (2, self.einsum),
            (2, self.attention),
            (3, self.conv),
            (2, self.pool),
            (4, self.scan),
            (3, self.gather),
            (1, self.greatest),
            (1, self.scatter),
            (1, self.order),
            (2, self.permute),
            (2, self.reshape),
            (2, self.permuted),
            (2, self.expand),
            (1, self.fence),
        ]
        if self.is_rounded:
            rows.append((3, self.rounded))
        return [form for _, form in rows], [weight for weight, _ in rows]

    def build(self) -> list[str]:
        """The lines of some trees, of what is lost by them, and of gradients; the results."""
        depth = self.random.randint(3, 7)
        roots = [self.value(self.shape(), depth) for _ in range(self.random.choice((1, 1, 2, 3)))]
        losses = [self.add(f"lib.loss({root}, {self.seed()})", ()) for root in roots]
        loss = losses[0] if len(losses) == 1 else self.add(" + ".join(losses), ())
        results = list(roots)
        chosen = self.random.sample(self.leaves, min(len(self.leaves), self.random.randint(1, 4)))
        gradients = [self.gradient(loss, leaf) for leaf in chosen]
        if self.random.random() < 0.15:
            again = self.add(f"lib.loss({gradients[0]}, {self.seed()})", ())
            gradients.append(self.gradient(again, self.random.choice(chosen)))
        return list(dict.fromkeys(results + gradients))

    def gradient(self, loss: str, target: str) -> str:
        return self.add(f"lib.gradient({loss}, {target})", self.shapes[target])

    # Names, shapes and numbers.

    def add(self, text: str, shape: Shape) -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.shapes[name] = shape
        return name

    def seed(self) -> int:
        return self.random.randrange(10_000)

    def size(self, most: int | None = None) -> int:
        most = self.most_elements if most is None else most
        return self.random.choice([size for size in SIZES if size <= most] or [1])

    def shape(self) -> Shape:
        shape: Shape = ()
        for _ in range(self.random.choice((0, 1, 2, 2, 3, 3, 4))):
            shape = (*shape, self.size(self.room(shape) // 4))
        return shape

    def room(self, shape: Shape) -> int:
        """By how much a shape may grow."""
        return int(self.most_elements // max(1, math.prod(shape)))

    def axis(self, shape: Shape) -> int:
        return self.random.randrange(len(shape))

    def value(self, shape: Shape, depth: int) -> str:
        """A name with this shape: one that is there, a leaf, or a new tree."""
        same = [name for name, other in self.shapes.items() if other == shape]
        if same and self.random.random() < (0.2 if depth > 0 else 0.5):
            return self.random.choice(same)
        if depth <= 0 or len(self.lines) >= self.most_lines:
            return self.leaf(shape)
        while True:
            form = self.random.choices(self.forms, self.weights)[0]
            made = form(shape, depth - 1)
            if made is not None:
                return made

    def leaf(self, shape: Shape) -> str:
        name = self.add(f"lib.leaf({shape}, {self.seed()})", shape)
        self.leaves.append(name)
        return name

    # Elementwise.

    def unary(self, shape: Shape, depth: int) -> str:
        x = self.value(shape, depth)
        forms = ["{0}.tanh()", "{0}.sin()", "lib.power({0})", "lib.root({0})", "{0} * 0.5"]
        forms += [
            "lib.logarithm({0})",
            "lib.spread({0})",
            "{0}.relu()",
            "-{0}",
            "{0} * {0} * 0.25",
        ]
        return self.add(self.random.choice(forms).format(x), shape)

    def binary(self, shape: Shape, depth: int) -> str:
        x = self.value(shape, depth)
        other = tuple(1 if self.random.random() < 0.25 else size for size in shape)
        other = other[self.random.choice((0, 0, 0, 1)) :]
        y = self.value(other, depth)
        forms = ("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / lib.spread({1})", "{1} - {0}")
        return self.add(self.random.choice(forms).format(x, y), shape)

    def choice(self, shape: Shape, depth: int) -> str | None:
        if not shape:
            return None
        x = self.value(shape, depth)
        y = self.value(shape, depth) if self.random.random() < 0.6 else f"{x} * 0.0"
        return self.add(f"lib.where(lib.mask({shape}, {self.seed()}), {x}, {y})", shape)

    def rounded(self, shape: Shape, depth: int) -> str:
        dtype = self.random.choice(("float16", "bfloat16"))
        return self.add(f"lib.rounded({self.value(shape, depth)}, {dtype!r})", shape)

    def fence(self, shape: Shape, depth: int) -> str:
        word = self.random.choice(("lib.fence({0})", "{0}.detach()"))
        return self.add(word.format(self.value(shape, depth)), shape)

    # Joins and parts.

    def cat(self, shape: Shape, depth: int) -> str | None:
        axes = [axis for axis, size in enumerate(shape) if size > 1]
        if not axes:
            return None
        axis = self.random.choice(axes)
        size = shape[axis]
        cuts = sorted(self.random.sample(range(1, size), min(size - 1, self.random.randint(1, 3))))
        parts = []
        for start, end in zip([0, *cuts], [*cuts, size], strict=True):
            parts.append(self.value((*shape[:axis], end - start, *shape[axis + 1 :]), depth))
        return self.add(f"lib.cat({axis}, {', '.join(parts)})", shape)

    def pad(self, shape: Shape, depth: int) -> str | None:
        if not shape:
            return None
        pads = []
        for size in shape:
            before = self.random.randint(0, min(2, size - 1)) if self.random.random() < 0.5 else 0
            pads.append((before, self.random.randint(0, min(2, size - 1 - before))))
        inner = tuple(size - sum(pair) for size, pair in zip(shape, pads, strict=True))
        return self.add(f"lib.pad({self.value(inner, depth)}, {pads})", shape)

    def part(self, shape: Shape, depth: int) -> str | None:
        if not shape or self.room(shape) < 2:
            return None
        axis = self.axis(shape)
        before, after = self.random.randint(0, 2), self.random.randint(0, 2)
        step = self.random.choice((1, 1, 2))
        outer = (*shape[:axis], before + shape[axis] * step + after, *shape[axis + 1 :])
        key = ":, " * axis + f"{before}:{before + shape[axis] * step}:{step}"
        return self.add(f"{self.value(outer, depth)}[{key}]", shape)

    # Reductions.

    def reduced(self, x: str, axis: int, keepdim: bool) -> str:
        """The text of a reduction along one axis."""
        word = self.random.choice(
            ("sum", "sum", "sum", "mean", "amax", "amin", "logsumexp", "var", "norm", "product")
            + ("count",) * (x in self.leaves)
        )
        if word in ("amax", "amin", "norm", "product", "count"):
            return f"lib.{word}({x}, {axis}, {keepdim})"
        more = ", correction=0" if word == "var" else ""
        return f"{x}.{word}({axis}, keepdim={keepdim}{more})"

    def reduction(self, shape: Shape, depth: int) -> str | None:
        if self.room(shape) < 2 or len(shape) > 3:
            return None
        axis = self.random.randint(0, len(shape))
        outer = (*shape[:axis], self.size(self.room(shape)), *shape[axis:])
        if self.random.random() < 0.3 and self.room(outer) > 1:
            outer = (*outer[:axis], self.size(self.room(outer)), *outer[axis:])
            x = self.value(outer, depth)
            return self.add(f"{x}.sum(({axis}, {axis + 1}))", shape)
        return self.add(self.reduced(self.value(outer, depth), axis, False), shape)

    def reduction_kept(self, shape: Shape, depth: int) -> str | None:
        axes = [axis for axis, size in enumerate(shape) if size == 1]
        if not axes or self.room(shape) < 2:
            return None
        axis = self.random.choice(axes)
        outer = (*shape[:axis], self.size(self.room(shape)), *shape[axis + 1 :])
        return self.add(self.reduced(self.value(outer, depth), axis, True), shape)

    def centered(self, shape: Shape, depth: int) -> str | None:
        """A value next to a reduction of itself."""
        if not shape:
            return None
        x, axis = self.value(shape, depth), self.axis(shape)
        kept = (*shape[:axis], 1, *shape[axis + 1 :])
        total = self.add(self.reduced(x, axis, True), kept)
        forms = ("{0} - {1}", "{0} / lib.spread({1})", "{0} * {1}.tanh()", "lib.power({0} - {1})")
        return self.add(self.random.choice(forms).format(x, total), shape)

    def normalized(self, shape: Shape, depth: int) -> str | None:
        if not shape:
            return None
        x, axis = self.value(shape, depth), self.axis(shape)
        forms = ("{0}.softmax({1})", "{0}.softmax({1})", "{0}.log_softmax({1})")
        forms += ("lib.layer_norm({0}, {1})", "lib.rms_norm({0}, {1})")
        return self.add(self.random.choice(forms).format(x, axis), shape)

    def scan(self, shape: Shape, depth: int) -> str | None:
        if not shape:
            return None
        x, axis = self.value(shape, depth), self.axis(shape)
        forms = ("{0}.cumsum({1})", "{0}.cumsum({1})", "lib.cummax({0}, {1})")
        forms += ("{0}.logcumsumexp({1})", "({0}.tanh() + 1.25).cumprod({1})")
        return self.add(self.random.choice(forms).format(x, axis), shape)

    # Contractions.

    def matmul(self, shape: Shape, depth: int) -> str | None:
        if len(shape) < 2:
            return None
        *batch, rows, columns = shape
        inner = self.size(min(self.room((*batch, rows)), self.room((*batch, columns))))
        batch_of_right = tuple(batch) if self.random.random() < 0.5 else ()
        x = self.value((*batch, rows, inner), depth)
        y = self.value((*batch_of_right, inner, columns), depth)
        return self.add(f"{x} @ {y}", shape)

    def einsum(self, shape: Shape, depth: int) -> str | None:
        if len(shape) > 4:
            return None
        out, summed = LETTERS[: len(shape)], LETTERS[len(shape) : len(shape) + 2]
        sizes = dict(zip(out, shape, strict=True))
        sizes.update({letter: self.size(8) for letter in summed})
        terms = []
        for _ in range(self.random.choice((2, 2, 3))):
            letters = [letter for letter in sizes if self.random.random() < 0.6]
            terms.append("".join(self.random.sample(letters, len(letters))))
        terms[0] += "".join(letter for letter in sizes if letter not in "".join(terms))
        shapes = [tuple(sizes[letter] for letter in term) for term in terms]
        if any(math.prod(each) > self.most_elements for each in shapes):
            return None
        parts = [self.value(each, depth) for each in shapes]
        formula = ",".join(terms) + "->" + out
        return self.add(f"lib.einsum({formula!r}, {', '.join(parts)})", shape)

    def attention(self, shape: Shape, depth: int) -> str | None:
        if len(shape) < 2:
            return None
        *batch, rows, size = shape
        keys = self.size(max(1, self.room((*batch, max(rows, size)))))
        width = self.size(min(8, self.room((*batch, max(rows, keys)))))
        q = self.value((*batch, rows, width), depth)
        k = self.value((*batch, keys, width), depth)
        v = self.value((*batch, keys, size), depth)
        has_bias = self.random.random() < 0.5 and self.room((*batch, rows, keys)) > 0
        bias = self.value((*batch, rows, keys), depth) if has_bias else None
        return self.add(f"lib.attention({q}, {k}, {v}, {bias})", shape)

    def conv(self, shape: Shape, depth: int) -> str | None:
        if len(shape) != 4:
            return None
        batch, channels, height, width = shape
        groups = self.random.choice([each for each in (1, 1, 2, 3) if channels % each == 0])
        inner, kernel = self.random.randint(1, 3), self.random.randint(1, 3)
        padding, stride = self.random.randint(0, 1), self.random.choice((1, 1, 2, 3))
        sides = [self.side(size, kernel, stride) - 2 * padding for size in (height, width)]
        outer = (batch, inner * groups, *sides)
        if min(sides) < 1 or not self.room(outer):
            return None
        x = self.value(outer, depth)
        weight = self.value((channels, inner, kernel, kernel), depth)
        return self.add(f"lib.conv({x}, {weight}, {groups}, {padding}, {stride})", shape)

    def side(self, size: int, window: int, stride: int) -> int:
        """A size over which so many windows fit, some with a rest that none of them sees."""
        return (size - 1) * stride + window + self.random.randrange(stride)

    def pool(self, shape: Shape, depth: int) -> str | None:
        if len(shape) != 4:
            return None
        window, stride = self.random.randint(1, 3), self.random.randint(1, 3)
        outer = (*shape[:2], *(self.side(size, window, stride) for size in shape[2:]))
        if not self.room(outer):
            return None
        word = self.random.choice(("max_pool", "average_pool"))
        return self.add(f"lib.{word}({self.value(outer, depth)}, {window}, {stride})", shape)

    # Reads at positions.

    def gather(self, shape: Shape, depth: int) -> str | None:
        if not shape:
            return None
        axis = self.axis(shape)
        if self.random.random() < 0.5:
            outer = (self.size(self.room(shape[1:])), *shape[1:])
            x = self.value(outer, depth)
            return self.add(f"lib.pick({x}, ({shape[0]},), {self.seed()})", shape)
        size = self.size(self.room((*shape[:axis], *shape[axis + 1 :])))
        x = self.value((*shape[:axis], size, *shape[axis + 1 :]), depth)
        return self.add(f"lib.take({x}, {axis}, {shape[axis]}, {self.seed()})", shape)

    def greatest(self, shape: Shape, depth: int) -> str | None:
        axes = [axis for axis, size in enumerate(shape) if size == 1]
        if not axes or self.room(shape) < 2:
            return None
        axis = self.random.choice(axes)
        outer = (*shape[:axis], self.size(self.room(shape)), *shape[axis + 1 :])
        x, y = self.leaf(outer), self.value(outer, depth)
        return self.add(f"lib.greatest({x}, {y}, {axis})", shape)

    def scatter(self, shape: Shape, depth: int) -> str | None:
        if not shape:
            return None
        axis = self.axis(shape)
        size = self.size(min(9, self.room((*shape[:axis], *shape[axis + 1 :]))))
        x = self.value(shape, depth)
        source = self.value((*shape[:axis], size, *shape[axis + 1 :]), depth)
        return self.add(f"lib.scatter({x}, {source}, {axis}, {self.seed()})", shape)

    def order(self, shape: Shape, depth: int) -> str | None:
        if not shape:
            return None
        axis = self.axis(shape)
        if self.random.random() < 0.5:
            return self.add(f"lib.sort({self.leaf(shape)}, {axis})", shape)
        outer = (*shape[:axis], shape[axis] + self.random.randint(0, 3), *shape[axis + 1 :])
        return self.add(f"lib.top({self.leaf(outer)}, {shape[axis]}, {axis})", shape)

    # Views.

    def permute(self, shape: Shape, depth: int) -> str | None:
        if len(shape) < 2:
            return None
        order = self.random.sample(range(len(shape)), len(shape))
        inner = tuple(shape[order.index(axis)] for axis in range(len(shape)))
        return self.add(f"{self.value(inner, depth)}.permute({order})", shape)

    def reshape(self, shape: Shape, depth: int) -> str | None:
        if not shape:
            return None
        axis = self.axis(shape)
        size = shape[axis]
        if len(shape) > 1 and axis and self.random.random() < 0.5:
            inner = (*shape[: axis - 1], shape[axis - 1] * size, *shape[axis + 1 :])
        elif len(shape) < 4:
            factor = self.random.choice([each for each in range(1, size + 1) if size % each == 0])
            inner = (*shape[:axis], factor, size // factor, *shape[axis + 1 :])
        else:
            return None
        return self.add(f"{self.value(inner, depth)}.reshape({shape})", shape)

    def permuted(self, shape: Shape, depth: int) -> str | None:
        if not shape:
            return None
        x, axis = self.value(shape, depth), self.axis(shape)
        forms = ("lib.flip({0}, {1})", "{0}.roll({2}, {1})")
        return self.add(self.random.choice(forms).format(x, axis, self.seed() % 5), shape)

    def expand(self, shape: Shape, depth: int) -> str | None:
        if not shape:
            return None
        inner = tuple(1 if self.random.random() < 0.5 else size for size in shape)
        return self.add(f"{self.value(inner, depth)}.expand({shape})", shape)

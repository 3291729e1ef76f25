"""Random chains of movement ops, as index expressions that nobody has simplified.

A tensor of one shape is reshaped, permuted, flipped, padded and shrunk, step by step; the indices
of its elements go through the steps from the output back to memory. A reshape flattens the indices
with the strides of one shape and takes them apart again, by division and remainder, with those of
the other: the form in which convolution windows, attention heads and tiles arrive.
"""

import math
import random
from collections.abc import Iterator

from bench.corpus.convert import Graph
from bench.corpus.load import Expression

# Numbers with many divisors, so that shapes of equal size differ in more than their order.
SIZES = (60, 72, 84, 96, 120, 144, 180, 210, 240, 336, 360, 432, 720, 1008, 1260, 2520)
CHAINS = 120
MOST_STEPS = 5


class Chain:
    """One index expression per axis of a tensor, and the conditions under which they hold."""

    def __init__(self, shape: list[int]) -> None:
        self.graph = Graph(renumber=True)
        self.shape = shape
        self.masks: list[int] = []
        self.indices = [self.graph.add("range", i, size) for i, size in enumerate(shape)]

    def constant(self, value: int) -> int:
        return self.graph.add("const", value)

    def flat(self) -> int:
        """Return the offset in memory of the element, were it stored in this shape."""
        add, stride = self.graph.add, 1
        total = self.constant(0)
        for index, size in zip(reversed(self.indices), reversed(self.shape), strict=True):
            total = add("add", total, add("mul", self.constant(stride), index))
            stride *= size
        return total

    def reshape(self, shape: list[int]) -> None:
        rest, indices = self.flat(), []
        for size in reversed(shape):
            indices.append(self.graph.add("floormod", rest, self.constant(size)))
            rest = self.graph.add("floordiv", rest, self.constant(size))
        self.shape, self.indices = shape, indices[::-1]

    def permute(self, order: list[int]) -> None:
        self.shape = [self.shape[i] for i in order]
        self.indices = [self.indices[i] for i in order]

    def flip(self, axis: int) -> None:
        add = self.graph.add
        negated = add("mul", self.indices[axis], self.constant(-1))
        self.indices[axis] = add("add", self.constant(self.shape[axis] - 1), negated)

    def unpad(self, axis: int, before: int, after: int) -> None:
        """Go from a padded tensor to the one inside it; outside, the index does not hold."""
        add, index = self.graph.add, self.indices[axis]
        size = self.shape[axis] - before - after
        below = add("less", index, self.constant(before))
        inside = add("less", index, self.constant(before + size))
        self.masks.append(add("and", add("not", below), inside))
        self.indices[axis] = add("add", index, self.constant(-before))
        self.shape[axis] = size

    def unshrink(self, axis: int, before: int, after: int) -> None:
        """Go from a part of a tensor to the whole."""
        self.indices[axis] = self.graph.add("add", self.indices[axis], self.constant(before))
        self.shape[axis] += before + after

    def windows(self, axis: int, size: int, step: int, dilation: int) -> None:
        """Go from windows, one axis for their position and one inside, to what they slide over."""
        add = self.graph.add
        start = add("mul", self.indices[axis], self.constant(step))
        inside = add("mul", self.graph.add("range", 100 + axis, size), self.constant(dilation))
        self.indices[axis] = add("add", start, inside)
        self.shape[axis] = (self.shape[axis] - 1) * step + (size - 1) * dilation + 1


def random_shape(generator: random.Random, total: int) -> list[int]:
    """Return two to five factors, none of them 1 but by necessity, whose product is the total."""
    shape, rest = [], total
    for _ in range(generator.randint(1, 4)):
        divisors = [d for d in range(2, rest) if rest % d == 0]
        if not divisors:
            break
        shape.append(generator.choice(divisors))
        rest //= shape[-1]
    shape.append(rest)
    generator.shuffle(shape)
    return shape


def random_step(generator: random.Random, chain: Chain) -> None:
    axis = generator.randrange(len(chain.shape))
    before, after = generator.randint(0, 2), generator.randint(1, 2)
    match generator.choice(("reshape", "reshape", "permute", "flip", "unpad", "unshrink")):
        case "reshape":
            chain.reshape(random_shape(generator, math.prod(chain.shape)))
        case "permute":
            chain.permute(generator.sample(range(len(chain.shape)), len(chain.shape)))
        case "flip":
            chain.flip(axis)
        case "unpad" if chain.shape[axis] > before + after:
            chain.unpad(axis, before, after)
        case _:
            chain.unshrink(axis, before, after)


def reshape_chains() -> Iterator[Expression]:
    """Yield the chains; the same ones each time."""
    generator = random.Random("reshape chains")
    for number in range(CHAINS):
        chain = Chain(random_shape(generator, generator.choice(SIZES)))
        if number % 3 == 0:
            axis = generator.randrange(len(chain.shape))
            chain.windows(axis, generator.randint(2, 5), generator.randint(1, 3), 1 + number % 2)
        chain.reshape(random_shape(generator, math.prod(chain.shape)))
        for _ in range(generator.randint(0, MOST_STEPS)):
            random_step(generator, chain)
        root, kind = chain.flat(), "index"
        if chain.masks:
            mask = chain.graph.all_of(chain.masks)
            yield chain.graph.expression("reshapes", "synthetic", "gate", mask)
            root, kind = chain.graph.add("gated", mask, root), "gated"
        yield chain.graph.expression("reshapes", "synthetic", kind, root)

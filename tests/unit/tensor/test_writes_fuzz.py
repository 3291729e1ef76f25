"""Random programs of views, reads and writes, with NumPy as the oracle.

A program holds a few integer tensors, views of them and lazy expressions, and realizes some of
them at random points. Every line must mean what it means in NumPy, where it runs at once.
"""

import random
from typing import Any

import numpy as np
import pytest

from weft.tensor import Tensor

PROGRAMS = 300
SHAPES = ((4,), (3, 4), (2, 3, 2), (6, 1), (1, 5))


class Program:
    """Pairs of a tensor and the array that it must equal."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.pairs: list[tuple[Tensor, np.ndarray]] = []
        self.frozen: list[tuple[Tensor, np.ndarray]] = []
        for _ in range(2):
            self.new()

    def pick(self) -> tuple[Tensor, np.ndarray]:
        return self.random.choice(self.pairs)

    def new(self) -> None:
        shape = self.random.choice(SHAPES)
        kind = self.random.randrange(3)
        self.lines.append(f"new {shape} {kind}")
        if kind == 0:
            self.pairs.append((Tensor.zeros(*shape, dtype="int32"), np.zeros(shape, np.int32)))
            return
        array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        tensor = Tensor(array) if kind == 1 else Tensor.arange(array.size).reshape(shape)
        self.pairs.append((tensor, array.copy()))

    def key(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        parts: list[Any] = []
        for size in shape:
            kind = self.random.randrange(5)
            start = self.random.randrange(size)
            if kind == 0:
                parts.append(start - size * self.random.randrange(2))
            elif kind == 1:
                parts.append(slice(start, None))
            elif kind == 2:
                parts.append(slice(None, None, self.random.choice((-2, -1, 2, 3))))
            elif kind == 3:
                parts.append(slice(None, self.random.randrange(size + 1)))
            else:
                parts.append(slice(None))
        return tuple(parts[: self.random.randrange(len(parts) + 1)])

    def view(self) -> None:
        tensor, array = self.pick()
        kind = self.random.randrange(4)
        self.lines.append(f"view {self.index(tensor)} {kind}")
        if kind == 0 and array.flags.c_contiguous:
            self.pairs.append((tensor.reshape(-1), array.reshape(-1)))
        elif kind == 1:
            order = list(range(array.ndim))
            self.random.shuffle(order)
            self.pairs.append((tensor.permute(order), array.transpose(order)))
        elif array.ndim and 0 not in array.shape:
            key = self.key(array.shape)
            self.lines[-1] += f" {key}"
            # An array, also where NumPy would give a copy of one element.
            self.pairs.append((tensor[(*key, ...)], array[(*key, ...)]))

    def value(self, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """A value that fits a region: a number, or something that is read from a tensor."""
        if self.random.random() < 0.3:
            number = self.random.randrange(-9, 9)
            return number, number
        tensor, array = self.pick()
        if array.shape == shape and self.random.random() < 0.7:
            return (tensor, array) if self.random.random() < 0.5 else (tensor + 1, array + 1)
        if array.size == 0:
            return 3, 3
        return tensor.sum().cast("int32"), array.sum(dtype=np.int32)

    def write(self) -> None:
        tensor, array = self.pick()
        kind = self.random.randrange(4)
        self.lines.append(f"write {self.index(tensor)} {kind}")
        if kind == 0:
            left, right = self.value(array.shape)
            tensor.assign(left)
            array[...] = right
        elif kind == 1:
            left, right = self.value(array.shape)
            tensor += left
            array += np.asarray(right).astype(np.int32)
        elif array.ndim and 0 not in array.shape:
            key = self.key(array.shape)
            self.lines[-1] += f" {key}"
            left, right = self.value(array[key].shape)
            if kind == 2:
                tensor[key] = left
                array[key] = right
            else:
                tensor[key] *= left
                array[key] *= np.asarray(right).astype(np.int32)

    def write_at_index(self) -> None:
        tensor, array = self.pick()
        if not array.ndim or 0 in array.shape:
            return
        rows = self.random.sample(range(array.shape[0]), self.random.randint(1, array.shape[0]))
        left, right = self.value((len(rows), *array.shape[1:]))
        self.lines.append(f"write {self.index(tensor)} at {rows}")
        index: Any = Tensor(rows) if self.random.random() < 0.5 else rows
        tensor[index] = left
        array[rows] = right

    def read(self) -> None:
        """An expression keeps what it saw, whatever is written later."""
        tensor, array = self.pick()
        self.lines.append(f"read {self.index(tensor)}")
        self.frozen.append((tensor * 2 + 1, array * 2 + 1))

    def realize(self) -> None:
        tensor, array = self.random.choice(self.pairs + self.frozen)
        self.lines.append(f"realize {self.index(tensor)}")
        np.testing.assert_array_equal(tensor.realize().numpy(), array, "\n".join(self.lines))

    def forget(self) -> None:
        if len(self.pairs) > 2:
            gone = self.random.randrange(len(self.pairs))
            self.lines.append(f"forget {gone}")
            del self.pairs[gone]

    def index(self, tensor: Tensor) -> int:
        return next((i for i, (each, _) in enumerate(self.pairs) if each is tensor), -1)

    def run(self) -> None:
        actions = [self.view, self.write, self.write, self.write, self.write_at_index, self.read]
        actions += [self.new, self.realize, self.forget]
        for _ in range(self.random.randint(4, 14)):
            self.random.choice(actions)()
        for tensor, array in self.frozen + self.pairs:
            np.testing.assert_array_equal(tensor.numpy(), array, "\n".join(self.lines))


@pytest.mark.parametrize("part", range(10))
def test_random_programs(part: int):
    for number in range(PROGRAMS // 10):
        seed = part * 1000 + number
        try:
            Program(seed).run()
        except Exception as failure:
            failure.add_note(f"program {seed}")
            raise

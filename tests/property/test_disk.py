"""Random programs over one file: views, writes and copies, against NumPy that runs each line."""

import random
from pathlib import Path

import numpy as np
import pytest

from weft.tensor import Tensor

SHAPES = [(24,), (4, 6), (2, 3, 4), (6, 4), (24, 1), (3, 8)]


class Program:
    """The same lines on a file and on an array."""

    def __init__(self, seed: int, path: Path) -> None:
        self.random = random.Random(seed)
        self.array = np.arange(24, dtype=np.int32)
        self.array.tofile(path)
        self.path = path
        self.file = Tensor(path).bitcast("int32")
        self.copies: list[tuple[Tensor, np.ndarray]] = []

    def view(self):
        """A view of the file and the same one of the array."""
        shape = self.random.choice(SHAPES)
        tensor, array = self.file.reshape(shape), self.array.reshape(shape)
        for _ in range(self.random.randint(0, 2)):
            kind = self.random.randrange(3)
            if kind == 0:
                box = [sorted(self.random.sample(range(n + 1), 2)) for n in array.shape]
                key = tuple(slice(*pair) for pair in box)
                tensor, array = tensor[key], array[key]
            elif kind == 1:
                order = self.random.sample(range(array.ndim), array.ndim)
                tensor, array = tensor.permute(order), array.transpose(order)
            else:
                axis = self.random.randrange(array.ndim)
                tensor, array = tensor.flip(axis), np.flip(array, axis)
        return tensor, array

    def line(self) -> None:
        kind = self.random.randrange(5)
        tensor, array = self.view()
        if kind == 0:
            value = self.random.randint(-99, 99)
            tensor.assign(value)
            array[...] = value
        elif kind == 1:
            values = np.random.default_rng(self.random.randrange(99)).integers(0, 99, array.shape)
            tensor.assign(values.astype(np.int32))
            array[...] = values
        elif kind == 2:
            other = self.random.choice(self.copies) if self.copies else None
            if other is not None and other[1].shape == array.shape:
                tensor.assign(other[0] + 1)
                array[...] = other[1] + 1
        elif kind == 3:
            self.copies.append((tensor.to("CPU"), array.copy()))
        elif self.copies:
            copied, wanted = self.copies.pop(self.random.randrange(len(self.copies)))
            np.testing.assert_array_equal(copied.numpy(), wanted)


@pytest.mark.parametrize("part", range(4))
def test_files_mean_what_arrays_mean(part: int, seed: int, tmp_path: Path):
    for number in range(15):
        program = Program(seed + 100 * part + number, tmp_path / f"{part}-{number}")
        for _ in range(12):
            program.line()
        for copied, wanted in program.copies:
            np.testing.assert_array_equal(copied.numpy(), wanted)
        np.testing.assert_array_equal(program.file.numpy(), program.array)
        program.file.realize()
        np.testing.assert_array_equal(np.fromfile(program.path, np.int32), program.array)

"""Random programs with jitted functions: definitions, calls, and plain lines in between.

`fuzz.jit` runs what a `JitGenerator` makes. A function reads and writes its arguments and tensors
from outside, draws random numbers and calls functions that were defined before it. The oracle runs
along, so every line means something.
"""

from __future__ import annotations

import random
import re
from typing import Any, Final

import numpy as np

from fuzz.program_lines import SHAPES, Generator
from fuzz.program_oracle import Array, InvalidLineError, Line, Oracle, new_value, reshaped

_AUGMENTED: Final = re.compile(r"^(t\d+)(?:\[.*\])? [-+*]?= ")
_NAME: Final = re.compile(r"\bt\d+\b")


class Draws:
    """The random numbers of Weft, in NumPy: Threefry of a seed and a counter."""

    _ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))

    def __init__(self) -> None:
        self.seed(0)

    def seed(self, seed: int) -> None:
        self._key = (seed & 0xFFFFFFFF, seed >> 32)
        self._counter = 0

    def integers(self, shape: tuple[int, ...], low: int, high: int) -> Array:
        count = int(np.prod(shape))
        at = self._counter + np.arange(count, dtype=np.uint64)
        self._counter += count
        x, y = self._noise(at & np.uint64(0xFFFFFFFF), at >> np.uint64(32))
        wide = x << np.uint64(32) | y
        return ((wide % np.uint64(high - low)).astype(np.int64) + low).reshape(shape)

    def _noise(self, x: Array, y: Array) -> tuple[Array, Array]:
        word = np.uint64(0xFFFFFFFF)
        first, second = self._key
        keys = [np.uint64(key) for key in (first, second, first ^ second ^ 0x1BD11BDA)]
        x, y = x + keys[0] & word, y + keys[1] & word
        for group in range(5):
            for amount in self._ROTATIONS[group % 2]:
                x = x + y & word
                y = (y << np.uint64(amount) | y >> np.uint64(32 - amount)) & word ^ x
            x = x + keys[(group + 1) % 3] & word
            y = y + keys[(group + 2) % 3] + np.uint64(group + 1) & word
        return x, y


class JitOracle(Oracle):
    """NumPy with functions: names in `t` are arrays, names in `f` are functions."""

    def __init__(self, lines: list[Line] | None = None) -> None:
        self.draws = Draws()
        self.scope: dict[str, Any] = {
            "np": np,
            "new": new_value,
            "reshaped": reshaped,
            "draws": self.draws,
            "jit": lambda function: function,
        }
        super().__init__(lines or ())

    def run(self, line: Line) -> None:
        with np.errstate(all="ignore"):
            exec(line.numpy, self.scope)
        self.names = {name: self.scope[name] for name in self.scope if re.match(r"t\d+$", name)}
        self.check()


class _Function:
    """A function that calls may use: its parameters as arrays, and how many values it returns."""

    def __init__(self, name: str, samples: list[Array], returns: list[Array]) -> None:
        self.name = name
        self.samples = samples
        self.returns = returns


class JitGenerator(Generator):
    """Makes one program: tensors, one to three functions, calls of them and lines in between."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[Line] = []
        self.oracle: Any = JitOracle()
        self.count = 0
        self.functions: list[_Function] = []
        start = self.random.randint(0, 1 << 40)
        self.add(Line(f"Tensor.manual_seed({start})", f"draws.seed({start})"))
        for _ in range(self.random.randint(2, 4)):
            self.add(self.create())
        for _ in range(self.random.randint(0, 3)):
            self.plain()
        for _ in range(self.random.randint(1, 3)):
            self.define()
            for _ in range(self.random.randint(1, 3)):
                self.add(self.call())
                if self.random.random() < 0.5:
                    self.plain()
        for _ in range(self.random.randint(1, 4)):
            self.add(self.call())

    def add(self, line: Line | None) -> None:
        if line is None:
            return
        try:
            self.oracle.run(line)
        except (InvalidLineError, ValueError, IndexError, TypeError):
            self.oracle = JitOracle(self.lines)
        else:
            self.lines.append(line)

    def plain(self) -> None:
        """A line outside of functions."""
        steps = [
            *[self.arithmetic, self.view, self.fold, self.write, self.write_at_key, self.draw],
            *[self.write_at_positions, self.realize, self.movement, self.gather],
        ]
        self.add(self.random.choice(steps)())

    def draw(self) -> Line:
        name, shape = self.target(), self.random.choice(SHAPES)
        low = self.random.randint(-9, 0)
        high = low + self.random.randint(1, 20)
        return Line(
            f"{name} = Tensor.randint({shape}, low={low}, high={high})",
            f"{name} = new(draws.integers({shape}, {low}, {high}), 'int32')",
        )

    # Functions.

    def define(self) -> None:
        """A function over some parameters; its body is checked with arrays like those."""
        outside = self.oracle
        before = list(self.lines)
        parameters, samples = [], []
        for _ in range(self.random.randint(0, 3)):
            sample = np.array(outside.names[self.random.choice(list(outside.names))])
            parameters.append(self.target())
            samples.append(sample)
        self.oracle = _BodyOracle(before, dict(zip(parameters, samples, strict=True)))
        self.lines = []
        steps = [
            *[self.arithmetic] * 4,
            *[self.view, self.view, self.fold, self.gather, self.movement, self.choice],
            *[self.write] * 3,
            *[self.write_at_key] * 3,
            *[self.write_at_positions, self.draw, self.create, self.product, self.realize],
            *[self.call] * 2,
        ]
        for _ in range(self.random.randint(2, 8)):
            self.add_to_body(self.random.choice(steps)())
        body, inside = self.lines, self.oracle
        returned = self.random.sample(
            sorted(inside.names), min(len(inside.names), self.random.randint(1, 3))
        )
        name = f"f{len(self.functions) + 1}"
        result = [np.array(inside.names[each]) for each in returned]
        self.lines, self.oracle = before, JitOracle(before)
        self.add(_definition(name, parameters, body, returned, list(self.oracle.names)))
        if self.lines is not before or len(self.lines) > 0:
            self.functions.append(_Function(name, samples, result))

    def add_to_body(self, line: Line | None) -> None:
        if line is None:
            return
        kept = self.oracle
        try:
            self.oracle.run(line)
        except (InvalidLineError, ValueError, IndexError, TypeError):
            self.oracle = kept.again(self.lines)
        else:
            self.lines.append(line)

    def call(self) -> Line | None:
        if not self.functions:
            return None
        function = self.random.choice(self.functions)
        ours, numpy = [], []
        for sample in function.samples:
            argument = self.argument(sample)
            ours.append(argument[0])
            numpy.append(argument[1])
        names = [self.target() for _ in function.returns]
        made = ", ".join(names) + ("," if len(names) == 1 else "")
        return Line(
            f"{made} = {function.name}({', '.join(ours)})",
            f"{made} = {function.name}({', '.join(numpy)})",
        )

    def argument(self, sample: Array) -> tuple[str, str]:
        """Something of a shape and dtype: a name, a view, an expression, or new data."""
        kind, shape = sample.dtype.kind, sample.shape
        fitting = [name for name in self.names(kind) if self.array(name).shape == shape]
        if fitting and self.random.random() < 0.6:
            name = self.random.choice(fitting)
            form = self.random.choice(("{x}", "{x}", "{x}[...]", "{x} + 0", "{x}.flip"))
            if kind == "b" or form == "{x}":
                return name, name
            if form == "{x}.flip":
                axes = list(range(len(shape)))
                steps = ", ".join([*["::-1"] * len(shape), "..."])
                return f"{name}.flip({axes})", f"{name}[{steps}]"
            if form == "{x} + 0":
                dtype = "int32" if kind == "i" else "float32"
                return f"({name} + 0)", f"new({name}, {dtype!r})"
            return form.format(x=name), form.format(x=name)
        longer = [
            name
            for name in self.names(kind, rank=1)
            if self.array(name).shape[1:] == shape and self.array(name).shape[0]
        ]
        if longer and self.random.random() < 0.6:
            name = self.random.choice(longer)
            row = self.random.randrange(self.array(name).shape[0])
            return f"{name}[{row}]", f"{name}[{row}, ...]"
        dtype = {"i": "int32", "f": "float32", "b": "bool"}[kind]
        values = [self.random.randint(-6, 9) for _ in range(sample.size)]
        data = np.array(values).reshape(shape).astype(dtype).tolist()
        return f"Tensor({data}, dtype={dtype!r})", f"new({data}, {dtype!r})"


class _BodyOracle(JitOracle):
    """The oracle inside of a function: the program so far, and arrays for the parameters."""

    def __init__(self, lines: list[Line], parameters: dict[str, Array]) -> None:
        self._lines = list(lines)
        self._parameters = parameters
        super().__init__(lines)
        copies = {name: np.array(array) for name, array in parameters.items()}
        self.scope.update(copies)
        self.names.update(copies)

    def again(self, body: list[Line]) -> _BodyOracle:
        made = _BodyOracle(self._lines, self._parameters)
        for line in body:
            made.run(line)
        return made


def _definition(
    name: str, parameters: list[str], body: list[Line], returned: list[str], outside: list[str]
) -> Line:
    """The lines of a body as a function, for Weft and for NumPy."""
    written = {match[1] for line in body if (match := _AUGMENTED.match(line.ours))}
    declared = sorted(written & set(outside))
    texts = []
    for lines in ([line.ours for line in body], [line.numpy for line in body]):
        inner = [f"global {', '.join(declared)}"] if declared else []
        inner += [*lines, f"return {', '.join(returned)},"]
        text = "\n".join("    " + each for each in inner)
        texts.append(f"@jit\ndef {name}({', '.join(parameters)}):\n{text}")
    return Line(*texts)

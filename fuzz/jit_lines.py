"""Random programs with jitted functions: definitions, calls, and plain lines in between.

`fuzz.jit` runs what a `JitGenerator` makes. A function reads and writes its arguments and tensors
from outside, draws random numbers and calls functions that were defined before it. The oracle runs
along, so every line means something.
"""

from __future__ import annotations

import random
import re
from typing import Any, Final, NamedTuple

import numpy as np

from fuzz.jit_oracle import BodyOracle, JitOracle
from fuzz.program_lines import SHAPES, Generator
from fuzz.program_oracle import Array, InvalidLineError, Line

_AUGMENTED: Final = re.compile(r"^(t\d+)(?:\[.*\])? [-+*]?= ")
# The greatest value of a symbolic size, which no axis that it cuts is below.
MOST_SIZE: Final = 3
_MOST_NUMBER: Final = 4


class _Function(NamedTuple):
    """A function that calls may use.

    A parameter in `t` is a tensor like its sample, one in `k` a number, one in `n` a size.
    """

    name: str
    parameters: dict[str, Any]
    returns: int
    is_donated: bool  # the first parameter, a tensor


class JitGenerator(Generator):
    """Makes one program: tensors, one to three functions, calls of them and lines in between."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[Line] = []
        self.oracle: Any = JitOracle()
        self.count = 0
        self.functions: list[_Function] = []
        self.scalars: list[str] = []  # parameters of the function that is being written
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
        before = list(self.lines)
        parameters = self.parameters()
        self.scalars = [name for name in parameters if name[0] != "t"]
        self.oracle = BodyOracle(before, parameters)
        self.lines = []
        steps = [
            *[self.arithmetic] * 4,
            *[self.view, self.view, self.fold, self.gather, self.movement, self.choice],
            *[self.write] * 3,
            *[self.write_at_key] * 3,
            *[self.write_at_positions, self.draw, self.create, self.product, self.realize],
            *[self.call] * 2,
            *[self.with_scalar] * 3 * len(self.scalars),
        ]
        for _ in range(self.random.randint(2, 8)):
            self.add_to_body(self.random.choice(steps)())
        body, inside = self.lines, self.oracle
        first = next(iter(parameters), "")
        is_donated = first[:1] == "t" and self.random.random() < 0.2
        # What is donated is gone after the call, and so is every view of it.
        kept = [
            name
            for name, array in sorted(inside.names.items())
            if not (is_donated and np.shares_memory(array, inside.names[first]))
        ]
        returned = self.random.sample(kept, min(len(kept), self.random.randint(1, 3)))
        name = f"f{len(self.functions) + 1}"
        self.scalars = []
        self.lines, self.oracle = before, JitOracle(before)
        outside = list(self.oracle.names)
        decorator = "@jit(donate=(0,))" if is_donated else "@jit"
        head = f"{decorator}\ndef {name}({', '.join(parameters)}):\n"
        self.add(_definition(head, body, returned, outside))
        self.functions.append(_Function(name, parameters, len(returned), is_donated))

    def parameters(self) -> dict[str, Any]:
        """Up to three tensors, a number at times, and a size, with values for the oracle."""
        names = list(self.oracle.names)
        found: dict[str, Any] = {}
        for _ in range(self.random.randint(0, 3)):
            found[self.target()] = np.array(self.oracle.names[self.random.choice(names)])
        if self.random.random() < 0.25:
            found[self.target("k")] = self.random.randint(1, _MOST_NUMBER)
        if self.random.random() < 0.35:
            found[self.target("n")] = self.random.randint(1, MOST_SIZE)
        return found

    def with_scalar(self) -> Line | None:
        """A line that uses a parameter which is a number or a size."""
        if not self.scalars:
            return None
        scalar, name = self.random.choice(self.scalars), self.pick()
        if name is None:
            return None
        if scalar[0] == "k":
            form = self.random.choice(
                ("{x} * {k}", "{x} + {k}", "{x} + 1 if {k} > 2 else {x} * 2")
            )
            text = form.format(x=name, k=scalar)
            return self.made(text, text, self.dtype(name))
        return self.with_size(name, scalar)

    def with_size(self, name: str, size: str) -> Line | None:
        """A line with a part of a tensor, up to a size or from there, or with the size itself."""
        array, dtype = self.array(name), self.dtype(name)
        if array.ndim == 0 or array.shape[0] < MOST_SIZE:
            return self.made(f"{name} * {size}", f"{name} * {size}", dtype)
        if array.flags.writeable and self.random.random() < 0.5:
            key = self.random.choice((f":{size}", f"{size}:", f"{size} - 1", f":{size}, ..."))
            op = self.random.choice(("=", "+=", "*="))
            fitting = [other for other in self.names(array.dtype.kind) if self.fits(other, array)]
            is_part = key[0] == ":" and fitting and self.random.random() < 0.5
            value = f"{self.random.choice(fitting)}[:{size}]" if is_part else self.number(name)
            return Line(f"{name}[{key}] {op} {value}", f"{name}[{key}] {op} {value}")
        rest = f"{array.shape[0]} - {size}"
        zeros = [(0, 0)] * (array.ndim - 1)
        cast = ".cast('int32')" if dtype == "int32" else ""
        ours, numpy = self.random.choice(
            (
                (f"{name}[:{size}].sum(0){cast}", f"{name}[:{size}].sum(0)"),
                (f"({name}[{size} - 1:] * 2).max(0)", f"({name}[{size} - 1:] * 2).max(0)"),
                (f"{name}[{size} - 1] + 1", f"{name}[{size} - 1] + 1"),
                (
                    f"({name}[:{size}] + 1).pad([(0, {rest}), *{zeros}])",
                    f"np.pad({name}[:{size}] + 1, [(0, {rest}), *{zeros}])",
                ),
                (f"{name}[:{size}].sum(){cast} * {size}", f"{name}[:{size}].sum() * {size}"),
            )
        )
        return self.made(ours, numpy, dtype)

    def fits(self, name: str, array: Array) -> bool:
        """Whether a part of a tensor can be written to the same part of another."""
        other = self.array(name)
        return bool(other.shape[1:] == array.shape[1:] and other.shape[:1] >= (MOST_SIZE,))

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
        donated = self.target("d")
        copies = "", ""
        has_word = False
        ours, numpy = [], []
        for name, sample in function.parameters.items():
            argument = self.argument(sample) if name[0] == "t" else self.scalar(name)
            if function.is_donated and not ours:
                copies = (
                    f"{donated} = {argument[0]}.clone()",
                    f"{donated} = np.array({argument[1]})",
                )
                argument = donated, donated
            has_word = has_word or (name[0] != "t" and self.random.random() < 0.2)
            word = f"{name}=" if has_word else ""
            ours.append(word + argument[0])
            numpy.append(word + argument[1])
        made = "".join(f"{self.target()}, " for _ in range(function.returns))
        results = f"{made}= " if made else ""
        calls = [f"{results}{function.name}({', '.join(given)})" for given in (ours, numpy)]
        if not function.is_donated:
            return Line(*calls)
        return Line(*(f"{a}; {b}; del {donated}" for a, b in zip(copies, calls, strict=True)))

    def scalar(self, name: str) -> tuple[str, str]:
        """A number, or a size: a bound one, that of the function around, or an int."""
        if name[0] == "k":
            value = str(self.random.randint(1, _MOST_NUMBER))
            return value, value
        value = str(self.random.randint(1, MOST_SIZE))
        own = [name for name in self.scalars if name[0] == "n"]
        if own:
            value = self.random.choice([*own, value])
            return value, value
        is_bound = not isinstance(self.oracle, BodyOracle) and self.random.random() < 0.8
        return f"size.bind({value})" if is_bound else value, value

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


def _definition(head: str, body: list[Line], returned: list[str], outside: list[str]) -> Line:
    """The lines of a body as a function, for Weft and for NumPy."""
    written = {match[1] for line in body if (match := _AUGMENTED.match(line.ours))}
    declared = sorted(written & set(outside))
    texts = []
    for lines in ([line.ours for line in body], [line.numpy for line in body]):
        inner = [f"global {', '.join(declared)}"] if declared else []
        inner += [*lines, f"return {''.join(f'{name}, ' for name in returned)}".rstrip()]
        texts.append(head + "\n".join("    " + each for each in inner))
    return Line(*texts)

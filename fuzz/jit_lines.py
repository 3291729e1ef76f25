"""Random programs with jitted functions: definitions, calls, and plain lines in between.

`fuzz.jit` runs what a `JitGenerator` makes. A function reads and writes its arguments and tensors
from outside, draws random numbers and calls functions that were defined before it. Some are
`@function` instead, or both; these, and functions that they call, write to nothing. Arguments and
results may be trees. The oracle runs along, so every line means something.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from fuzz.jit_oracle import BodyOracle, JitOracle
from fuzz.jit_steps import MOST_NUMBER, MOST_SIZE, JitSteps
from fuzz.program_lines import SHAPES
from fuzz.program_oracle import InvalidLineError, Line

_AUGMENTED: Final = re.compile(r"^(t\d+)(?:\[.*\])? [-+*]?= ")
_MAKES: Final = re.compile(r"^t\d+ = ")
_DECORATORS: Final = {"jit": "@jit", "pure": "@jit", "function": "@function"}
_TREES: Final = ("", "", "", "dict", "tuple", "Pair")
# What a line cannot mean, or not exactly.
_REFUSED: Final = (InvalidLineError, ValueError, IndexError, TypeError)


class _Function(NamedTuple):
    """A function that calls may use.

    A parameter in `t` is a tensor like its sample, one in `k` a number, one in `n` a size.
    """

    name: str
    parameters: dict[str, Any]
    returns: int
    takes: str  # the kind of tree that is its only parameter
    gives: str  # the kind of tree that it returns
    is_donated: bool  # the first parameter, a tensor
    is_jitted: bool
    is_pure: bool
    raises: str  # the parameter, a number, that is too large for it at its greatest


class JitGenerator(JitSteps):
    """Makes one program: tensors, one to three functions, calls of them and lines in between."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[Line] = []
        self.oracle = JitOracle()
        self.count = 0
        self.functions: list[_Function] = []
        self.scalars, self.numbers, self.boxes = [], [], []
        self.optimizers, self.lent = {}, {}
        self.is_pure = False
        start = self.random.randint(0, 1 << 40)
        self.add(Line(f"Tensor.manual_seed({start})", f"draws.seed({start})"))
        for _ in range(self.random.randint(2, 4)):
            self.add(self.create())
        for step in (self.replace, self.box, self.optimizer):
            if self.random.random() < 0.4:
                self.add(step())
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
        for weight, _ in self.optimizers.values():
            self.add(self.made(f"{weight}.detach() * 1", f"{weight} * 1", "float32"))
        for name, dtype in self.lent.items():
            self.add(self.made(f"Tensor({name})", name, dtype))

    def add(self, line: Line | None) -> None:
        if line is None:
            return
        try:
            self.oracle.run(line)
        except (*_REFUSED, NameError):
            self.oracle = JitOracle(self.lines)
        else:
            self.lines.append(line)

    def plain(self) -> None:
        """A line outside of functions."""
        steps = [
            *[
                self.arithmetic,
                self.view,
                self.reduction,
                self.write,
                self.write_at_key,
                self.draw,
            ],
            *[self.write_at_positions, self.realize, self.movement, self.gather],
            *[self.replace] * 4,
            *[self.use_box, self.gradient, self.visit, self.lend],
        ]
        self.add(self.random.choice(steps)())

    # Functions.

    def define(self) -> None:
        """A function over some parameters; its body is checked with arrays like those."""
        before = list(self.lines)
        kind = self.random.choices(("jit", "pure", "function"), (6, 1, 2))[0]
        parameters = self.parameters()
        self.is_pure = kind != "jit"
        self.scalars = [name for name in parameters if name[0] != "t"] + self.numbers
        self.oracle = BodyOracle(before, parameters)
        self.lines = []
        quiet = self.body()
        body, inside = self.lines, self.oracle
        first = next(iter(parameters), "")
        is_donated = kind == "jit" and first[:1] == "t" and self.random.random() < 0.2
        is_donated = is_donated and parameters[first].size > 0
        # What is donated is gone after the call, and so is every view of it.
        kept = [
            name
            for name, array in sorted(inside.names.items())
            if not (is_donated and _root(array) is _root(inside.names[first]))
        ]
        returned = self.random.sample(kept, min(len(kept), self.random.randint(1, 3)))
        number = next((name for name in parameters if name[0] == "k"), "")
        raises = number if kind == "jit" and self.random.random() < 0.5 else ""
        if raises:
            text = f"if {raises} == {MOST_NUMBER}: raise Stop({raises})"
            body.insert(self.random.randint(quiet, len(body)), Line(text, text))
        decorator = "@jit(donate=(0,))" if is_donated else _DECORATORS[kind]
        if kind == "function" and self.random.random() < 0.4:
            decorator = "@jit\n@function"
        made = _Function(
            f"f{len(self.functions) + 1}",
            parameters,
            len(returned),
            self.random.choice(_TREES) if parameters and not is_donated else "",
            self.random.choice(_TREES) if returned else "",
            is_donated,
            decorator.startswith("@jit"),
            self.is_pure,
            raises,
        )
        self.scalars, self.is_pure = [], False
        self.lines, self.oracle = before, JitOracle(before)
        outside = list(self.oracle.names)
        is_copied = kind == "function"  # what such a function returns is new
        self.add(_definition(decorator, made, body, returned, outside, is_copied))
        self.functions.append(made)

    def body(self) -> int:
        """Add the lines of a function; how many of the first ones do nothing to the world."""
        pure: list[Callable[[], Line | None]] = [
            *[self.arithmetic] * 4,
            *[self.view, self.view, self.reduction, self.gather, self.movement, self.choice],
            *[self.create, self.product, self.gradient],
            *[self.with_scalar] * 3 * len(self.scalars),
        ]
        others: list[Callable[[], Line | None]] = [self.draw, self.draw, self.call, self.call]
        pure += [self.use_box] * 2 * len(self.boxes)
        if self.random.random() < 0.1:  # such a function is not a single native call
            pure += [self.visit] * 6
        if not self.is_pure:
            others += [*[self.write] * 3, *[self.write_at_key] * 3, self.write_at_positions]
            others += [self.realize, *[self.descend] * 3 * len(self.optimizers)]
        quiet = 0
        for _ in range(self.random.randint(2, 8)):
            is_pure = self.random.random() * (len(pure) + len(others)) < len(pure)
            before = len(self.lines)
            self.add_to_body(self.random.choice(pure if is_pure else others)())
            if is_pure and quiet == before < len(self.lines):
                quiet += bool(_MAKES.match(self.lines[-1].ours))
        return quiet

    def parameters(self) -> dict[str, Any]:
        """Up to three tensors, a number at times, and a size, with values for the oracle."""
        names = list(self.oracle.names)
        found: dict[str, Any] = {}
        for _ in range(self.random.randint(0, 3)):
            found[self.target()] = np.array(self.oracle.names[self.random.choice(names)])
        if self.random.random() < 0.25:
            found[self.target("k")] = self.random.randint(1, MOST_NUMBER)
        if self.random.random() < 0.35:
            found[self.target("n")] = self.random.randint(1, MOST_SIZE)
        return found

    def add_to_body(self, line: Line | None) -> None:
        if line is None:
            return
        kept = self.oracle
        try:
            self.oracle.run(line)
        except _REFUSED:
            self.oracle = kept.again(self.lines)
        else:
            self.lines.append(line)

    # Calls.

    def call(self) -> Line | None:
        usable = [each for each in self.functions if each.is_pure or not self.is_pure]
        if not usable:
            return None
        function = self.random.choice(usable)
        donated = self.target("d")
        copies = "", ""
        texts: list[list[str]] = [[], []]
        has_word = False
        for name, argument in self.arguments(function).items():
            if function.is_donated and not texts[0]:
                copies = (
                    f"{donated} = {argument[0]}.clone()",
                    f"{donated} = np.array({argument[1]})",
                )
                argument = donated, donated
            is_tensor = name[0] == "t"
            has_word = has_word or not (is_tensor or function.takes or self.random.random() > 0.2)
            for given, text in zip(texts, argument, strict=True):
                given.append(f"{name}={text}" if has_word else text)
        calls = self.results(function, texts)
        if function.is_donated:
            calls = [f"{a}; {b}; del {donated}" for a, b in zip(copies, calls, strict=True)]
        if function.raises and not isinstance(self.oracle, BodyOracle):
            calls = [f"try:\n    {text}\nexcept Stop:\n    pass" for text in calls]
        return Line(*calls)

    def results(self, function: _Function, texts: list[list[str]]) -> list[str]:
        """The call with names for its results, for Weft and for NumPy."""
        made = [self.target() for _ in range(function.returns)]
        names = "".join(f"{name}, " for name in made)
        tree = self.target("q")
        calls = []
        for given in texts:
            inner = _tree(function.takes, given) if function.takes else ", ".join(given)
            text = f"{function.name}({inner})"
            if function.gives:
                parts = "".join(f"{part}, " for part in _parts(function.gives, tree, len(made)))
                calls.append(f"{tree} = {text}; {names}= {parts}")
            else:
                calls.append(f"{names}= {text}" if made else text)
        return calls

    def arguments(self, function: _Function) -> dict[str, tuple[str, str]]:
        """What a call gives for each parameter: at times the same twice, or of another shape."""
        shapes: dict[tuple[int, ...], tuple[int, ...]] = {}
        has_size = any(name[0] == "n" for name in function.parameters)
        if not has_size and self.random.random() < 0.15:
            for sample in function.parameters.values():
                if not isinstance(sample, int):
                    alike = [shape for shape in SHAPES if len(shape) == sample.ndim]
                    shapes[sample.shape] = self.random.choice(alike or [sample.shape])
        found: dict[str, tuple[str, str]] = {}
        before: dict[Any, tuple[str, str]] = {}
        for name, sample in function.parameters.items():
            if isinstance(sample, int):
                found[name] = self.scalar(name, name == function.raises, function.is_jitted)
                continue
            key = sample.dtype.kind, shapes.get(sample.shape, sample.shape)
            is_same = key in before and self.random.random() < 0.2
            found[name] = before[key] if is_same else self.argument(*key)
            before[key] = found[name]
        return found

    def scalar(self, name: str, raises: bool, is_jitted: bool) -> tuple[str, str]:
        """A number, or a size: a bound one, that of the function around, or an int."""
        is_inside = isinstance(self.oracle, BodyOracle)
        if name[0] == "k":
            value = str(self.random.randint(1, MOST_NUMBER - (raises and is_inside)))
            return value, value
        value = str(self.random.randint(1, MOST_SIZE))
        own = [name for name in self.scalars if name[0] == "n"]
        if own:
            value = self.random.choice([*own, value])
            return value, value
        # What is lazy together has one value of each size, so only calls that compute bind it.
        is_bound = is_jitted and not is_inside and self.random.random() < 0.8
        return f"size.bind({value})" if is_bound else value, value

    def argument(self, kind: str, shape: tuple[int, ...]) -> tuple[str, str]:
        """Something of a shape and dtype: a name, a view, an expression, or new data."""
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
        data = self.data(shape, dtype)
        return f"Tensor({data}, dtype={dtype!r})", f"new({data}, {dtype!r})"


def _tree(kind: str, parts: Sequence[str]) -> str:
    """An expression with all parts in it."""
    first, rest = parts[0], ", ".join(parts[1:])
    if kind == "dict":
        return "{" + ", ".join(f"'a{n}': {part}" for n, part in enumerate(parts)) + "}"
    return f"({first}, [{rest}])" if kind == "tuple" else f"Pair({first}, [{rest}])"


def _parts(kind: str, name: str, count: int) -> list[str]:
    """Where the parts of such a tree are."""
    if kind == "dict":
        return [f"{name}['a{n}']" for n in range(count)]
    first, rest = (f"{name}[0]", f"{name}[1]") if kind == "tuple" else (f"{name}.first", "")
    rest = rest or f"{name}.second"
    return [first, *(f"{rest}[{n}]" for n in range(count - 1))]


def _definition(
    decorator: str,
    function: _Function,
    body: list[Line],
    returned: list[str],
    outside: list[str],
    is_copied: bool,
) -> Line:
    """The lines of a body as a function, for Weft and for NumPy."""
    written = {match[1] for line in body if (match := _AUGMENTED.match(line.ours))}
    declared = sorted(written & set(outside))
    names = list(function.parameters)
    inner = [f"global {', '.join(declared)}"] if declared else []
    if function.takes:
        parts = _parts(function.takes, "tree", len(names))
        inner.append("".join(f"{n}, " for n in names) + "= " + "".join(f"{n}, " for n in parts))
    head = f"{decorator}\ndef {function.name}({'tree' if function.takes else ', '.join(names)}):\n"
    copies = [f"np.array({name})" for name in returned] if is_copied else returned
    texts = []
    for lines, results in (
        ([line.ours for line in body], returned),
        ([line.numpy for line in body], copies),
    ):
        given = "".join(f"{name}, " for name in results)
        end = f"return {_tree(function.gives, results) if function.gives else given}".rstrip()
        texts.append(head + "\n".join("    " + each for each in [*inner, *lines, end]))
    return Line(*texts)


def _root(array: Any) -> Any:
    """The array that has the memory; views without elements have one too."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array

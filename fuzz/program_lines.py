"""Random lines of tensor programs: arithmetic, views, reductions, gathers and writes.

`fuzz.programs` runs what a `Generator` makes. The oracle runs along, so that each line fits the
names that are there.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from fuzz.program_oracle import Array, InvalidLineError, Line, Oracle, realizing

SHAPES: Final = ((4,), (3, 4), (2, 3, 2), (6, 1), (1, 5), (), (7,), (2, 1, 3))


class Generator:
    """Makes one program, line by line; the oracle says what each name holds and what fits."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[Line] = []
        self.oracle = Oracle()
        self.count = 0
        steps: list[tuple[int, Callable[[], Line | None]]] = [
            (2, self.create),
            (6, self.arithmetic),
            (2, self.function),
            (2, self.choice),
            (6, self.view),
            (4, self.movement),
            (5, self.reduction),
            (2, self.product),
            (2, self.gather),
            (3, self.write),
            (4, self.write_at_key),
            (2, self.write_at_positions),
            (2, self.rounded),
            (3, self.realize),
            (1, self.forget),
        ]
        for _ in range(self.random.randint(1, 3)):
            self.add(self.create())
        weights = [weight for weight, _ in steps]
        for _ in range(self.random.randint(3, 14)):
            self.add(self.random.choices([step for _, step in steps], weights)[0]())
        if self.random.random() < 0.5:
            self.add(self.realize_all())

    def add(self, line: Line | None) -> None:
        """Keep a line that means something."""
        if line is None:
            return
        try:
            self.oracle.run(line)
        except (InvalidLineError, ValueError, IndexError, TypeError):
            self.oracle = Oracle(self.lines)  # the line may have written before it failed
        else:
            self.lines.append(line)

    # Names.

    def target(self, kind: str = "t") -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def names(self, kinds: str = "if", writable: bool = False, rank: int = 0) -> list[str]:
        """Names that hold ints, floats or bools (b), with some axes at least."""
        return [
            name
            for name, array in self.oracle.names.items()
            if name[0] == "t"
            and array.dtype.kind in kinds
            and array.ndim >= rank
            and (array.flags.writeable or not writable)
        ]

    def pick(self, kinds: str = "if", writable: bool = False, rank: int = 0) -> str | None:
        found = self.names(kinds, writable, rank)
        return self.random.choice(found) if found else None

    def array(self, name: str) -> Array:
        return self.oracle.names[name]

    def dtype(self, name: str) -> str:
        return {"i": "int32", "f": "float32", "b": "bool"}[self.array(name).dtype.kind]

    def number(self, name: str) -> str:
        if self.dtype(name) == "float32":
            return str(self.random.randint(-8, 8) / 2)
        return str(self.random.randint(-5, 9))

    def operand(self, name: str, shape: tuple[int, ...] | None = None) -> str:
        """A name or number that meets a name in an operation, or broadcasts to a shape."""
        kind = self.array(name).dtype.kind
        wanted = self.array(name).shape
        found = []
        for other in self.names(kind):
            try:
                met = np.broadcast_shapes(
                    self.array(other).shape, wanted if shape is None else shape
                )
            except ValueError:
                continue
            if shape is None or met == shape:
                found.append(other)
        if found and self.random.random() < 0.75:
            return self.random.choice(found)
        return self.random.choice(("True", "False")) if kind == "b" else self.number(name)

    # Lines that make values.

    def create(self) -> Line:
        name, shape = self.target(), self.random.choice(SHAPES)
        size = int(np.prod(shape))
        kind = self.random.randrange(5)
        if kind == 0:
            value = self.random.randint(-3, 3)
            ours = f"Tensor.full({shape}, {value}, dtype='int32')"
            return Line(f"{name} = {ours}", f"{name} = new(np.full({shape}, {value}), 'int32')")
        if kind == 1:
            theirs = f"new(np.arange({size}).reshape({shape}), 'int32')"
            return Line(f"{name} = Tensor.arange({size}).reshape({shape})", f"{name} = {theirs}")
        if kind < 4:
            values: Any = [self.random.randint(-6, 9) for _ in range(size)]
            dtype = "int32"
        else:
            values = [self.random.randint(-8, 8) / 2 for _ in range(size)]
            dtype = "float32"
        data = np.array(values).reshape(shape).tolist()
        return Line(
            f"{name} = Tensor({data}, dtype={dtype!r})", f"{name} = new({data}, {dtype!r})"
        )

    def made(self, ours: str, numpy: str, dtype: str) -> Line:
        name = self.target()
        return Line(f"{name} = {ours}", f"{name} = new({numpy}, {dtype!r})")

    def arithmetic(self) -> Line | None:
        name = self.pick("ifb")
        if name is None:
            return None
        dtype, other = self.dtype(name), self.operand(name)
        if dtype == "bool":
            op = self.random.choice("&|^")
            return self.made(f"{name} {op} {other}", f"{name} {op} {other}", dtype)
        kind = self.random.random()
        if kind < 0.2:
            op = self.random.choice(("<", "<=", "==", "!=", ">"))
            return self.made(f"{name} {op} {other}", f"{name} {op} {other}", "bool")
        if kind < 0.35:
            word = self.random.choice(("maximum", "minimum"))
            return self.made(f"{name}.{word}({other})", f"np.{word}({name}, {other})", dtype)
        ops = ("+", "-", "*") if dtype == "float32" else ("+", "-", "*", "//", "%", "&", "|", "^")
        op = self.random.choice(ops)
        if dtype == "int32" and kind > 0.95:
            shift = f"{name} {self.random.choice(('<<', '>>'))} {self.random.randint(0, 5)}"
            return self.made(shift, shift, dtype)
        left = f"{name}.contiguous()" if self.random.random() < 0.1 else name
        return self.made(f"{left} {op} {other}", f"{name} {op} {other}", dtype)

    def function(self) -> Line | None:
        name = self.pick("ifb")
        if name is None:
            return None
        dtype = self.dtype(name)
        if dtype == "bool":
            if self.random.random() < 0.5:
                return self.made(f"~{name}", f"~{name}", dtype)
            to = self.random.choice(("int32", "float32"))
            return self.made(f"{name}.cast({to!r})", name, to)
        forms = [
            ("-{x}", "-{x}"),
            ("{x}.abs()", "np.abs({x})"),
            ("{x}.clamp(-3, 4)", "np.clip({x}, -3, 4)"),
            ("{x}.relu()", "np.maximum({x}, 0)"),
            ("{x}.sign()", "np.sign({x})"),
            ("{x}.clone()", "{x}"),
            ("{x}.round()", "np.round({x})"),
        ]
        if dtype == "float32":
            forms += [
                (f"{{x}}.{word}()", f"np.{word}({{x}})") for word in ("floor", "ceil", "trunc")
            ]
            forms += [("{x} / 2", "{x} / 2")]
        ours, numpy = (form.format(x=name) for form in self.random.choice(forms))
        if self.random.random() < 0.15:
            to = "float32" if dtype == "int32" else "int32"
            return self.made(
                f"{name}.cast({to!r})", f"np.trunc({name})" * (to == "int32") or name, to
            )
        return self.made(ours, numpy, dtype)

    def choice(self) -> Line | None:
        condition, name = self.pick("b"), self.pick()
        if name is None:
            return None
        other = self.operand(name)
        if condition is None or self.random.random() < 0.3:
            mask = f"({name} > {self.number(name)})"
        else:
            mask = condition
        return self.made(
            f"{mask}.where({name}, {other})",
            f"np.where({mask}, {name}, {other})",
            self.dtype(name),
        )

    # Lines that make views.

    def key(self, shape: tuple[int, ...]) -> str:
        parts = []
        for size in shape:
            kind = self.random.randrange(6)
            start = self.random.randrange(size) if size else 0
            if kind == 0 and size:
                parts.append(str(start - size * self.random.randrange(2)))
            elif kind == 1:
                parts.append(f"{start}:")
            elif kind == 2:
                parts.append(f"::{self.random.choice((-2, -1, 2, 3))}")
            elif kind == 3:
                parts.append(f":{self.random.randrange(size + 1)}")
            elif kind == 4 and self.random.random() < 0.3:
                parts.append("None, :")
            else:
                parts.append(":")
        kept = parts[: self.random.randrange(len(parts) + 1)]
        return ", ".join([*kept, "..."])  # with an ellipsis NumPy gives a view of one element too

    def view(self) -> Line | None:
        name = self.pick("ifb")
        if name is None:
            return None
        array, made = self.array(name), self.target()
        kind = self.random.randrange(6)
        if kind == 0:
            shape = self.new_shape(array.shape)
            return Line(f"{made} = {name}.reshape({shape})", f"{made} = reshaped({name}, {shape})")
        if kind == 1:
            order = self.random.sample(range(array.ndim), array.ndim)
            return Line(f"{made} = {name}.permute({order})", f"{made} = {name}.transpose({order})")
        if kind == 2:
            axes = [axis for axis in range(array.ndim) if self.random.random() < 0.5]
            # NumPy's own flip copies an array without axes.
            steps = ["::-1" if axis in axes else ":" for axis in range(array.ndim)]
            theirs = f"{name}[{', '.join([*steps, '...'])}]"
            return Line(f"{made} = {name}.flip({axes})", f"{made} = {theirs}")
        if kind == 3 and self.random.random() < 0.6:
            shape = tuple(self.random.randint(1, 3) if s == 1 else s for s in array.shape)
            shape = (2, *shape) if self.random.random() < 0.3 else shape
            theirs = f"np.broadcast_to({name}, {shape})"
            return Line(f"{made} = {name}.expand({shape})", f"{made} = {theirs}")
        key = self.key(array.shape)
        return Line(f"{made} = {name}[{key}]", f"{made} = {name}[{key}]")

    def new_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        size = int(np.prod(shape))
        fits = [s for s in SHAPES if int(np.prod(s)) == size]
        if len(shape) > 1:
            fits.append((shape[0] * shape[1], *shape[2:]))
        factors = [f for f in (2, 3) if size and size % f == 0]
        fits += [(f, size // f) for f in factors]
        return self.random.choice([*fits, (size,), (*shape, 1), (1, *shape)])

    def movement(self) -> Line | None:
        name = self.pick(rank=1)
        if name is None:
            return None
        array, dtype = self.array(name), self.dtype(name)
        axis = self.random.randrange(array.ndim)
        kind = self.random.randrange(7)
        if kind == 0:
            pads = [(self.random.randint(0, 2), self.random.randint(0, 2)) for _ in array.shape]
            value = self.random.choice((0, 0, 2))
            ours = f"{name}.pad({pads}, value={value})"
            return self.made(ours, f"np.pad({name}, {pads}, constant_values={value})", dtype)
        if kind < 3:
            same = [
                other
                for other in self.names(array.dtype.kind, rank=1)
                if self.array(other).ndim == array.ndim
                and np.delete(self.array(other).shape, axis).tolist()
                == np.delete(array.shape, axis).tolist()
            ]
            parts = ", ".join([name, *self.random.choices(same, k=self.random.randint(1, 2))])
            ours = f"Tensor.cat({parts}, dim={axis})"
            return self.made(ours, f"np.concatenate([{parts}], {axis})", dtype)
        if kind == 3:
            shift = self.random.randint(-3, 3)
            ours = f"{name}.roll({shift}, {axis})"
            return self.made(ours, f"np.roll({name}, {shift}, {axis})", dtype)
        if kind == 4:
            counts = [self.random.randint(1, 2) for _ in array.shape]
            return self.made(f"{name}.repeat({counts})", f"np.tile({name}, {counts})", dtype)
        if kind == 5 and array.ndim > 1:
            word, offset = self.random.choice(("tril", "triu")), self.random.randint(-1, 1)
            return self.made(f"{name}.{word}({offset})", f"np.{word}({name}, {offset})", dtype)
        return self.made(
            f"Tensor.stack({name}, {name}, dim={axis})", f"np.stack([{name}] * 2, {axis})", dtype
        )

    # Reductions.

    def axes(self, rank: int) -> str:
        chosen = tuple(axis for axis in range(rank) if self.random.random() < 0.5)
        return str(chosen) if chosen else "None"

    def reduction(self) -> Line | None:
        name = self.pick("ifb")
        if name is None:
            return None
        array, dtype = self.array(name), self.dtype(name)
        axes, kept = self.axes(array.ndim), self.random.choice(("True", "False"))
        if dtype == "bool":
            word = self.random.choice(("any", "all"))
        else:
            word = self.random.choice(("sum", "sum", "max", "min", "prod", "argmax", "argmin"))
        if word in ("argmax", "argmin"):
            axis = self.random.choice([*range(array.ndim), None])
            ours = f"{name}.{word}({axis}, keepdim={kept}).cast('int32')"
            return self.made(ours, f"np.{word}({name}, {axis}, keepdims={kept})", "int32")
        ours = f"{name}.{word}({axes}, keepdim={kept})"
        if dtype == "int32" and word in ("sum", "prod"):
            ours += ".cast('int32')"
        return self.made(ours, f"np.{word}({name}, axis={axes}, keepdims={kept})", dtype)

    def product(self) -> Line | None:
        name = self.pick(rank=1)
        if name is None:
            return None
        array = self.array(name)
        fitting = [
            other
            for other in self.names(array.dtype.kind, rank=1)
            if (self.array(other).shape * 2)[-2 if self.array(other).ndim > 1 else 0]
            == array.shape[-1]
        ]
        if not fitting:
            return None
        other = self.random.choice(fitting)
        return self.made(f"{name} @ {other}", f"{name} @ {other}", self.dtype(name))

    def gather(self) -> Line | None:
        name, index = self.pick(rank=1), self.pick("i")
        if name is None or index is None:
            return None
        array, dtype = self.array(name), self.dtype(name)
        if 0 in array.shape:
            return None
        kind = self.random.randrange(3)
        if kind == 0:
            by = f"{name}[{index} % {array.shape[0]}]"
        elif kind == 1:
            axis = self.random.randrange(array.ndim)
            by = f"{name}[{':, ' * axis}{self.positions(array.shape[axis])}]"
        else:
            pairs = [self.positions(size, 2) for size in array.shape[:2]]
            by = f"{name}[{', '.join(pairs)}]"
        return self.made(by, by, dtype)

    def positions(self, size: int, count: int | None = None) -> str:
        count = self.random.randint(1, 3) if count is None else count
        return str([self.random.randrange(-size, size) for _ in range(count)])

    # Lines that write.

    def value(self, name: str, shape: tuple[int, ...]) -> tuple[str, str]:
        """Something that fits a region, for Weft and for NumPy."""
        operand = self.operand(name, shape)
        kind = self.random.random()
        if kind < 0.2 and operand[0] == "t":
            return f"{operand} + 1", f"{operand} + 1"
        other = self.pick(self.array(name).dtype.kind)
        if kind < 0.4 and other is not None and self.array(other).size:
            cast = ".cast('int32')" if self.dtype(name) == "int32" else ""
            dtype = self.array(name).dtype.name
            return f"{other}.sum(){cast}", f"{other}.sum(dtype={dtype!r})"
        return operand, operand

    def write(self) -> Line | None:
        name = self.pick(writable=True)
        if name is None:
            return None
        ours, numpy = self.value(name, self.array(name).shape)
        if self.random.random() < 0.5:
            return Line(f"{name}.assign({ours})", f"{name}[...] = {numpy}")
        op = self.random.choice("+-*")
        return Line(f"{name} {op}= {ours}", f"{name} {op}= {numpy}")

    def write_at_key(self) -> Line | None:
        name = self.pick(writable=True, rank=1)
        if name is None:
            return None
        array = self.array(name)
        if self.random.random() < 0.2:
            mask = next((m for m in self.names("b") if self.array(m).shape == array.shape), None)
            by = mask or f"{name} > {self.number(name)}"
            number = self.number(name)
            return Line(f"{name}[{by}] = {number}", f"{name}[{by}] = {number}")
        key = self.key(array.shape)
        address = array[eval(f"np.s_[{key}]")]
        ours, numpy = self.value(name, address.shape)
        op = self.random.choice(("=", "=", "+=", "*="))
        return Line(f"{name}[{key}] {op} {ours}", f"{name}[{key}] {op} {numpy}")

    def write_at_positions(self) -> Line | None:
        name = self.pick(writable=True, rank=1)
        if name is None or 0 in self.array(name).shape:
            return None
        array = self.array(name)
        axis = self.random.randrange(array.ndim)
        size = array.shape[axis]
        rows = self.random.sample(range(size), self.random.randint(1, min(size, 3)))
        shape = (*array.shape[:axis], len(rows), *array.shape[axis + 1 :])
        ours, numpy = self.value(name, shape)
        before = ":, " * axis
        index = f"Tensor({rows})" if self.random.random() < 0.5 else str(rows)
        return Line(f"{name}[{before}{index}] = {ours}", f"{name}[{before}{rows}] = {numpy}")

    # The rest.

    def rounded(self) -> Line | None:
        """A result that is rounded; nothing is computed from it."""
        name = self.pick("f")
        if name is None or self.array(name).size == 0:
            return None
        axes = self.axes(self.array(name).ndim)
        forms = [
            ("{x}.mean({axes})", "np.mean({x}, {axes})"),
            ("{x}.var({axes}, correction=0)", "np.var({x}, {axes})"),
            ("({x}.abs() + 1).sqrt()", "np.sqrt(np.abs({x}) + 1)"),
            ("{x} / ({x}.abs() + 3)", "{x} / (np.abs({x}) + 3)"),
            ("({x} / 512).exp()", "np.exp({x} / 512)"),
            ("({x} / 512).tanh().sum({axes})", "np.tanh({x} / 512).sum({axes})"),
            ("({x} / 512).logsumexp({axes})", "np.log(np.exp({x} / 512).sum({axes}))"),
            (
                "({x} / 512).softmax()",
                "np.exp({x} / 512) / np.exp({x} / 512).sum(-1, keepdims=True)",
            ),
        ]
        ours, numpy = (form.format(x=name, axes=axes) for form in self.random.choice(forms))
        made = self.target("r")
        return Line(f"{made} = {ours}", f"{made} = new({numpy}, 'float32')")

    def realize(self) -> Line | None:
        found = [name for name in self.oracle.names if name[0] in "tr"]
        chosen = self.random.sample(found, min(len(found), self.random.randint(1, 2)))
        return realizing(chosen) if chosen else None

    def realize_all(self) -> Line | None:
        return realizing(list(self.oracle.names))

    def forget(self) -> Line | None:
        found = list(self.oracle.names)
        name = self.random.choice(found) if len(found) > 2 else None
        return Line(f"del {name}", f"del {name}") if name else None

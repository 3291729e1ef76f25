"""The lines of programs with jitted functions that plain programs do not have.

Random numbers, gradients, steps of an optimizer, other devices, objects with tensors in them, and
parameters that are numbers or sizes. `fuzz.jit_lines` puts them into functions and around them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fuzz.program_lines import SHAPES, Generator
from fuzz.program_oracle import Array, Line

# The greatest value of a symbolic size, which no axis that it cuts is below.
MOST_SIZE: Final = 3
MOST_NUMBER: Final = 4


class JitSteps(Generator):
    """Makes lines; the names of what is not a tensor are kept here."""

    oracle: Any
    scalars: list[str]  # numbers and sizes that a line may use: parameters, and `numbers`
    numbers: list[str]  # variables with numbers
    boxes: list[str]  # objects with a tensor and a number
    optimizers: dict[str, tuple[str, tuple[int, ...]]]  # with a weight and its shape
    lent: dict[str, str]  # arrays over the memory of tensors, and their dtypes
    is_pure: bool  # whether the function that is being written writes to nothing

    # Random numbers.

    def draw(self) -> Line | None:
        name, shape = self.target(), self.random.choice(SHAPES)
        kind = self.random.randrange(5)
        floats = self.names("f")
        if kind == 0:
            return Line(
                f"{name} = (Tensor.rand(*{shape}) * 16).floor()",
                f"{name} = new(np.floor(draws.unit({shape}) * 16), 'float32')",
            )
        if kind == 1:
            count = self.random.randint(2, 9)
            return Line(
                f"{name} = Tensor.randperm({count})",
                f"{name} = new(draws.permutation({count}), 'int32')",
            )
        if kind == 2 and floats:
            x = self.random.choice(floats)
            return Line(
                f"{name} = {x}.dropout(0.5, training=True)",
                f"{name} = new(np.where(draws.unit({x}.shape) >= 0.5, {x}, 0) / 0.5, 'float32')",
            )
        low = self.random.randint(-9, 0)
        high = low + self.random.randint(1, 20)
        return Line(
            f"{name} = Tensor.randint({shape}, low={low}, high={high})",
            f"{name} = new(draws.integers({shape}, {low}, {high}), 'int32')",
        )

    # Gradients and optimizers.

    def gradient(self) -> Line | None:
        # A number that nobody computed is the same node as the numbers of the forms.
        name = self.pick("f", rank=1)
        if name is None:
            return None
        alike = [x for x in self.names("f") if self.array(x).shape == self.array(name).shape]
        forms = (
            ("({x} * {x} * 2 + {x}).sum().gradient({x})[0]", "4 * {x} + 1"),
            ("({x}.relu() * 3).sum().gradient({x})[0]", "3.0 * ({x} > 0)"),
            ("({x}.sum() * 2).gradient({x})[0]", "np.full({x}.shape, 2.0)"),
            ("({x} * {y}.detach()).sum().gradient({x})[0]", "like({y}, {x})"),
            ("({x} * 0.5).flip(0).cumsum(0).sum().gradient({x})[0]", "0.5 * counted({x})"),
        )
        ours, numpy = self.random.choice(forms)
        names = {"x": name, "y": self.random.choice(alike)}
        return self.made(ours.format(**names), numpy.format(**names), "float32")

    def optimizer(self) -> Line | None:
        """An optimizer with its weight, outside of functions."""
        name = self.pick("f")
        if name is None:
            return None
        weight, made = self.target("w"), self.target("o")
        self.optimizers[made] = weight, self.array(name).shape
        momentum = self.random.choice((0.0, 1.0))
        given = f"lr=0.5, momentum={momentum}"
        return Line(
            f"{weight} = {name}.detach().clone(); {made} = SGD([{weight}], {given})",
            f"{weight} = np.array({name}); {made} = Descent({weight}, {given})",
        )

    def descend(self) -> Line | None:
        """A step of an optimizer; the loss is not exact, so it has no name in `t`."""
        if not self.optimizers:
            return None
        made, (weight, shape) = self.random.choice(list(self.optimizers.items()))
        fitting = [x for x in self.names("f") if self.array(x).shape == shape]
        if not fitting:
            return None
        x = self.random.choice(fitting)
        loss, slope = self.random.choice(
            (
                (f"({weight} * {x}.detach())", x),
                (f"({weight} - {x}.detach()).relu()", f"1.0 * ({weight} > {x})"),
            )
        )
        return Line(
            f"{made}.zero_grad(); {loss}.sum().backward(); {made}.step()",
            f"{made}.step({slope})",
        )

    # Devices and objects.

    def visit(self) -> Line | None:
        """A value by way of another device."""
        name = self.pick()
        if name is None:
            return None
        form = self.random.choice(("{x} * 2", "{x} + 1", "{x}"))
        away = form.format(x=f"{name}.to(away)")
        return self.made(f"({away}).to(home)", form.format(x=name), self.dtype(name))

    def lend(self) -> Line | None:
        """An array of NumPy, which no later write may change."""
        name = self.pick()
        if name is None:
            return None
        made = self.target("a")
        self.lent[made] = self.dtype(name)
        return Line(f"{made} = {name}.numpy()", f"{made} = np.array({name})")

    def box(self) -> Line | None:
        name = self.pick(writable=True)
        if name is None:
            return None
        made, number = self.target("b"), self.random.randint(1, MOST_NUMBER)
        self.boxes.append(made)
        return Line(f"{made} = Box({name}, {number})", f"{made} = Box({name}, {number})")

    def box_of(self) -> tuple[str, Array] | None:
        made = [name for name in self.boxes if name in self.oracle.scope]
        if not made:
            return None
        name = self.random.choice(made)
        return name, self.oracle.scope[name].t

    def use_box(self) -> Line | None:
        """A line that reads a tensor and a number of an object, or writes to the tensor."""
        found = self.box_of()
        if found is None:
            return None
        name, array = found
        if not self.is_pure and self.random.random() < 0.4:
            value = f"{name}.t + {name}.k"
            return Line(f"{name}.t.assign({value})", f"{name}.t[...] = {value}")
        dtype = "float32" if array.dtype.kind == "f" else "int32"
        return self.made(f"{name}.t * {name}.k", f"{name}.t * {name}.k", dtype)

    def replace(self) -> Line | None:
        """Another tensor or number under a name that functions may read, outside of them."""
        kind = self.random.randrange(4)
        found = self.box_of()
        if kind == 0 and found is not None:
            name, array = found
            alike = self.alike(array)
            text = f"{name}.k = {self.random.randint(1, MOST_NUMBER)}"
            if alike and self.random.random() < 0.6:
                text = f"{name}.t = {self.random.choice(alike)}"
            return Line(text, text)
        if kind == 1:
            is_new = not self.numbers or self.random.random() < 0.4
            name = self.target("k") if is_new else self.random.choice(self.numbers)
            self.numbers += [name] * is_new
            text = f"{name} = {self.random.randint(1, MOST_NUMBER)}"
            return Line(text, text)
        chosen = self.pick()
        if chosen is None:
            return None
        others = [x for x in self.alike(self.array(chosen)) if x != chosen]
        if others and self.random.random() < 0.4:
            text = f"{chosen} = {self.random.choice(others)}"
            return Line(text, text)
        dtype = self.dtype(chosen)
        data = self.data(self.array(chosen).shape, dtype)
        return Line(
            f"{chosen} = Tensor({data}, dtype={dtype!r})", f"{chosen} = new({data}, {dtype!r})"
        )

    def alike(self, array: Array) -> list[str]:
        """Names of the same shape and dtype."""
        return [x for x in self.names(array.dtype.kind) if self.array(x).shape == array.shape]

    def data(self, shape: tuple[int, ...], dtype: str) -> str:
        """New elements, as text."""
        count = int(np.prod(shape))
        values = [self.random.randint(-6, 9) for _ in range(count)]
        return str(np.array(values).reshape(shape).astype(dtype).tolist())

    # Numbers and sizes.

    def with_scalar(self) -> Line | None:
        """A line that uses a number or a size."""
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
        if array.flags.writeable and not self.is_pure and self.random.random() < 0.5:
            return self.write_at_size(name, size)
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

    def write_at_size(self, name: str, size: str) -> Line:
        array = self.array(name)
        key = self.random.choice((f":{size}", f"{size}:", f"{size} - 1", f":{size}, ..."))
        op = self.random.choice(("=", "+=", "*="))
        fitting = [other for other in self.names(array.dtype.kind) if self.fits(other, array)]
        is_part = key[0] == ":" and fitting and self.random.random() < 0.5
        value = f"{self.random.choice(fitting)}[:{size}]" if is_part else self.number(name)
        return Line(f"{name}[{key}] {op} {value}", f"{name}[{key}] {op} {value}")

    def fits(self, name: str, array: Array) -> bool:
        """Whether a part of a tensor can be written to the same part of another."""
        other = self.array(name)
        return bool(other.shape[1:] == array.shape[1:] and other.shape[:1] >= (MOST_SIZE,))

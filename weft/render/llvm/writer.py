"""The text of one LLVM module as it grows: instructions, blocks, and what is declared.

The parts of the renderer write through this, so that names are fresh, every intrinsic is declared
once, and whoever opens a loop knows the block in which it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.render.llvm.types import suffix

Typed = tuple[str, str]  # a type and an operand


class LlvmWriter:
    """Lines of a function body and of the module around it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.globals: list[str] = []
        self.declared: dict[str, str] = {}
        self.block_name = "entry"
        self._names = 0
        self._zero_bytes = 0

    def name(self, text: str = "%v") -> str:
        """A name that nobody else has."""
        self._names += 1
        return f"{text}{self._names}"

    def value(self, text: str) -> str:
        """Write an instruction with a result, and return its name."""
        result = self.name()
        self.lines.append(f"  {result} = {text}")
        return result

    def do(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {text}")

    def block(self, label: str) -> None:
        """What follows stands in this block."""
        self.lines.append(f"{label}:")
        self.block_name = label

    def enter(self, label: str) -> None:
        """End the block with a jump to the next one."""
        self.do(f"br label %{label}")
        self.block(label)

    def call(self, function: str, result: str, *arguments: Typed) -> str:
        """Call a function by its whole name; declare it if it is new."""
        text = self._call(function, result, arguments)
        if result == "void":
            self.do(text)
            return ""
        return self.value(text)

    def _call(self, function: str, result: str, arguments: Sequence[Typed]) -> str:
        types = ", ".join([type_name for type_name, _ in arguments])
        self.declared[function] = f"declare {result} @{function}({types})"
        operands = ", ".join([f"{type_name} {operand}" for type_name, operand in arguments])
        return f"call {result} @{function}({operands})"

    def intrinsic(self, stem: str, type_name: str, *operands: str) -> str:
        """Call `llvm.stem` on operands of one type, which is also that of the result."""
        arguments = [(type_name, operand) for operand in operands]
        return self.call(f"llvm.{stem}.{suffix(type_name)}", type_name, *arguments)

    def select(self, condition: Typed, type_name: str, yes: str, no: str) -> str:
        kind, operand = condition
        return self.value(f"select {kind} {operand}, {type_name} {yes}, {type_name} {no}")

    def zeros(self, size: int) -> str:
        """The address of at least `size` zero bytes, for loads that must read nothing else."""
        self._zero_bytes = max(self._zero_bytes, size)
        return "@zeros"

    def module(self, head: str) -> str:
        """The whole module; `head` defines the function."""
        top = list(self.globals)
        if self._zero_bytes:
            size = self._zero_bytes
            top.append(f"@zeros = internal constant [{size} x i8] zeroinitializer, align 64")
        return "\n".join([*top, *self.declared.values(), head, *self.lines, "}", ""])

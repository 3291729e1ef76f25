"""One renderer for the languages of the C family.

`render_program` writes a program in the language that a `Language` describes; `c.py` and
`opencl.py` call it. Each instruction becomes one statement, in the order of the program, except
that a value with one use nearby is written where it is used. That never moves a load over a store
or work into a loop, and never changes a bit of the result.
"""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import BOOL, DType, dtypes
from weft.ir.ops import ELEMENTWISE, Op, name
from weft.ir.program import Program
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.ir.walk import topological
from weft.render.c_family import memory as c_family_memory
from weft.render.c_family.expressions import Expressions
from weft.render.c_family.language import (
    ATOM,
    LONGEST_INLINE,
    Counter,
    Language,
    Pointer,
    Shell,
    Text,
    unsigned,
)
from weft.render.c_family.memory import AddressText
from weft.render.c_family.names import Names
from weft.render.c_family.uses import Uses
from weft.support.errors import InternalError
from weft.target.c import entry_name
from weft.target.target import Target

INDENT: Final = "  "
_EFFECTS: Final = frozenset((Op.STORE, Op.BARRIER, Op.RANGE, Op.END))
_SILENT: Final = frozenset(
    (Op.CONST, Op.VARIABLE, Op.PARAM, Op.MEMORY, Op.SPECIAL, Op.INDEX, Op.AFTER)
)


def render_program(
    program: Program, target: Target, language: Language, *, rounds_float32: bool = True
) -> str:
    """The source text of a program."""
    has_float64 = dtypes.float64 in target.native_dtypes
    return _Kernel(program, language, Expressions(language, has_float64, rounds_float32)).render()


class _Kernel:
    """A program while it is written. `texts` has what each node is called, or its expression."""

    def __init__(self, program: Program, language: Language, expressions: Expressions) -> None:
        self.program = program
        self.language = language
        self.expressions = expressions
        self.nodes = topological(program.instructions)
        self.uses = Uses(program.instructions)
        self.names = Names({*language.reserved, entry_name(program.name)})
        self.texts: dict[UOp, Text] = {}
        self.memories: dict[UOp, str] = {}
        self.pending: dict[UOp, bool] = {}  # not yet written; whether it reads memory
        self.lines: list[str] = []
        self.depth = 0

    def render(self) -> str:
        self._emit(*self.language.open_kernel(self._shell()))
        self._declare_leaves()
        for node in self.program.instructions.src:
            if node.op in _EFFECTS:
                self._effect(node)
            elif node.op not in _SILENT:
                self._value(node)
        while self.depth:
            self._emit("}")
        kernel = "\n".join(self.lines)
        vectors = {node.dtype.name: node.dtype for node in self.nodes if node.dtype.lanes > 1}
        typedefs = [self.language.typedef(vectors[name]) for name in sorted(vectors)]
        code = "\n\n".join([*self.expressions.helpers.texts.values(), kernel])
        header = [*self.language.header(code), *filter(None, typedefs)]
        return "\n".join([*header, "", code, ""])

    # The parts around the body.

    def _shell(self) -> Shell:
        pointers = self._pointers()
        for variable in self.program.variables:
            self.texts[variable] = Text(self.names.claim(variable.arg[0]))
        for node in self.nodes:
            if node.op == Op.VARIABLE and node not in self.texts:
                what = f"expected an argument of the program, got variable {node.arg[0]!r}"
                raise InternalError(what)
        variables = [self.texts[variable].text for variable in self.program.variables]
        specials = [node for node in self.nodes if node.op == Op.SPECIAL]
        counters = []
        for node in sorted(specials, key=lambda node: (node.arg, node.dtype.name)):
            kind, axis = node.arg
            word = self.names.claim(f"{kind[0]}{axis}")
            self.texts[node] = Text(word)
            counters.append(Counter(word, node.dtype, kind, axis))
        sizes = [self._size(size) for size in self.program.groups]
        return Shell(self.language, self.program, pointers, variables, counters, sizes)

    def _pointers(self) -> list[Pointer]:
        """The memory arguments, as the program sees them: one may be read by its bits."""
        seen: dict[int, DType] = {}
        for node in self.nodes:
            if node.op == Op.PARAM:
                if seen.setdefault(node.arg[0], node.dtype) is not node.dtype:
                    raise InternalError(f"the argument {node.arg[0]} has two dtypes")
                self.memories[node] = self.names.reserve(f"p{node.arg[0]}")
        pointers = []
        for parameter in self.program.parameters:
            # Nobody looks at an argument that the program does not name.
            dtype = seen.get(parameter.slot) or unsigned(parameter.dtype)
            word = self.names.reserve(f"p{parameter.slot}")
            pointers.append(Pointer(word, dtype, parameter.is_written))
        return pointers

    def _size(self, size: int | UOp) -> str:
        """A launch size as an expression over the variables."""
        if isinstance(size, int):
            return str(size)
        for node in topological(size):
            if node.op == Op.CONST:
                self.texts[node] = self.language.literal(node.dtype, node.arg)
            elif node.op != Op.VARIABLE:
                self.texts[node] = self._spell(node)
        return self.texts[size].at(ATOM)

    def _declare_leaves(self) -> None:
        for node in self.nodes:
            if node.op == Op.MEMORY:
                word, space, size = node.arg
                self.memories[node] = self.names.claim(word)
                self._emit(self._declaration(node, space, size))
            elif node.op == Op.CONST:
                value = self.language.literal(node.dtype.scalar, node.arg)
                self.texts[node] = value
                if node.dtype.lanes > 1:
                    lanes = [value.text] * node.dtype.lanes
                    self._declare(node, self.language.build(node.dtype, lanes))

    def _declaration(self, node: UOp, space: str, size: int) -> str:
        """Memory inside a kernel: an array, or a variable if it is always used whole."""
        if self.uses.is_variable(node) and size > 1:
            return f"{self.language.type_name(node.dtype.vector(size))} {self.memories[node]};"
        suffix = "" if self.uses.is_variable(node) else f"[{size}]"
        kind = self.language.spaces[space] + self.language.memory_type(node.dtype)
        return f"{kind} {self.memories[node]}{suffix};"

    # Values.

    def _value(self, node: UOp) -> None:
        """Write an instruction that has a value, or keep it until it is used."""
        reads = node.op == Op.LOAD or any(self.pending.get(source) for source in node.src)
        text = self._load(node) if node.op == Op.LOAD else self._spell(node)
        if text is None:
            return
        if self.uses.is_used_once_nearby(node) and len(text.text) <= LONGEST_INLINE:
            self.texts[node] = text
            self.pending[node] = reads
        else:
            self._declare(node, text)

    def _load(self, node: UOp) -> Text | None:
        """The expression of a load, or None where statements had to be written."""
        address = self._address(node.src[0])
        text = c_family_memory.inline_load(self.language, address)
        if text is None:
            word = self._name(node)
            self._emit(*c_family_memory.vector_load(self.language, address, word))
            self.texts[node] = Text(word)
        return text

    def _spell(self, node: UOp) -> Text:
        """The expression of an op on scalars or vectors."""
        if node.op in (Op.VECTOR, Op.LANES):
            return self._lanes(node)
        if node.op not in ELEMENTWISE:
            raise InternalError(f"expected an instruction of a program, got {name(node.op)}")
        source = node.src[-1].dtype
        if node.dtype.lanes == 1:
            operands = [self._use(x) for x in node.src]
            return self.expressions.spell(node.op, node.dtype, source, operands, node)
        if self.expressions.spells_whole(node.op, node.dtype):
            return self.expressions.whole(node.op, [self._use(x) for x in node.src])
        rows = [self._lane_names(x, node.dtype.lanes) for x in node.src]
        texts = [
            self.expressions.spell(
                node.op, node.dtype.scalar, source.scalar, [Text(x) for x in lanes]
            ).text
            for lanes in zip(*rows, strict=True)
        ]
        return self.language.build(node.dtype, texts)

    def _lanes(self, node: UOp) -> Text:
        if node.op == Op.VECTOR:
            lanes = [lane for x in node.src for lane in self._lane_names(x, x.dtype.lanes)]
        else:
            vector = self._lane_names(node.src[0], node.src[0].dtype.lanes)
            lanes = [vector[lane] for lane in node.arg]
        return self.language.build(node.dtype, lanes) if node.dtype.lanes > 1 else Text(lanes[0])

    def _lane_names(self, node: UOp, count: int) -> list[str]:
        """The lanes of a node; a scalar is every one of `count` lanes."""
        if node.dtype.lanes == 1:
            return [self._use(node).text if count == 1 else self._named(node)] * count
        vector = self._named(node)
        return [self.language.lane(vector, node.dtype, lane) for lane in range(count)]

    def _use(self, node: UOp) -> Text:
        """The text of a source, which is written here if it was kept."""
        node = behind(node)
        self.pending.pop(node, None)
        return self.texts[node]

    def _named(self, node: UOp) -> str:
        """The text of a source that can be written several times."""
        node = behind(node)
        if self.pending.pop(node, None) is not None:
            self._declare(node, self.texts[node])
        return self.texts[node].at(ATOM)

    def _declare(self, node: UOp, text: Text) -> None:
        word = self._name(node)
        self._emit(f"const {self.language.type_name(node.dtype)} {word} = {text.text};")
        self.texts[node] = Text(word)

    def _name(self, node: UOp) -> str:
        if node.op == Op.CONST:
            return self.names.fresh("k")
        if node.op == Op.LOAD:
            return self.names.fresh("x")
        return self.names.fresh("c" if node.dtype.kind == BOOL else "v")

    # Memory and control.

    def _address(self, node: UOp) -> AddressText:
        memory, mask, index = behind(node.src[0]), node.src[1], node.src[2]
        # Else the texts of the mask and the index are written once for each lane.
        is_plain = node.dtype.lanes == 1 or c_family_memory.moves_whole(self.language, node.dtype)
        lane_masks: Text | list[str] | None = None
        if mask.dtype.lanes > 1:
            lane_masks, is_plain = self._lane_names(mask, mask.dtype.lanes), False
        elif mask.op != Op.CONST or not mask.arg:
            lane_masks = self._use(mask) if is_plain else Text(self._named(mask))
        position = self._use(index) if is_plain else Text(self._named(index))
        is_variable = self.uses.is_variable(memory)
        return AddressText(self.memories[memory], position, lane_masks, node.dtype, is_variable)

    def _effect(self, node: UOp) -> None:
        statements = self._statements(node)
        for waiting, reads in list(self.pending.items()):
            if reads:  # what was read before the effect must not be read after it
                del self.pending[waiting]
                self._declare(waiting, self.texts[waiting])
        self._emit(*statements)

    def _statements(self, node: UOp) -> list[str]:
        if node.op == Op.STORE:
            address = self._address(node.src[0])
            value = node.src[1]
            is_inline = value.dtype.lanes == 1 or (address.is_variable and address.mask is None)
            text = self._use(value) if is_inline else Text(self._named(value))
            return c_family_memory.store(self.language, address, text)
        if node.op == Op.RANGE:
            word = self.names.claim(f"r{node.arg}")
            extent = self._named(node.src[0])
            self.texts[node] = Text(word)
            counter = f"{self.language.type_name(node.dtype)} {word} = 0"
            return [f"for ({counter}; {word} < {extent}; {word}++) {{"]
        if node.op == Op.END:
            return ["}"]
        return [self.language.barrier] if self.language.barrier else []

    def _emit(self, *statements: str) -> None:
        for statement in statements:
            if statement.startswith("}"):
                self.depth -= 1
            self.lines.append(INDENT * self.depth + statement)
            if statement.endswith("{"):
                self.depth += 1

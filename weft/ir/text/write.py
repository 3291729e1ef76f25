"""One scope of the text form as lines: which nodes get a line and a name, and in which order.

`text.py` calls `TextWriter` once for the graph and once per body. A node that is used once, or is
cheap index arithmetic, is written where it is used; any other gets a line of its own, after its
sources.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from weft.ir.dtypes import BOOL, INDEX
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.text.forms import expression
from weft.ir.text.page import Page, Ref, const_ref, quoted, word
from weft.ir.text.syntax import ATOM, BLOCKS, LINE, hint
from weft.ir.uop import Arg, UOp
from weft.ir.walk import topological

INLINE_WIDTH: Final = 56
REPEATED_WIDTH: Final = 16
BLOCKS_DEEP: Final = 4  # blocks are indented; a long chain of them reads better as a list

_WORD_OF: Final = {op: text for text, op in BLOCKS.items()}
_ALWAYS_NAMED: Final = frozenset((Op.RANGE, Op.AFTER, Op.CALL, Op.LINEAR, Op.SINK, Op.KERNEL))
_LEAVES: Final = frozenset((Op.PARAM, Op.BUFFER, Op.MEMORY, Op.VARIABLE))


class TextWriter:
    """The lines of one scope, and the line on which each node stands."""

    def __init__(
        self, root: UOp, order: Iterable[UOp], functions: Mapping[UOp, str], apart: Collection[UOp]
    ) -> None:
        self.page = Page(functions)
        self.apart = apart
        self.lines: list[str] = []
        self.line_of: dict[UOp, int] = {}
        self.names: set[str] = set()
        self.count = 0
        self.uses: dict[UOp, int] = {root: 0}
        for node in order:
            for source in node.src:
                self.uses[source] = self.uses.get(source, 0) + 1

    def write(self, root: UOp, indent: str) -> None:
        if _is_block(root):
            self._block(root, indent, "", "", BLOCKS_DEEP)
            return
        self._sources(root, indent)
        if root.op == Op.RANGE:
            self._define(root, indent)
            self._line(root, indent, "return " + self.page.refs[root][0])
        else:
            self._line(root, indent, "return " + expression(root, self.page)[0])

    def _line(self, node: UOp, indent: str, text: str) -> None:
        self.line_of.setdefault(node, len(self.lines))
        self.lines.append(indent + text)

    def _sources(self, node: UOp, indent: str, let: str = "") -> None:
        """Write what `node` needs and is not written yet."""
        refs = self.page.refs
        if all(source in refs for source in node.src):
            return
        for part in topological(*node.src, enter=lambda part: part not in refs):
            if part not in refs:
                self._inline_or_define(part, indent, let)

    def _inline_or_define(self, node: UOp, indent: str, let: str) -> None:
        if node.op == Op.CONST and node not in self.apart:
            self.page.refs[node] = const_ref(node)
            return
        if node.op != Op.RANGE:
            ref = expression(node, self.page)
            if self._is_inlined(node, ref):
                self.page.refs[node] = ref
                return
        self._define(node, indent, let)

    def _is_inlined(self, node: UOp, ref: Ref) -> bool:
        text, level = ref
        if level == LINE or node.op in _ALWAYS_NAMED or node in self.apart:
            return False
        if self.uses[node] == 1:
            return len(text) <= INLINE_WIDTH
        return len(text) <= REPEATED_WIDTH and (
            node.op == Op.INDEX or (node.op in ELEMENTWISE and node.dtype.kind in (INDEX, BOOL))
        )

    def _define(self, node: UOp, indent: str, let: str = "") -> None:
        """Write the line that gives a node its name."""
        text = self._range_text(node) if node.op == Op.RANGE else None
        if text is None:
            text = f"{self._name(node)} = {expression(node, self.page)[0]}"
        else:
            self._name(node)
        self._line(node, indent, let + text)

    def _range_text(self, node: UOp) -> str | None:
        """`r3 < extent`; the name says the number."""
        name = hint(node)
        if name is None or node.dtype is not node.src[0].dtype:
            return None
        return f"{self._range_name(node, name)} < {self.page.operand(node.src[0])}"

    def _range_name(self, node: UOp, name: str) -> str:
        """`r3`, and `r3_16` for another range 3, as the kernels of a graph have them."""
        extent = node.src[0]
        label = name
        suffix = extent.arg if extent.op == Op.CONST and extent.arg >= 0 else 1
        while label in self.names:
            label = f"{name}_{suffix}"
            suffix += 1
        return label

    def _name(self, node: UOp) -> str:
        name = hint(node)
        if name is not None and node.op == Op.RANGE and node.dtype is node.src[0].dtype:
            name = self._range_name(node, name)
        while name is None or name in self.names:
            name = f"v{self.count}"
            self.count += 1
        self.names.add(name)
        self.page.refs[node] = (name, ATOM)
        return name

    def _block(self, node: UOp, indent: str, let: str, name: str, deep: int) -> None:
        header = _WORD_OF[node.op]
        if node.op == Op.KERNEL:
            title, loops = node.arg
            header += " " + quoted(title) + (" " if loops else "")
            header += ", ".join(f"r{number} {word(kind)}" for number, kind in loops)
        elif node.arg is not None:
            header += _plan_text(node.arg)
        inner = indent + "  "
        if node.op == Op.LINEAR and not let:
            self._hoist_leaves(node, indent)
        self._line(node, indent, f"{let}{name} = {header}:" if name else f"{header}:")
        if node.op == Op.KERNEL:
            self._hoist_leaves(node, inner)
        if node.op == Op.LINEAR:
            self._instructions(node, inner, deep)
        else:
            for member in node.src:
                self._member(member, inner, "", deep)

    def _member(self, node: UOp, indent: str, let: str, deep: int) -> None:
        """Write a line without a name for a source of a block."""
        refs = self.page.refs
        if node not in refs and deep > 1 and _is_block(node):
            name = self._name(node) if self.uses[node] > 1 else ""
            self._block(node, indent, let, name, deep - 1)
            if name:
                self._line(node, indent, name)
            return
        if node not in refs:
            self._sources(node, indent, let)
            if self.uses[node] > 1 or node.op == Op.RANGE:
                self._inline_or_define(node, indent, let)
            else:
                refs[node] = expression(node, self.page)
        self._line(node, indent, refs[node][0])

    def _hoist_leaves(self, block: UOp, indent: str) -> None:
        """Write the memory and the ranges of a kernel before what it does; of a LINEAR, which
        lists its ranges where they begin, the memory only."""
        wanted = _LEAVES if block.op == Op.LINEAR else _LEAVES | {Op.RANGE}
        members = set(block.src) if block.op == Op.LINEAR else set()
        leaves = [
            node
            for node in topological(block)
            if node.op in wanted
            and node not in members
            and node not in self.page.refs
            and all(source.op in (Op.VARIABLE, Op.CONST) for source in node.src)
        ]
        for node in sorted(leaves, key=_rank):
            self._sources(node, indent)
            if node not in self.page.refs:
                self._define(node, indent)

    def _instructions(self, linear: UOp, indent: str, deep: int) -> None:
        """Write the members of a LINEAR, indented between RANGE and END."""
        refs = self.page.refs
        depth = 0
        for node in linear.src:
            if node.op == Op.END:
                depth = max(depth - 1, 0)
            inner = indent + "  " * depth
            if node.op == Op.RANGE:
                depth += 1
            if node in refs or node.op == Op.CONST or _is_block(node):
                self._member(node, inner, "let ", deep)
            else:
                self._sources(node, inner, "let ")
                self._instruction(node, inner)

    def _instruction(self, node: UOp, indent: str) -> None:
        refs = self.page.refs
        if node.op == Op.RANGE:
            text = self._range_text(node)
            if text is not None:
                self._name(node)
                self._line(node, indent, f"for {text}:")
                return
        if self.uses[node] == 1:
            refs[node] = expression(node, self.page)
            self._line(node, indent, refs[node][0])
            return
        text = expression(node, self.page)[0]
        self._line(node, indent, f"{self._name(node)} = {text}")


def _rank(leaf: UOp) -> tuple[int, int]:
    """The order of leaves: sizes, memory by number, ranges by number."""
    number = leaf.arg[0] if leaf.arg.__class__ is tuple and leaf.arg else leaf.arg
    order = (Op.VARIABLE, Op.PARAM, Op.BUFFER, Op.MEMORY, Op.RANGE).index(leaf.op)
    return order, number if number.__class__ is int else 0


def _is_block(node: UOp) -> bool:
    """Whether a node can be written as a block of lines."""
    arg = node.arg
    if node.op == Op.LINEAR and arg is not None:
        return node.dtype.name == "void" and _is_plan(arg)
    if node.op != Op.KERNEL:
        return node.op in (Op.SINK, Op.LINEAR) and node.dtype.name == "void" and arg is None
    if node.dtype.name != "void" or arg.__class__ is not tuple or len(arg) != 2:
        return False
    return arg[0].__class__ is str and arg[1].__class__ is tuple and all(map(_is_loop, arg[1]))


def _plan_text(arg: Arg) -> str:
    if len(arg) == 1:
        return f" from p{arg[0]}"
    return f" {arg[0]}" + "".join(f", p{slot} at {offset}" for slot, offset in arg[1])


def _is_plan(arg: Arg) -> bool:
    """Whether an arg is the first temporary, or the bytes of an arena and offsets by slot."""
    if arg.__class__ is tuple and len(arg) == 1:
        return arg[0].__class__ is int and arg[0] >= 0
    if arg.__class__ is not tuple or len(arg) != 2 or arg[1].__class__ is not tuple:
        return False
    if any(pair.__class__ is not tuple or len(pair) != 2 for pair in arg[1]):
        return False
    numbers = (arg[0], *(number for pair in arg[1] for number in pair))
    return all(number.__class__ is int and number >= 0 for number in numbers)


def _is_loop(loop: object) -> bool:
    return (
        isinstance(loop, tuple)
        and len(loop) == 2
        and loop[0].__class__ is int
        and loop[0] >= 0
        and loop[1].__class__ is str
    )

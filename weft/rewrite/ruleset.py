"""Rule sets: named, ordered rules, compiled into decision functions when first used.

`rules("divide", rule(…), …)` makes one; sets are merged by naming them inside another, and a
merged set is one decision function per op, not several tries. A set that is mostly another one
takes over its decision functions where it adds no rule. The generated code of the large sets comes
with Weft, in `shipped.py`, and that of others is kept in the disk cache, each under everything it
depends on: a process generates only what nobody has seen.
"""

from __future__ import annotations

import marshal
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Final

from weft.ir.ops import COUNT
from weft.ir.uop import UOp, bool_like, const, make, new_mark, on_sweep
from weft.rewrite import matcher
from weft.rewrite.rule import CONTEXT, Rule, require_known_names
from weft.support.cache import DiskCache
from weft.support.errors import InternalError

Matcher = Callable[[UOp, Any], UOp | None]
Record = Callable[[int, UOp, UOp, dict[str, Any] | None], None]

# Sets whose generated code is in `shipped.py`; `tools/matchers.py` writes it.
SHIPPED: Final = ("fold", "kernel", "normalize", "simplify")

_CACHE: Final = DiskCache("matchers", 2)
_generator_checksum: int | None = None


class RuleSet:
    """An ordered list of rules and what has been remembered about rewriting with them.

    `bit` marks nodes in normal form under a context-free set and `forward` maps the others to
    their normal form; both last as long as the nodes. A set with a rule that reads the context has
    no bit.
    """

    def __init__(
        self,
        name: str,
        items: tuple[Rule, ...],
        constants_right: bool = False,
        allow: frozenset[str] = frozenset(),
        members: tuple[RuleSet, ...] = (),
    ) -> None:
        self.name = name
        self.all_rules = items
        self.rules = tuple([item for item in items if set(item.assumes) <= allow])
        self.constants_right = constants_right
        self.allow = allow
        self.members = members
        self.roots = 0  # root ops: a graph without any of them is in normal form already
        for item in self.rules:
            if item.lhs.op is None:
                raise InternalError(f"rule {item.name} has no root op")
            self.roots |= 1 << item.lhs.op
        self.forward: dict[UOp, UOp] = {}
        _require_unique_names(self)
        for item in items:
            require_known_names(item)

    @property
    def is_contextual(self) -> bool:
        for item in self.rules:
            for function in (item.function, item.when):
                if function is not None:
                    code = function.__code__
                    if CONTEXT in code.co_varnames[: code.co_argcount]:
                        return True
        return False

    @cached_property
    def table(self) -> list[Matcher | None]:
        """The decision function of each op, or None where no rule has that root."""
        return self.compile(None)

    @cached_property
    def bit(self) -> int:
        """The mark of this set in `UOp.done`, given out when the set is first used; 0 for none."""
        if self.is_contextual:
            return 0
        on_sweep(self.forward.clear)
        return new_mark()

    def allowing(self, *assumptions: str) -> RuleSet:
        """The set with the rules that make these assumptions switched on."""
        allowed = self.allow | set(assumptions)
        return RuleSet(self.name, self.all_rules, self.constants_right, allowed)

    def source(self, trace: bool = False, left_out: int = 0) -> str:
        """The generated code."""
        return matcher.generate(self.rules, self.constants_right, trace, left_out)

    def compile(self, record: Record | None) -> list[Matcher | None]:
        """Decision functions that report every rule that fires, or do not, at no cost."""
        table: list[Matcher | None] = [None] * COUNT
        left_out = self.take_over(table) if record is None else 0
        make_table = self._generated(record is not None, left_out)
        functions = [item.function for item in self.rules]
        guards = [item.when for item in self.rules]
        made = make_table(make, const, bool_like, record, functions, guards)
        for op, function in made.items():
            table[op] = function
        return table

    def take_over(self, table: list[Matcher | None]) -> int:
        """Fill in the functions of a member that is most of this set, and return their ops.

        They are those of the roots for which this set has no other rule.
        """
        main: RuleSet | None = None
        for member in self.members:
            if main is None or len(member.rules) > len(main.rules):
                main = member
        if main is None or 2 * len(main.rules) < len(self.rules):
            return 0
        if (main.constants_right, main.allow) != (self.constants_right, self.allow):
            return 0
        counts = [0] * COUNT
        for item in self.rules:
            counts[item.lhs.op or 0] += 1
        for item in main.rules:
            counts[item.lhs.op or 0] -= 1
        taken = 0
        for op, function in enumerate(main.table):
            if function is not None and not counts[op]:
                table[op] = function
                taken |= 1 << op
        return taken

    def _generated(self, trace: bool, left_out: int) -> Callable[..., dict[int, Matcher]]:
        """The function that makes the decision functions: shipped, from the disk, or generated."""
        content = self.content(trace, left_out)
        if self.name in SHIPPED and not trace:
            # Most processes use them, but importing Weft alone does not.
            from weft.rewrite import shipped

            if zlib.crc32(content.encode()) == shipped.KEYS.get(self.name):
                return shipped.TABLES[self.name]
        key = sys.version + content
        stored = _CACHE.get(key)
        if stored is None:
            code = compile(self.source(trace, left_out), f"<weft rules {self.name}>", "exec")
            _CACHE.put(key, marshal.dumps(code))
        else:
            code = marshal.loads(stored)
        space: dict[str, Any] = {}
        exec(code, space)
        return space["table"]  # type: ignore[no-any-return]

    def content(self, trace: bool, left_out: int = 0) -> str:
        """All that the generated code depends on.

        Every process asks, once for each set that it uses, so no rule costs a call.
        """
        parts: list[object] = [_checksum_of_generator(), self.constants_right, trace, left_out]
        for _, lhs, rhs, function, when, over, why, _ in self.rules:
            parts.append((lhs.key, rhs and rhs.key, over, bool(why)))
            for called in (function, when):
                code = called and called.__code__
                parts.append(code and code.co_varnames[: code.co_argcount])
        return repr(parts)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        return f"RuleSet({self.name}, {len(self.rules)} rules)"


def rules(name: str, *items: Rule | RuleSet, constants_right: bool = False) -> RuleSet:
    """A rule set of these rules, those of the sets among them included, in this order.

    `constants_right` says that the set itself moves constants to the right of commutative ops, so
    that patterns with a constant need only be tried one way round.
    """
    flat: list[Rule] = []
    for item in items:
        flat += item.all_rules if isinstance(item, RuleSet) else (item,)
    members = tuple(item for item in items if isinstance(item, RuleSet))
    return RuleSet(name, tuple(flat), constants_right, members=members)


def _require_unique_names(made: RuleSet) -> None:
    """A name is that of one identity; several rules may share it only with their function."""
    seen: dict[str, Rule] = {}
    for item in made.all_rules:
        other = seen.setdefault(item.name, item)
        if other is not item and (item.function is None or other.function is not item.function):
            raise InternalError(f"rule set {made.name}: two rules are called {item.name}")


def _checksum_of_generator() -> int:
    """Changes with the code of the generator, whose output the cache holds."""
    global _generator_checksum
    if _generator_checksum is None:
        assert matcher.__file__ is not None
        with open(matcher.__file__, "rb") as file:
            _generator_checksum = zlib.crc32(file.read())
    return _generator_checksum

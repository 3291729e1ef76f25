"""Rules as data. An identity has a template; structure that needs code is a function.

    rule("div-one", x // 1, x)

    @structural(x + y, over=INTEGER)
    def collect_terms(node, x, y): ...

Guards and functions name the variables they want as parameters; `node` is the matched node itself
and `context` what a context-dependent pass hands in. A constant variable arrives as its value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from weft.ir.dtypes import ANY
from weft.ir.ops import Op
from weft.rewrite.pattern import Pattern
from weft.support.errors import InternalError

NODE: Final = "node"
CONTEXT: Final = "context"


class Rule(NamedTuple):
    """One rule. `over` masks the kinds of dtype it holds for: that of the root's last source.

    `why` is a format string over the variables, shown in traces. `assumes` lists what the rule
    takes for granted beyond its dtypes; such a rule is off unless a rule set allows the
    assumption.
    """

    name: str
    lhs: Pattern
    rhs: Pattern | None
    function: Callable[..., Any] | None
    when: Callable[..., bool] | None
    over: int
    why: str
    assumes: tuple[str, ...]


def rule(
    name: str,
    lhs: Pattern,
    rhs: Pattern | bool | int | float,
    when: Callable[..., bool] | None = None,
    over: int = ANY,
    why: str = "",
    assumes: tuple[str, ...] = (),
) -> Rule:
    """An identity: where `lhs` matches and `when` holds, `rhs` is put instead."""
    template = rhs if isinstance(rhs, Pattern) else Pattern(Op.CONST, (), literal=rhs)
    return Rule(name, lhs, template, None, when, over, why, assumes)


def structural(
    lhs: Pattern,
    when: Callable[..., bool] | None = None,
    over: int = ANY,
    why: str = "",
    assumes: tuple[str, ...] = (),
) -> Callable[[Callable[..., Any]], Rule]:
    """Make a rule of a function that returns the replacement, or None to decline.

    The rule is called as the function is, with dashes. The function's docstring shows examples on
    lines `before: …` and `after: …`, which the tests run.
    """

    def decorate(function: Callable[..., Any]) -> Rule:
        name = function.__name__.strip("_").replace("_", "-")
        return Rule(name, lhs, None, function, when, over, why, assumes)

    return decorate


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's positional parameters."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def variables(pattern: Pattern) -> dict[str, Pattern]:
    """The variables of a pattern and the subpattern each one names."""
    found: dict[str, Pattern] = {}
    stack = [pattern]
    while stack:
        part = stack.pop()
        if part.variable is not None:
            found.setdefault(part.variable, part)
        stack.extend(part.src or ())
    return found


def require_known_names(item: Rule) -> None:
    """Reject a rule that mentions a variable its left-hand side does not bind."""
    known = set(variables(item.lhs)) | {NODE, CONTEXT}
    used: set[str] = set()
    if item.rhs is not None:
        used |= set(variables(item.rhs))
    for function in (item.function, item.when):
        if function is not None:
            used |= set(parameters(function))
    if used - known:
        missing = ", ".join(sorted(used - known))
        raise InternalError(f"rule {item.name}: {missing} is not bound by {item.lhs!r}")

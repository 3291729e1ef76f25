"""The table of reverse mode: a rule for every op of the tensor graph that has a gradient.

A rule is a function (node, g): given the gradient of the node, it returns the contribution to
each source, None where there is none. Its docstring is the formula. `WITHOUT_RULE` says of all
other ops why they have no rule.
"""

from __future__ import annotations

from typing import Final

from weft.gradient.custom import CUSTOM_RULES
from weft.gradient.elementwise import ELEMENTWISE_RULES, SlopeRule
from weft.gradient.index import INDEX_RULES
from weft.gradient.memory import MEMORY_RULES
from weft.gradient.movement import MOVEMENT_RULES
from weft.gradient.reduce import REDUCE_RULES
from weft.gradient.scan import SCAN_RULES
from weft.gradient.tuples import TUPLE_RULES
from weft.ir.ops import COMPARE, Op

_BY_FILE: Final[dict[int, SlopeRule]] = {
    **ELEMENTWISE_RULES,
    **MOVEMENT_RULES,
    **REDUCE_RULES,
    **SCAN_RULES,
    **INDEX_RULES,
    **MEMORY_RULES,
    **TUPLE_RULES,
    **CUSTOM_RULES,
}
# In the order of the op table.
RULES: Final[dict[int, SlopeRule]] = {op: _BY_FILE[op] for op in sorted(_BY_FILE)}

_INTEGERS: Final = (*(Op.AND, Op.OR, Op.NOT, Op.TRUNCDIV, Op.XOR, Op.SHL, Op.SHR, Op.DOT_BYTES),)

WITHOUT_RULE: Final[dict[int, str]] = {
    **dict.fromkeys((Op.CONST, Op.BUFFER, Op.PARAM, Op.IOTA), "it has no sources with values"),
    **dict.fromkeys((Op.VARIABLE, Op.BIND), "a size is an integer"),
    **dict.fromkeys(COMPARE, "a bool has no gradient"),
    **dict.fromkeys(_INTEGERS, "it takes integers and bools"),
    Op.BITCAST: "bits are not numbers",
    Op.DETACH: "it stops gradients",
    Op.SINK: "it has no value",
    Op.CALL: "its body is differentiated: call.py",
}

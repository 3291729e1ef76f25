"""The pages conformance.md and deviations.md, from the table of ops that the tests run."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from table_page import ROOT, code, head, markdown_table, wrapped

sys.path.insert(0, str(ROOT))

from tests.end_to_end.deviations import DEVIATIONS
from tests.end_to_end.op_row import EVERY, FLOATS, INTS, Row
from tests.end_to_end.op_table import FAMILIES, NOT_IN_THE_TABLE

_GROUPS = (("integers", INTS), ("floats", FLOATS))


def conformance_page() -> Iterator[str]:
    yield from head("Conformance", "`tests/end_to_end/op_table.py`")
    rows = sum(map(len, FAMILIES.values()))
    yield from wrapped(
        f"These {rows} rows are calls of tensor methods whose results are compared with those of "
        "PyTorch on the CPU and on OpenCL: the shape, the dtype, every element, and where it says "
        "so the gradient. The row begins with the methods it covers. PyTorch computes in float64 "
        "and its result is rounded once. Each row runs on several shapes, those without axes and "
        "without elements included where the call allows them, and on memory that is read "
        "backwards. [Deviations](deviations.md) lists where Weft's results differ."
    )
    yield ""
    yield from wrapped(
        "*Error* is what an element may differ by, in units in the last place (ulp) of the "
        "element, or of the largest element where terms cancel. *Edge values* are NaN, "
        "infinities, both zeros, subnormal numbers and the limits of integers."
    )
    for family, some in FAMILIES.items():
        yield ""
        yield f"## {family[0].upper()}{family[1:]}"
        yield ""
        yield from markdown_table(
            ("call", "error", "gradient", "dtypes", "edge values"),
            [
                (row.name, _error(row), _gradient(row), _dtypes(row.dtypes), _edges(row))
                for row in some
            ],
        )
    yield ""
    yield "## Methods without a row"
    yield ""
    for reason, names in NOT_IN_THE_TABLE.items():
        yield from wrapped(
            f"- {reason}: {', '.join(code(name) for name in sorted(names.split()))}"
        )


def _error(row: Row) -> str:
    if not row.ulps:
        return "none" if row.has_zero_sign else "the sign of zero"
    return f"{row.ulps:g} ulp" + (" of the largest" if row.of_largest else "")


def _gradient(row: Row) -> str:
    return "compared" if row.has_gradient else ""


def _edges(row: Row) -> str:
    return "yes" if "edges" in row.kinds else ""


def _dtypes(names: tuple[str, ...]) -> str:
    """The dtypes of a row, with names for those that often stand together.

    >>> _dtypes(("bool", *INTS, "float32"))
    'bool, integers, float32'
    """
    if set(names) == set(EVERY):
        return "all"
    left = list(names)
    shown = ["bool"] if "bool" in left else []
    for word, group in _GROUPS:
        if set(group) <= set(left):
            shown.append(word)
            left = [name for name in left if name not in group]
    return ", ".join([*shown, *(name for name in left if name != "bool")])


def deviations_page() -> Iterator[str]:
    yield from head("Deviations from PyTorch", "`tests/end_to_end/deviations.py`")
    yield from wrapped(
        "Weft follows PyTorch, then NumPy. These are the cases where its results differ, each "
        "with its reason; tests make both calls."
    )
    for row in DEVIATIONS:
        yield ""
        yield f"## {row.subject[0].upper()}{row.subject[1:]}"
        yield ""
        yield from wrapped(row.reason)
        yield ""
        yield from markdown_table(
            ("", "call", "result"),
            [
                ("Weft", code(row.ours), code(row.our_answer)),
                ("PyTorch", code(row.theirs), code(row.their_answer)),
            ],
        )

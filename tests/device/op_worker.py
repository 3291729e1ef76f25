"""Some rows of the op table on a GPU: `python3 -m tests.device.op_worker SHARD OF [NAME ...]`.

Prints a line of JSON for each row: its family, its name, how many cases it has and what is wrong.
A fault of the GPU ends the process, and with it the rows behind.
"""

import json
import sys
import warnings
from typing import Any

from tests.end_to_end import test_ops as ops
from tests.end_to_end.op_row import Row
from tests.end_to_end.op_table import FAMILIES, LOOPS
from weft.support.settings import Context


def problems_of(row: Row) -> tuple[int, dict[str, str]]:
    """How many cases a row has on a GPU, and what is wrong with which."""
    values = {case: ops.outputs(case, {}) for case in ops.cases(row)}
    found: dict[Any, str] = dict(ops.realize_together(values))
    for case, some in values.items():
        if case in found:
            continue
        limits = (ops.tolerance(case), row.of_largest, row.has_zero_sign)
        for ours, wanted in zip(some, ops.expected(case), strict=True):
            problem = ops.problem_of(ours, wanted, *limits)
            if problem is not None:
                found[case] = problem
    count, named = len(values), {str(case): text for case, text in found.items()}
    if row.has_gradient:
        made = {case: ops.gradients(case, {}) for case in ops.gradient_cases("CPU", row)}
        wrong = ops.realize_together(made)
        for case, some in made.items():
            pairs = [] if case in wrong else zip(some, ops.expected_gradients(case), strict=True)
            for ours, wanted in pairs:
                problem = ops.problem_of(ours, wanted, ops.GRADIENT_ULPS, True)
                if problem is not None:
                    wrong[case] = problem
        count += len(made)
        named.update({f"gradient of {case}": text for case, text in wrong.items()})
    return count, named


def main(shard: int, of: int, names: list[str]) -> None:
    warnings.filterwarnings("ignore")
    rows = [
        (family, row)
        for family, some in FAMILIES.items()
        for row in some
        if family not in LOOPS and (not names or row.name in names)
    ]
    for family, row in rows[shard::of]:
        with Context(DEVICE="CUDA"):
            count, problems = problems_of(row)
        line = {"family": family, "row": row.name, "cases": count, "problems": problems}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])

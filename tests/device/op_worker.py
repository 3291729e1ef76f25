"""Some rows of the op table on a GPU: `python3 -m tests.device.op_worker SHARD OF [NAME ...]`.

Prints a line of JSON for each row: its family, its name, how many cases it has and what is wrong.
A row that raises is wrong, and the next one follows; after a fault of the GPU none can.
"""

import json
import sys
import warnings
from typing import Any

from tests.end_to_end import test_ops as ops
from tests.end_to_end.op_row import Row
from tests.end_to_end.op_table import FAMILIES, LOOPS
from weft.support.errors import DeviceError
from weft.support.settings import Context


def problems_of(row: Row) -> tuple[int, dict[str, str]]:
    """How many cases a row has on a GPU, and what is wrong with which."""
    values = {case: ops.outputs(case, {}) for case in ops.cases(row)}
    found: dict[Any, str] = dict(ops.realize_together(values))
    for case, some in values.items():
        if case in found:
            continue
        limits = (_tolerance(case), row.of_largest, row.has_zero_sign)
        for ours, wanted in zip(some, ops.expected(case), strict=True):
            problem = ops.problem_of(ours, wanted, *limits)
            if problem is not None:
                found[case] = problem
    count, named = len(values), {str(case): text for case, text in found.items()}
    if row.has_gradient:
        made = {case: ops.gradients(case, {}) for case in ops.gradient_cases("CPU", row)}
        wrong = ops.realize_together(made)
        for case, some in made.items():
            expected = None if case in wrong else _expected_gradients(case)
            for ours, wanted in zip(some, expected or (), strict=expected is not None):
                problem = ops.problem_of(ours, wanted, ops.GRADIENT_ULPS, True)
                if problem is not None:
                    wrong[case] = problem
        count += len(made)
        named.update({f"gradient of {case}": text for case, text in wrong.items()})
    return count, named


def _tolerance(case: ops.Case) -> float:
    """The ulps of a case. Torch's square root of float64 is one off on some CPUs: of 0.5 too."""
    limit = ops.tolerance(case)
    return max(limit, 1.0) if (case.row.name, case.dtype) == ("sqrt", "float64") else limit


def _expected_gradients(case: ops.Case) -> Any:
    """Torch's gradients; None where this version of torch has none."""
    try:
        return ops.expected_gradients(case)
    except (NotImplementedError, RuntimeError) as error:
        print(f"torch has no gradient of {case}: {error}", file=sys.stderr)
        return None


def main(shard: int, of: int, names: list[str]) -> None:
    warnings.filterwarnings("ignore")
    rows = [
        (family, row)
        for family, some in FAMILIES.items()
        for row in some
        if family not in LOOPS and (not names or row.name in names)
    ]
    for family, row in rows[shard::of]:
        try:
            with Context(DEVICE="CUDA"):
                count, problems = problems_of(row)
        except DeviceError:
            raise
        except Exception as error:
            count, problems = 0, {"it": f"{type(error).__name__}: {error}"}
        line = {"family": family, "row": row.name, "cases": count, "problems": problems}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])

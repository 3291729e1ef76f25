"""PyTorch's own operator samples: names, values and gradients, at most two samples of each.

`python -m tools.opinfo` runs more of them, and says what is wrong with each.
"""

from typing import Any

import pytest

pytestmark = [pytest.mark.peers("torch"), pytest.mark.long]

PARTS = 8


@pytest.fixture(scope="module")
def database() -> list[Any]:
    from tests.opinfo.samples import op_database

    return op_database()


def test_names(database: list[Any]):
    from tests.opinfo.samples import named

    names = {op.name for op in database}
    assert sum(named(name) is not None for name in names) >= 450


@pytest.mark.parametrize("part", range(PARTS))
def test_values_and_gradients(database: list[Any], part: int):
    from tests.opinfo.judge import judge
    from tests.opinfo.samples import function_of

    verdicts = [
        (op.name, words, verdict)
        for op in database[part::PARTS]
        if function_of(op) is not None
        for words, verdict in judge(op, 2)
    ]
    values = [v.values for _, _, v in verdicts]
    slopes = [v.gradients for _, _, v in verdicts if v.gradients is not None]
    wrong = [(name, words, v) for name, words, v in verdicts if v.values or v.gradients]
    assert values.count("") >= 0.97 * len(values), wrong
    assert slopes.count("") >= 0.97 * len(slopes), wrong

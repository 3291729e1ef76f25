"""CHECK=nan names the op, the element and the line that made a NaN or an infinity."""

import pytest

from weft import Context, NotFinite, Tensor, jit


def rows(*values):
    return Tensor([list(map(float, row)) for row in values]).realize()


CASES = {
    "log of zero": (lambda x: (x - 1).log(), "LOG made an infinity", (0, 0)),
    "log of less": (lambda x: (x - 3).log(), "LOG made a NaN", (0, 0)),
    "root of less": (lambda x: (x - 5).sqrt(), "SQRT made a NaN", (0, 0)),
    "division by zero": (lambda x: 1 / (x - 4), "DIV made an infinity", (1, 1)),
    "zero by zero": (lambda x: (x - 2) / (x - 2), "DIV made a NaN", (0, 1)),
    "large exponent": (lambda x: (x * 40).exp(), "EXP made an infinity", (1, 0)),
    "product that overflows": (lambda x: (x * 1e30) * (x * 1e30), "MUL made an infinity", (0, 0)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("jitted", [False, True])
def test_the_op_and_the_line_are_named(case, jitted):
    compute, message, element = CASES[case]

    def step(x):
        y = x * 1.0
        return (compute(y) + 1).sum()

    run = jit(step) if jitted else step
    x = rows((1, 2), (3, 4))
    with Context(CHECK="nan"), pytest.raises(NotFinite) as error:
        for _ in range(3):
            run(x).realize()
    text = str(error.value)
    assert message in text and f"element {element}" in text and "test_finite.py" in text


def test_infinities_that_a_program_wrote_are_left_alone():
    mask = rows((0, float("-inf")), (0, 0))
    with Context(CHECK="nan"):
        scores = (rows((1, 2), (3, 4)) + mask).softmax(-1)
        assert scores.numpy()[0].tolist() == [1.0, 0.0]


def test_a_nan_that_was_there_is_not_a_finding():
    with Context(CHECK="nan"):
        assert str((rows((float("nan"), 1)) + 1).numpy()[0, 0]) == "nan"


def test_what_was_overwritten_is_judged_by_what_it_held():
    x = rows((1, 0))
    with Context(CHECK="nan"), pytest.raises(NotFinite, match="LOG made an infinity"):
        x.assign(x.log()).realize()


def test_off_a_nan_is_a_value():
    assert str((rows((0,)) / 0).numpy()[0, 0]) == "nan"

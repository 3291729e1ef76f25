"""A sample of `fuzz.api`, and proof that it can fail."""

from importlib import import_module

import pytest

from fuzz.api import check, main, make_call, try_difference
from fuzz.api_calls import MAKERS
from fuzz.api_draw import Call

pytestmark = pytest.mark.peers("torch")


@pytest.mark.parametrize(("device", "count"), [("PYTHON", 300), ("CPU", 40)])
def test_calls_agree_with_torch(device: str, count: int, seed: int):
    assert check(seed, count, device) == {}


def test_a_case_is_a_function_of_its_seed():
    first, second = make_call(5, 17), make_call(5, 17)
    assert (first.name, first.text) == (second.name, second.text)
    assert [a.tobytes() for a in first.arrays] == [a.tobytes() for a in second.arrays]


def test_every_maker_is_drawn():
    names = {make_call(0, number).name for number in range(2000)}
    assert {"sum", "conv2d", "getitem", "interpolate", "index_put"} <= names
    assert len(MAKERS) > 150


ARRAY = [import_module("numpy").array([1.0, 2.0], "float32")]


@pytest.mark.parametrize(
    ("ours", "problem"),
    [
        (lambda x: x * 2, None),
        (lambda x: x * 3, "[3.0, 6.0], not [2.0, 4.0]"),
        (lambda x: (x * 2).double(), "float64 (2,), not float32 (2,)"),
        (lambda x: x.reshape(3), "ShapeError: reshape: 2 elements cannot become (3,)"),
        (lambda x: (x * 2).detach(), "gradient 0: [0.0, 0.0]"),
        (lambda x: (x, x), "2 outputs, not 1"),
    ],
)
def test_differences_are_seen(ours: object, problem: str | None):
    found = try_difference(Call("twice", ours, lambda x: x * 2, ARRAY, "", 0, True))  # type: ignore[arg-type]
    assert (found is None) == (problem is None)
    assert problem is None or str(found).startswith(problem)


def test_main_prints_its_seed(capsys: pytest.CaptureFixture[str]):
    assert main(["--count", "3", "--seed", "9"]) == 0
    assert capsys.readouterr().out.startswith("seed 9 on PYTHON\n")

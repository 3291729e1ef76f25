"""The parts of a message: columns, blocks that are left out, and nearest names."""

import pytest

from weft.support.message import align_columns, nearest, render_message
from weft.support.source_line import NOWHERE, FixedLine


def test_only_what():
    assert render_message("sum: no axis 3", NOWHERE) == "sum: no axis 3"


def test_a_location_without_text():
    assert render_message("what", FixedLine("a.py", 3)) == "what\n\n  at a.py:3"


def test_lines_of_source_keep_their_indentation():
    location = FixedLine("a.py", 3, "f(\n    x,\n)")
    assert render_message("what", location) == "what\n\n  at a.py:3\n    f(\n        x,\n    )"


def test_rule_and_fix_may_have_several_lines():
    text = render_message("what", NOWHERE, rule="one\ntwo", fix="do this\nthen that")
    assert text == "what\n\n  one\n  two\n\n  fix: do this\n       then that"


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], ""),
        ([("a",)], "a"),
        ([("a", "bb"), ("ccc", "d")], "a    bb\nccc  d"),
        ([("a", "b", "c", "d"), ("e",)], "a  b   c   d\ne"),
        ([("a", "", "c"), ("b", "xx")], "a     c\nb  xx"),
    ],
)
def test_columns(rows, text):
    assert align_columns(rows) == text


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("DBUG", "DEBUG"),
        ("debug", "DEBUG"),
        ("DEUBG", "DEBUG"),
        ("THREAD", "THREADS"),
        ("XYZZY", None),
        ("", None),
    ],
)
def test_nearest(name: str, found: str | None):
    assert nearest(name, ["DEBUG", "THREADS", "NOOPT"]) == found


def test_nearest_of_nothing():
    assert nearest("DEBUG", []) is None


def test_long_names_have_no_nearest_one():
    names = ["a" * 50_000 + str(number) for number in range(1000)]
    assert nearest("a" * 50_000, names) is None
    assert nearest("flaot", ["float", *names]) == "float"

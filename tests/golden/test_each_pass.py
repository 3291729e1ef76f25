"""What each pass changes, on a program that gives it something to do, as text beside this file."""

import difflib

import pytest

from tests.golden.each_pass_programs import FOLDER, PROGRAMS, text
from weft.codegen.phases import CODEGEN
from weft.schedule.phases import SCHEDULE

AGAIN = "python -m tests.golden.each_pass_programs writes the files anew"


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_pass_changes(name: str):
    expected, found = (FOLDER / f"{name}.txt").read_text(), text(name)
    assert found, f"{name} changes nothing"
    if expected != found:
        lines = difflib.unified_diff(
            expected.splitlines(), found.splitlines(), "golden", "now", lineterm="", n=1
        )
        pytest.fail("\n".join([*list(lines)[:60], AGAIN]))


def test_every_pass_has_a_program_and_a_file():
    passes = [step.name for step in (*SCHEDULE.passes, *CODEGEN.passes)]
    assert list(PROGRAMS) == passes
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(passes)

"""What each pass makes of a dozen small programs, as text that is kept beside this file."""

import difflib

import pytest

from tests.golden.pass_programs import FOLDER, PROGRAMS, TARGET, graph_of, texts
from weft.codegen.context import CodegenContext
from weft.codegen.phases import CODEGEN
from weft.engine.resume import STEPS, resume
from weft.ir.text import dump, parse
from weft.ir.uop import UOp
from weft.rewrite.phase import run_phase
from weft.schedule.schedule import make_schedule

AGAIN = "python -m tests.golden.pass_programs writes the files anew"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_after_each_pass(name: str):
    expected, found = (FOLDER / f"{name}.txt").read_text(), texts(name)
    if expected != found:
        lines = difflib.unified_diff(
            expected.splitlines(), found.splitlines(), "golden", "now", lineterm="", n=1
        )
        pytest.fail("\n".join([*list(lines)[:60], AGAIN]))


def test_every_file_is_of_a_program():
    assert {path.stem for path in FOLDER.glob("*.txt")} == PROGRAMS.keys()


def forms_of(kernel: UOp) -> list[UOp]:
    """A kernel, and what each pass of codegen makes of it."""
    forms = [kernel]
    run_phase(CODEGEN, kernel, CodegenContext(TARGET), watch=lambda step, root: forms.append(root))
    return forms


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiling_goes_on_from_the_text_of_any_pass(name: str):
    """The text after each pass, read again and taken on, ends where all passes in a row end."""
    for call in make_schedule(graph_of(PROGRAMS[name]), TARGET).kernels.src:
        forms = forms_of(call.arg)
        last = dump(forms[-1])
        first = STEPS.index(CODEGEN.passes[0].name)
        for number, root in enumerate(forms[:-1]):
            read = parse(dump(root))
            assert read is root
            *_, end = resume(read, TARGET, STEPS[first + number], CODEGEN.passes[-1].name)
            assert end.text == last

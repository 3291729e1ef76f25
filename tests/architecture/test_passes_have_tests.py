"""The file of each pass has a test of its own, in the same place below tests/unit."""

import inspect
from pathlib import Path

import pytest

from weft.codegen.phases import CODEGEN
from weft.rewrite.phase import Pass
from weft.schedule.phases import SCHEDULE, SHARD

ROOT = Path(__file__).resolve().parents[2]
PASSES = (*SHARD.passes, *SCHEDULE.passes, *CODEGEN.passes)
# Passes whose file has the name of what they make: its test lists what is fused.
OTHER_NAMES = {"schedule/fuse/fuse_in_order.py": "schedule/fuse/test_fuse.py"}


def path_of_test(step: Pass) -> Path:
    """Where the test of a pass is."""
    file = Path(inspect.getfile(inspect.unwrap(step.run))).relative_to(ROOT / "weft")
    other = OTHER_NAMES.get(file.as_posix())
    return Path(other) if other else file.with_name(f"test_{file.name}")


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.name)
def test_a_pass_has_a_test_where_its_name_says(step: Pass):
    path = ROOT / "tests" / "unit" / path_of_test(step)
    assert path.is_file(), f"the pass {step.name} has no test {path.relative_to(ROOT)}"


def test_every_other_name_is_that_of_a_pass():
    files = {inspect.getfile(inspect.unwrap(step.run)) for step in PASSES}
    for name in OTHER_NAMES:
        assert str(ROOT / "weft" / name) in files

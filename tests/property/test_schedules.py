"""A sample of `fuzz.schedules`, by the cost model and with random decisions."""

import pytest

from fuzz import schedules
from fuzz.schedules import Program, check, main
from weft.schedule.fuse import fuse_in_order


@pytest.mark.parametrize("flag", [[], ["--random"]])
def test_random_programs_keep_their_values(flag, seed, capsys, monkeypatch):
    monkeypatch.setattr(fuse_in_order, "Decisions", fuse_in_order.Decisions)  # put back afterwards
    assert main(["--count", "150", "--seed", str(seed), *flag]) == 0
    assert "0 differences" in capsys.readouterr().out


@pytest.mark.parametrize("machine", schedules.MACHINES)
def test_programs_for_a_machine_keep_their_values(machine, seed, capsys, monkeypatch):
    monkeypatch.setattr(fuse_in_order, "Decisions", fuse_in_order.Decisions)  # put back afterwards
    flags = ["--random", "--share", "0.1", "--machine", machine]
    assert main(["--count", "25", "--seed", str(seed), *flags]) == 0
    assert "0 differences" in capsys.readouterr().out


def test_a_wrong_schedule_is_found(monkeypatch):
    monkeypatch.setattr(schedules, "run_schedule", lambda *_: None)
    assert any(check(Program(number)) for number in range(20))

"""The `weft` command: each subcommand prints what it promises."""

import pytest

from weft.cli.main import COMMANDS, main, parser
from weft.engine.devices import KINDS
from weft.support.settings import table


def test_every_command_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--help"])
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)


def test_devices_lists_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    text = capsys.readouterr().out
    assert all(kind in text for kind in KINDS)
    assert "* CPU" in text
    assert "found: CPU:LLVM" in text


def test_settings_lists_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings"]) == 0
    text = capsys.readouterr().out
    assert all(row.name in text for row in table())


def test_explain_finds_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "W101"]) == 0
    assert "ShapeError" in capsys.readouterr().out
    assert main(["explain"]) == 0
    assert "W101  ShapeError" in capsys.readouterr().out


def test_explain_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "ShapError"]) == 1
    assert "ShapeError" in capsys.readouterr().err


def test_demo_learns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--epochs", "6"]) == 0
    text = capsys.readouterr().out
    assert "unseen digits named right" in text
    assert "looks like" in text


def test_tune_runs_a_program(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text("from weft import Tensor\nprint((Tensor([1.0, 2.0]) + 1).tolist())\n")
    assert main(["tune", "--seconds", "1", "--width", "1", str(program)]) == 0
    assert "[2.0, 3.0]" in capsys.readouterr().out

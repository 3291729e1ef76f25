"""The `weft` command: each subcommand prints what it promises."""

import subprocess
import sys

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


def test_tune_finds_the_modules_beside_a_program(
    tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.setattr("sys.argv", [*sys.argv])
    (tmp_path / "beside_the_program.py").write_text("NUMBER = 7\n")
    (tmp_path / "program.py").write_text("import beside_the_program as b\nprint(b.NUMBER)\n")
    assert main(["tune", str(tmp_path / "program.py")]) == 0
    printed = capsys.readouterr()
    assert printed.out == "7\n"
    assert "no kernel was searched" in printed.err


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["tune", "nowhere.py"], 1, "there is no file nowhere.py"),
        (["demo", "--batch", "5000"], 1, "a batch of 5000 from 1500 digits"),
        (["demo", "--epochs", "0"], 2, "expected a number of at least 1, got '0'"),
        (["demo", "--epochs", "many"], 2, "expected a number of at least 1, got 'many'"),
        (["demos"], 2, "choose from"),
        (["tune"], 2, "required: file"),
    ],
)
def test_wrong_arguments_say_what_is_wrong(
    arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = main(arguments)
    except SystemExit as end:
        found = end.code
    assert found == status
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("command", ["devices", "settings", "explain"])
def test_lines_fit_the_terminal(
    command: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names that have no space in them may be longer."""
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([command]) == 0
    for line in capsys.readouterr().out.splitlines():
        assert len(line) <= max(width, 40) or max(map(len, line.split())) > 15, line


def test_the_disk_is_no_missing_device(capsys: pytest.CaptureFixture[str]) -> None:
    main(["devices"])
    (line,) = (each for each in capsys.readouterr().out.splitlines() if "DISK " in each)
    assert "not found" not in line
    assert "DISK:path" in line


def test_a_reader_that_leaves_is_no_error() -> None:
    command = f"{sys.executable} -m weft settings | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("end", "status"), [("sys.exit()", 0), ("sys.exit(3)", 3), ("sys.exit('no')", 1)]
)
def test_tune_outlasts_the_end_of_a_program(
    end: str,
    status: int,
    tmp_path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.setattr("sys.argv", [*sys.argv])
    (tmp_path / "program.py").write_text(f"import sys\n{end}\n")
    assert main(["tune", str(tmp_path / "program.py")]) == status
    assert "no kernel was searched" in capsys.readouterr().err

"""One setting: what the environment may say, and that it is read once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weft.support.errors import ArgumentError
from weft.support.setting import ROWS, read_environment
from weft.support.settings import Context, settings

ROOT = Path(__file__).resolve().parents[3]


def run_python(
    program: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    plain = {name: text for name, text in os.environ.items() if name not in ROWS}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**plain, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )


def test_an_empty_environment_gives_the_defaults():
    assert read_environment({}) == {row.name: row.default for row in ROWS.values()}
    assert read_environment({row.variable: " " for row in ROWS.values()}) == read_environment({})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("DEBUG", "2", 2),
        ("DEBUG", " 3 ", 3),
        ("DEBUG", "true", 1),
        ("DEBUG", "off", 0),
        ("NOOPT", "1", True),
        ("NOOPT", "YES", True),
        ("NOOPT", "on", True),
        ("NOOPT", "True", True),
        ("JIT", "0", False),
        ("JIT", "no", False),
        ("JIT", "Off", False),
        ("JIT", "false", False),
        ("CHECK", "levels", "levels"),
        ("DEVICE", "CUDA:1", "CUDA:1"),
        ("WEFT_CACHE_SIZE_MB", "16", 16),
        ("WEFT_DEFAULT_FLOAT", "float64", "float64"),
    ],
)
def test_good_text(name: str, text: str, value: object):
    read = read_environment({name: text})[name.removeprefix("WEFT_")]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DEBUG", "abc"),
        ("DEBUG", "-1"),
        ("DEBUG", "1.5"),
        ("DEBUG", "1_0"),
        ("DEBUG", "٣"),
        ("NOOPT", "2"),
        ("NOOPT", "maybe"),
        ("CHECK", "all"),
        ("WEFT_DEFAULT_INT", "float32"),
    ],
)
def test_bad_text(name: str, text: str):
    with pytest.raises(ArgumentError, match=f"{name}={text} is not"):
        read_environment({name: text})


def test_names_with_a_prefix_are_not_read_without_it():
    assert read_environment({"CACHE": "0", "CACHE_DIR": "/x"}) == read_environment({})


def test_the_environment_is_read_once():
    program = """
import os
from weft.support.settings import settings
os.environ["DEBUG"] = "5"
assert settings.DEBUG == 5
os.environ["DEBUG"] = "6"
assert settings.DEBUG == 5
"""
    result = run_python(program, DEBUG="4")
    assert result.returncode == 0, result.stderr


def test_a_context_may_be_the_first_use():
    program = """
from weft.support.settings import Context, settings
with Context(NOOPT=1):
    assert (settings.DEBUG, settings.NOOPT) == (4, True)
assert (settings.DEBUG, settings.NOOPT) == (4, False)
"""
    result = run_python(program, DEBUG="4")
    assert result.returncode == 0, result.stderr


def test_a_bad_variable_is_reported_at_first_use_and_every_time():
    program = """
from weft.support.settings import Context, settings
for _ in range(2):
    try:
        settings.NOOPT
    except ValueError as error:
        print(str(error).splitlines()[0])
with Context(DEBUG=1):
    pass
"""
    result = run_python(program, DEBUG="express:*")
    line = "environment: DEBUG=express:* is not a whole number, 0 or more"
    assert result.stdout.splitlines() == [line, line]
    assert f"weft.ArgumentError: {line}" in result.stderr


def test_import_is_light():
    program = """
import sys
weft = sys.modules["weft"] = type(sys)("weft")  # without what its own __init__ brings
weft.__path__ = [sys.argv[1]]
before = set(sys.modules)
import weft.support.cache, weft.support.error_table, weft.support.settings
print(*sorted(set(sys.modules) - before))
"""
    result = run_python(program, str(ROOT / "weft"))
    brought = {name for name in result.stdout.split() if not name.startswith("weft")}
    allowed = {"__future__", "_contextvars", "contextvars", "_struct", "struct"}
    assert result.returncode == 0, result.stderr
    assert brought <= allowed


def test_a_number_that_is_too_great_is_refused():
    result = run_python("import weft; weft.config.THREADS", THREADS="100000")
    assert "THREADS=100000 is not a whole number, 0 to 4096" in result.stderr
    with pytest.raises(ArgumentError, match="THREADS=4097 is not a whole number, 0 to 4096"):
        Context(THREADS=4097)
    with Context(THREADS=4096):
        assert settings.THREADS == 4096

"""The user's line: found through Weft's own frames, resolved late, without holding a frame."""

import _thread
import gc
import linecache
import os
import pickle
import queue
import sys
import weakref
from pathlib import Path

import pytest

from weft.support.source_line import NOWHERE, FixedLine, SourceLine, user_line

# Stands for Weft: code under a file name that begins with <weft is passed over.
WEFT_CODE = """
import contextlib, functools
from weft.support.source_line import user_line
def direct(*anything): return user_line()
def deep(): return (lambda: direct())()
def skipping(): return user_line(skip=1)
def put_into(results): results.put(user_line())
def calls_back(function): return function()
@contextlib.contextmanager
def manager(): yield user_line()
@functools.singledispatch
def dispatched(value): return user_line()
"""


def weft_function(name):
    names = {}
    exec(compile(WEFT_CODE, "<weft test>", "exec"), names)
    return names[name]


def this_line() -> int:
    return sys._getframe(1).f_lineno


def test_the_line_of_the_caller():
    location, line = user_line(), this_line()
    assert (location.line, location.function) == (line, "test_the_line_of_the_caller")
    assert location.text == "location, line = user_line(), this_line()"
    assert os.path.samefile(location.file, __file__)


@pytest.mark.parametrize("name", ["direct", "deep", "skipping"])
def test_weft_frames_are_passed_over(name: str):
    capture = weft_function(name)
    location, line = capture(), this_line()
    assert location.line == line


def test_a_callback_of_the_user_is_innermost():
    calls_back = weft_function("calls_back")
    location = calls_back(lambda: user_line())
    assert location.function.endswith("<lambda>")


def test_through_a_comprehension():
    capture = weft_function("direct")
    (location,) = [capture() for _ in range(1)]
    assert location.text == "(location,) = [capture() for _ in range(1)]"


def test_through_wrappers_of_the_standard_library():
    with weft_function("manager")() as location:
        assert location.text == 'with weft_function("manager")() as location:'
    dispatched = weft_function("dispatched")
    location = dispatched(3)
    assert location.text == "location = dispatched(3)"


def test_an_operator_in_a_long_statement_shows_its_own_line():
    capture = weft_function("direct")
    locations = [
        1,
        capture(),
        3,
    ]
    assert locations[1].text == "capture(),"


def test_a_call_over_several_lines_shows_all_of_them():
    capture = weft_function("direct")
    # fmt: off
    location = capture(
        1,
        2)
    # fmt: on
    assert location.text == "location = capture(\n    1,\n    2)"


def test_a_long_call_is_cut():
    capture = weft_function("direct")
    location = capture(
        1,
        2,
        3,
    )
    assert location.text == "location = capture(\n    1,\n..."


def test_code_without_source():
    names = {"user_line": user_line}
    exec("\n\nlocation = user_line()", names)
    location = names["location"]
    assert (location.file, location.line, location.text) == ("<string>", 3, "")


def test_a_cell_of_a_notebook():
    source = "x = 1\nlocation = user_line()\n"
    linecache.cache["<cell 7>"] = (len(source), None, source.splitlines(True), "<cell 7>")
    try:
        names = {"user_line": user_line}
        exec(compile(source, "<cell 7>", "exec"), names)
        assert (names["location"].file, names["location"].line) == ("<cell 7>", 2)
        assert names["location"].text == "location = user_line()"
    finally:
        del linecache.cache["<cell 7>"]


def test_a_missing_file_has_no_text():
    names = {"user_line": user_line}
    exec(compile("location = user_line()", "/nowhere/gone.py", "exec"), names)
    assert (names["location"].file, names["location"].text) == ("/nowhere/gone.py", "")


def test_file_is_relative_inside_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    names = {"user_line": user_line}
    exec(compile("location = user_line()", str(tmp_path / "sub" / "train.py"), "exec"), names)
    location = names["location"]
    assert location.file == str(tmp_path / "sub" / "train.py")
    monkeypatch.chdir(tmp_path)
    assert location.file == os.path.join("sub", "train.py")
    assert repr(location) == f"<SourceLine {location.file}:1>"


def test_no_frame_is_kept_alive():
    class Precious:
        pass

    def user():
        precious = Precious()
        return user_line(), weakref.ref(precious)

    location, precious = user()
    gc.collect()
    assert precious() is None
    assert isinstance(location, SourceLine)
    kinds = {type(thing).__name__ for thing in gc.get_referents(location)}
    assert "frame" not in kinds


def test_pickle_resolves():
    location = user_line()
    copy = pickle.loads(pickle.dumps(location))
    assert isinstance(copy, FixedLine)
    for name in ("file", "line", "text", "function"):
        assert getattr(copy, name) == getattr(location, name)
    again = pickle.loads(pickle.dumps(copy))
    assert again.text == location.text


def test_no_user_at_all():
    # A bare thread begins in Weft's own function: no frame of it is the user's.
    results: queue.SimpleQueue[SourceLine] = queue.SimpleQueue()
    _thread.start_new_thread(weft_function("put_into"), (results,))
    assert results.get(timeout=60) is NOWHERE


def test_fixed_line():
    location = FixedLine("kernel.ir", 12, "%3 = ADD(%1, %2)")
    assert (location.file, location.line, location.text, location.function) == (
        "kernel.ir",
        12,
        "%3 = ADD(%1, %2)",
        "",
    )

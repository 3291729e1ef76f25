"""What a user reads who gets a setting wrong, word for word."""

from collections.abc import Callable

import pytest

from weft.support.errors import UsageError
from weft.support.setting import read_environment
from weft.support.settings import Context, settings


def message(function: Callable[[], object]) -> str:
    """Return the message without the location, which is this file."""
    with pytest.raises(UsageError) as failure:
        function()
    error = failure.value
    blocks = str(error).split("\n\n")
    return "\n\n".join(block for block in blocks if not block.startswith("  at "))


BAD_NUMBER = """\
environment: DEBUG=abc is not a whole number, 0 or more

  variable  DEBUG   is 'abc'
  setting   DEBUG   How much to print of what is compiled and run; 0 is nothing.

  DEBUG needs a whole number, 0 or more

  fix: set DEBUG=0, or unset DEBUG where it belongs to another program"""

BAD_CHOICE = """\
environment: WEFT_DEFAULT_FLOAT=flaot64 is not one of float16, bfloat16, float32, float64

  variable  WEFT_DEFAULT_FLOAT   is 'flaot64'
  setting   DEFAULT_FLOAT        The dtype of a new tensor of Python floats.

  WEFT_DEFAULT_FLOAT needs one of float16, bfloat16, float32, float64

  fix: set WEFT_DEFAULT_FLOAT=float64, or unset WEFT_DEFAULT_FLOAT where it belongs to another \
program"""

FOREIGN_CHECK = """\
environment: CHECK=1 is not one of levels, jit, memory, nan, index

  variable  CHECK   is '1'
  setting   CHECK   Look for bugs: compare phases (levels), jit with eager; guard memory; \
find nan, indices.

  CHECK needs one of levels, jit, memory, nan, index

  fix: unset CHECK where it belongs to another program"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("DEBUG", "abc", BAD_NUMBER),
        ("WEFT_DEFAULT_FLOAT", "flaot64", BAD_CHOICE),
        ("CHECK", "1", FOREIGN_CHECK),
    ],
)
def test_environment(name: str, text: str, expected: str):
    assert message(lambda: read_environment({name: text})) == expected


MISSPELT = """\
Context: no setting is called DBUG

  fix: the nearest one is DEBUG: Context(DEBUG=1)"""


def test_a_misspelt_setting():
    assert message(lambda: Context(DBUG=1)) == MISSPELT


UNKNOWN = """\
Context: no setting is called XYZZY

  the settings are DEBUG, SPEC, NOOPT, JOIN, FUSE_PRODUCTS, CHECK, TRACE, VIZ,
  VIZ_MB, CACHE, CACHE_DIR, CACHE_SIZE_MB, DATA, THREADS, DEFAULT_FLOAT, DEFAULT_INT,
  AUTOCAST, DEVICE, TARGET, BEAM, KERNEL_SECONDS, BEAM_SECONDS, JIT"""


def test_an_unknown_setting():
    assert message(lambda: Context(XYZZY=1)) == UNKNOWN


def test_a_misspelt_attribute():
    expected = (
        "settings: no setting is called DBUG\n\n  fix: the nearest one is DEBUG: settings.DEBUG"
    )
    assert message(lambda: settings.DBUG) == expected


BAD_VALUE = """\
Context: CHECK='levles' is not one of levels, jit, memory, nan, index

  setting  CHECK   Look for bugs: compare phases (levels), jit with eager; guard memory; \
find nan, indices.

  CHECK needs one of levels, jit, memory, nan, index

  fix: the nearest one is levels: Context(CHECK='levels')"""


def test_a_bad_value():
    assert message(lambda: Context(CHECK="levles")) == BAD_VALUE


ASSIGNED = """\
settings.DEBUG: a setting cannot be assigned

  a setting changes in a scope, or for the whole process by the environment

  fix: with Context(DEBUG=2): ..."""


def test_an_assignment():
    assert message(lambda: setattr(settings, "DEBUG", 2)) == ASSIGNED


def test_the_location_is_the_users_line():
    with pytest.raises(UsageError) as failure:
        Context(DBUG=1)
    assert failure.value.where.text == "Context(DBUG=1)"

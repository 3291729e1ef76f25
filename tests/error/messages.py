"""How the tests of messages read one: without the location, which is the test's own line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from weft import UsageError

Messages = dict[str, tuple[Callable[[], object], str]]


def message_of(function: Callable[[], object], file: str) -> str:
    with pytest.raises(UsageError) as failure:
        function()
    error = failure.value
    assert Path(error.where.file).name == Path(file).name, "the location is not the user's line"
    blocks = f"{type(error).__name__}: {error}".split("\n\n")
    return "\n\n".join(block for block in blocks if not block.startswith("  at "))

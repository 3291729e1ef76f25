"""The report file of an internal error: all that a maintainer needs to start looking.

`InternalError` imports this module when it is printed for the first time; nothing else does.
Writing never raises, because it happens while another error is on its way.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from weft.support.errors import InternalError


def try_write_report(error: InternalError) -> str | None:
    """Write the report to a new temporary file and return its path, or None where that fails."""
    try:
        import tempfile

        handle, path = tempfile.mkstemp(prefix="weft-report-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(report_text(error))
    except Exception:
        return None
    return path


def report_text(error: InternalError) -> str:
    """Return the sections of the report, each under its title."""
    import traceback

    sections = {
        "message": str(error),
        "machine": _machine(),
        "settings": _changed_settings(),
        "traceback": "".join(traceback.format_exception(error, chain=True)),
        "ir": "\n".join(error.ir_lines),
    }
    return "\n\n".join(f"== {title}\n{text}" for title, text in sections.items() if text) + "\n"


def _machine() -> str:
    import platform

    return f"Python {sys.version.split()[0]} on {platform.platform()}"


def _changed_settings() -> str:
    # Settings raise errors, so this module, which errors load late, is where the two can meet.
    from weft.support.settings import settings, table

    values = ((row.name, row.default, getattr(settings, row.name)) for row in table())
    return "\n".join(f"{name}={value}" for name, default, value in values if value != default)

"""`import weft` is light: it brings the standard library and itself, and nothing else.

NumPy and LLVM take longer to import than a small program takes to run, so the module that needs
one imports it when it is first used.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
before = set(sys.modules)
import {module}
brought = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(brought - sys.stdlib_module_names - {{"weft"}}))
"""


def third_party_modules(module: str) -> list[str]:
    """Return the top-level modules outside the standard library that an import brings."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = PROGRAM.format(module=module)
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_import_weft_is_light():
    found = third_party_modules("weft")
    assert not found, f"`import weft` imports {found}: import them where they are used"


def test_checker_can_fail():
    assert "pytest" in third_party_modules("pytest")

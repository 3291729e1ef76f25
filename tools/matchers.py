"""Write the decision functions of the large rule sets to `weft/rewrite/shipped.py`.

    python tools/matchers.py            write the file
    python tools/matchers.py --check    fail if it is not what the rules say

A process that finds its disk cache empty would generate them, which takes tens of thousands of
calls. Code that no longer fits its rules is not used, so that a rule can be changed and tried;
`tests/unit/rewrite/test_shipped.py` runs the check.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from weft.ir.ops import COUNT
from weft.rewrite.ruleset import SHIPPED
from weft.rules.fold import FOLD_RULES
from weft.rules.memory import KERNEL_RULES
from weft.rules.simplify import SIMPLIFY
from weft.schedule.normalize import NORMALIZE

SETS = {rules.name: rules for rules in (FOLD_RULES, KERNEL_RULES, NORMALIZE, SIMPLIFY)}
FILE = Path(__file__).resolve().parents[1] / "weft" / "rewrite" / "shipped.py"
HEAD = '"""Decision functions of rule sets, written by tools/matchers.py from the rules."""'


def lines() -> Iterator[str]:
    """The text of the file, in pieces."""
    keys = {}
    yield HEAD
    for name, rules in SETS.items():
        left_out = rules.take_over([None] * COUNT)
        keys[name] = zlib.crc32(rules.content(False, left_out).encode())
        yield "\n\n" + rules.source(False, left_out).replace("def table(", f"def {name}(", 1)
    yield f"\n\nKEYS = {keys}"
    yield f"TABLES = {{{', '.join(f'{name!r}: {name}' for name in SETS)}}}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="only say whether it is stale")
    options = parser.parse_args()
    assert SETS.keys() == set(SHIPPED)
    text = "\n".join(lines())
    if FILE.exists() and FILE.read_text(encoding="utf-8") == text:
        return 0
    if options.check:
        print("weft/rewrite/shipped.py is stale: run python tools/matchers.py")
        return 1
    FILE.write_text(text, encoding="utf-8")
    print("wrote weft/rewrite/shipped.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Write docs/reference/onnx.md: which operators are there, and how they do in the backend suite.

    python tools/onnx_page.py

The numbers are those of the test run: every case passes but those that tests/onnx/not_passed.txt
lists, and the tests hold that list to the truth. A test holds the page to the list.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "onnx.md"

_TOP = """# ONNX operators

<!-- Written by tools/onnx_page.py from the table of operators and the backend suite. -->

[Models in ONNX files](../howto-onnx.md) are loaded by `weft.onnx.load`. This page lists the
operators, the opset from which each form of them is, and the cases of the backend suite of onnx
{version} that use them.

**{passed} of {total} cases pass.**

| kind | cases | passed |
| --- | --- | --- |
{kinds}

## Cases that do not pass

| cases | reason |
| --- | --- |
{reasons}
"""

_HEAD = "| operator | from opset | cases | passed |\n| --- | --- | --- | --- |\n"
_DOMAINS = {
    "": "The default domain",
    "ai.onnx.ml": "ai.onnx.ml",
    "com.microsoft": "com.microsoft",
    "ai.onnx.preview": "ai.onnx.preview",
    "ai.onnx.preview.training": "ai.onnx.preview.training",
}


def page() -> str:
    """The text of the page."""
    import onnx

    from tests.onnx.suite import cases, operators_of
    from tests.onnx.test_backend_suite import not_passed
    from weft.onnx.table import rows

    listed = not_passed()
    total: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    failed_kinds: Counter[str] = Counter()
    for name, case in cases().items():
        kind = name.partition("/")[0]
        kinds[kind] += 1
        failed_kinds[kind] += name in listed
        for operator in operators_of(case):
            total[operator] += 1
            passed[operator] += name not in listed
    reasons = Counter(listed.values())
    text = _TOP.format(
        version=onnx.__version__.rpartition(".")[0],
        passed=len(cases()) - len(listed),
        total=len(cases()),
        kinds="\n".join(
            f"| {kind} | {count} | {count - failed_kinds[kind]} |" for kind, count in kinds.items()
        ),
        reasons="\n".join(f"| {count} | {reason} |" for reason, count in reasons.most_common()),
    )
    for domain, title in _DOMAINS.items():
        text += f"\n## {title}\n\n{_HEAD}"
        since: dict[str, list[int]] = {}
        for row in rows():
            if row.domain == domain:
                since.setdefault(row.name, []).append(row.since)
        for name, versions in sorted(since.items()):
            key = f"{domain}.{name}" if domain else name
            opsets = ", ".join(str(version) for version in sorted(set(versions)))
            counts = f"{total[key]} | {passed[key]}" if total[key] else " | "
            text += f"| {name} | {opsets} | {counts} |\n"
    return text


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")

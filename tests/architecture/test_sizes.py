"""A page fits in a head: a Python file past 500 lines has two subjects."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("weft", "tests", "tools", "fuzz", "bench", "docs", "examples")
LIMIT = 500

# Files with a limit of their own: path -> (lines, why).
OWN_LIMITS: dict[str, tuple[int, str]] = {
    "docs/tour/tiny_weft.py": (400, "the tour is read in one sitting"),
}


def line_counts() -> dict[str, int]:
    return {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def find_long(counts: dict[str, int], own_limits: dict[str, tuple[int, str]]) -> list[str]:
    """Return one message for each file that is longer than its limit."""
    messages = []
    for path, count in counts.items():
        limit, why = own_limits.get(path, (LIMIT, "a file past it has two subjects"))
        if count > limit:
            messages.append(
                f"{path} has {count} lines, {count - limit} past {limit} ({why}): split it, "
                "or give it a limit and a reason in OWN_LIMITS"
            )
    return messages


def test_files_are_short():
    messages = find_long(line_counts(), OWN_LIMITS)
    assert not messages, "\n" + "\n".join(messages)


def test_every_own_limit_names_a_file_and_a_reason():
    for path, (_, why) in OWN_LIMITS.items():
        assert (ROOT / path).is_file(), f"OWN_LIMITS names {path}, which does not exist"
        assert why, f"OWN_LIMITS gives no reason for {path}"


def test_checker_can_fail():
    counts = {"weft/a.py": LIMIT, "weft/b.py": LIMIT + 1, "weft/c.py": 900, "weft/d.py": 900}
    own_limits = {"weft/c.py": (899, "one table"), "weft/d.py": (900, "one table")}
    b, c = find_long(counts, own_limits)
    assert b.startswith("weft/b.py has 501 lines, 1 past 500")
    assert c.startswith("weft/c.py has 900 lines, 1 past 899 (one table)")

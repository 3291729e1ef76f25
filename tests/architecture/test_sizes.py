"""A page fits in a head: files past 500 lines and folders past 25 files have two subjects."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WEFT = ROOT / "weft"
FOLDERS = ("weft", "tests", "tools", "fuzz", "bench", "docs", "examples")
LIMIT = 500
FILES_IN_A_FOLDER = 25

# Files with a limit of their own: path -> (lines, why).
OWN_LIMITS: dict[str, tuple[int, str]] = {
    "docs/tour/tiny_weft.py": (400, "the tour is read in one sitting"),
    "weft/rewrite/shipped.py": (2500, "tools/matchers.py writes it, and nobody reads it"),
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


def file_counts() -> dict[str, int]:
    folders = [WEFT, *(path for path in sorted(WEFT.rglob("*")) if path.is_dir())]
    return {
        folder.relative_to(ROOT).as_posix(): len(list(folder.glob("*.py"))) for folder in folders
    }


def find_crowded(counts: dict[str, int]) -> list[str]:
    """Return one message for each folder whose listing is not a table of contents any more."""
    return [
        f"{folder} has {count} files: group them by subject, at most {FILES_IN_A_FOLDER} in one"
        for folder, count in counts.items()
        if count > FILES_IN_A_FOLDER
    ]


def test_a_listing_reads_like_a_table_of_contents():
    messages = find_crowded(file_counts())
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


def test_crowded_folders_are_found():
    assert find_crowded({"weft/a": FILES_IN_A_FOLDER}) == []
    (message,) = find_crowded({"weft/a": FILES_IN_A_FOLDER + 1})
    assert message.startswith("weft/a has 26 files")

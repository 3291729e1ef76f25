"""The folder and key of one user: what is refused, and what another user cannot do."""

import marshal
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.support import private_folder
from weft.support.cache import DiskCache, forget_memory
from weft.support.cache_files import pack
from weft.support.private_folder import KEY_BYTES, try_private_folder
from weft.support.settings import Context

ROOT = Path(__file__).resolve().parents[3]
NOBODY = 65534

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of POSIX")
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be two users"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """This user's folder in a cache of its own; not there yet."""
    forget_memory()
    with Context(CACHE=1, CACHE_SIZE_MB=1024, CACHE_DIR=str(tmp_path / "cache")):
        yield tmp_path / "cache" / f"user-{os.geteuid()}"
    forget_memory()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def given_to(user: int, path: Path) -> None:
    for each in [path, *path.rglob("*")]:
        os.chown(each, user, user, follow_symlinks=False)


def test_folders_and_key_are_open_to_nobody_else(folder: Path):
    DiskCache("binary", 1).put("key", b"value")
    assert [mode(folder.parent), mode(folder), mode(folder / "key")] == [0o700, 0o700, 0o600]
    assert len((folder / "key").read_bytes()) == KEY_BYTES
    assert sorted(item.name for item in folder.iterdir()) == ["binary-v1", "key"]


def test_reading_makes_no_folder(folder: Path):
    assert DiskCache("binary", 1).get("key") is None
    assert not folder.parent.exists()


def test_a_folder_that_others_share_has_a_folder_for_each(tmp_path: Path):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    shared.chmod(0o1777)
    found = try_private_folder(str(shared))
    assert found is not None
    assert mode(shared) == 0o777
    assert mode(Path(found.path)) == 0o700


def make_movable(folder: Path) -> None:
    folder.parent.chmod(0o777)
    folder.mkdir(mode=0o700)


def make_movable_far_above(folder: Path) -> None:
    folder.parent.parent.chmod(0o777)
    folder.mkdir(mode=0o700)


def make_guest(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder.parent, NOBODY, NOBODY)


def make_open(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o750)


def make_link(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "elsewhere")


def make_file(folder: Path) -> None:
    folder.write_text("something")


def make_foreign(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    given_to(NOBODY, folder)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (make_open, "open to others .mode 0750."),
        (make_movable, "where everybody can move it"),
        (make_movable_far_above, "where everybody can move it"),
        pytest.param(make_guest, f"which belongs to the user {NOBODY}", marks=as_root),
        (make_link, "is a link or a file"),
        (make_file, "is a link or a file"),
        pytest.param(make_foreign, f"belongs to the user {NOBODY}", marks=as_root),
    ],
)
def test_what_is_refused_says_so_once_and_stays_untouched(folder: Path, make, reason: str):
    folder.parent.mkdir(mode=0o700)
    make(folder)
    before = sorted(folder.parent.rglob("*"))
    store = DiskCache("binary", 1)
    with pytest.warns(RuntimeWarning, match=f"cache is not used: .*{reason}.*WEFT_CACHE_DIR"):
        store.put("key", b"value")
    with warnings.catch_warnings(record=True) as again:
        warnings.simplefilter("always")
        store.put("key 2", b"value")
        assert store.get("key") == b"value"  # of the memory
        forget_memory()
        assert store.get("key") is None
    assert not again
    assert sorted(folder.parent.rglob("*")) == before


def spoil_mode(key: Path) -> None:
    key.chmod(0o644)


def spoil_length(key: Path) -> None:
    key.write_bytes(bytes(KEY_BYTES - 1))


def spoil_link(key: Path) -> None:
    key.rename(key.parent / "other")
    key.symlink_to("other")


def spoil_owner(key: Path) -> None:
    os.chown(key, NOBODY, NOBODY)


@pytest.mark.parametrize(
    "spoil", [spoil_mode, spoil_length, spoil_link, pytest.param(spoil_owner, marks=as_root)]
)
def test_a_key_that_others_may_know_is_made_anew(folder: Path, spoil):
    store = DiskCache("binary", 1)
    store.put("key", b"value")
    before = (folder / "key").read_bytes()
    spoil(folder / "key")
    forget_memory()
    private_folder._keys.clear()  # as in the next process
    assert store.get("key") is None
    after = (folder / "key").read_bytes()
    assert after != before and len(after) == KEY_BYTES
    assert mode(folder / "key") == 0o600 and not (folder / "key").is_symlink()
    store.put("key", b"again")
    forget_memory()
    assert store.get("key") == b"again"


def test_an_entry_that_was_put_there_by_another_way_is_not_believed(folder: Path):
    store = DiskCache("binary", 1)
    store.put("key", b"value")
    digest = store._digest("key")
    path = Path(store._path(str(folder), digest))
    for key in (b"", bytes(KEY_BYTES), os.urandom(KEY_BYTES)):
        path.write_bytes(pack(digest, b"evil", key))
        forget_memory()
        assert store.get("key") is None
        assert not path.exists()


RACE = """
import os, sys, time
from weft.support.private_folder import try_private_folder
while time.time() < float(sys.argv[2]):
    pass
print(try_private_folder(sys.argv[1]).key.hex())
"""


def run_python(program: str, *arguments: str, **variables: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_that_start_together_have_one_key(tmp_path: Path):
    import time

    at = str(time.time() + 1)
    running = [run_python(RACE, str(tmp_path / "cache"), at) for _ in range(6)]
    keys = {process.communicate(timeout=60)[0] for process in running}
    assert len(keys) == 1 and len(keys.pop().strip()) == 2 * KEY_BYTES
    (own,) = (tmp_path / "cache").iterdir()
    assert [item.name for item in own.iterdir()] == ["key"]


INTRUDER = """
import os, sys
cache, own = sys.argv[1:]
os.setgid(65534)
os.setuid(65534)
def attempt(what, *arguments):
    try:
        what(*arguments)
    except OSError:
        return
    print(what.__name__, *arguments)
paths = [own, f"{own}/key", f"{own}/binary-v1"]
for path in paths:
    attempt(os.listdir, path)
    attempt(os.open, path, os.O_RDONLY)
    attempt(os.open, path, os.O_WRONLY)
    attempt(os.symlink, "/etc/passwd", f"{path}/x")
attempt(os.link, f"{own}/key", f"{cache}/key")
attempt(os.chmod, own, 0o777)
"""


@as_root
def test_another_user_sees_and_changes_nothing(folder: Path):
    DiskCache("binary", 1).put("key", b"value")
    for above in folder.parent.parents:  # pytest's folders are closed, too
        if mode(above) == 0o700:
            above.chmod(0o711)
    folder.parent.chmod(0o1777)
    process = run_python(INTRUDER, str(folder.parent), str(folder))
    assert process.communicate(timeout=60) == ("", "")


# Rules of its own: what decides on those of Weft is shipped, and that of others is on disk.
WORK = """
from weft import Tensor
from weft.ir.build import range_
from weft.rewrite.driver import rewrite
from weft.rewrite.pattern import any_
from weft.rewrite.rule import rule
from weft.rewrite.ruleset import rules
print(((Tensor([1.0, 2.0]) + 1) * 3).tolist())
try:
    rewrite(range_(0, 16) + 0, rules("own", rule("add-zero", any_("x") + 0, any_("x"))))
except Exception as error:
    print("own rules failed", error)
"""


def planted(tmp_path: Path, marker: Path) -> Path:
    """What another user can make: a cache in which everything that is run is code of theirs."""
    theirs = tmp_path / "theirs"
    work_in(theirs)
    (own,) = theirs.iterdir()
    key = (own / "key").read_bytes()
    evil = compile(f"open({str(marker)!r}, 'w')\nTABLE = {{}}", "evil", "exec")
    matchers = list(own.glob("matchers-*/?/?/*.weft"))
    assert matchers
    for path in matchers:
        digest = bytes.fromhex(path.parts[-3] + path.parts[-2] + path.stem)
        path.write_bytes(pack(digest, marshal.dumps(evil), key))
    return own


def work_in(cache: Path) -> tuple[str, str]:
    process = run_python(WORK, WEFT_CACHE_DIR=str(cache))
    result, said = process.communicate(timeout=60)
    assert result == "[6.0, 9.0]\n", said
    return result, said


@as_root
@pytest.mark.parametrize("when", ["before", "after"])
def test_code_that_another_user_planted_is_not_run(tmp_path: Path, folder: Path, when: str):
    """In a folder that all may write to, before and after this user worked there."""
    marker = tmp_path / "marker"
    own = planted(tmp_path, marker)
    folder.parent.mkdir()
    folder.parent.chmod(0o777)
    if when == "after":
        work_in(folder.parent)
        folder.rename(tmp_path / "moved away")
    given_to(NOBODY, own)
    own.rename(folder)
    _, said = work_in(folder.parent)
    assert "the disk cache is not used" in said
    assert not marker.exists()


def test_code_that_is_not_authenticated_is_not_run(tmp_path: Path, folder: Path):
    """Files that were brought into this user's own folder, by a backup for example."""
    marker = tmp_path / "marker"
    own = planted(tmp_path, marker)
    work_in(folder.parent)
    (planted_code,) = own.glob("matchers-*")
    shutil.rmtree(folder / planted_code.name)
    shutil.copytree(planted_code, folder / planted_code.name)
    _, said = work_in(folder.parent)
    assert said == ""
    assert not marker.exists()


def test_the_planted_code_would_run(tmp_path: Path):
    """The tests above can fail: in a folder that is believed, it is run."""
    marker = tmp_path / "marker"
    own = planted(tmp_path, marker)
    run_python(WORK, WEFT_CACHE_DIR=str(own.parent)).communicate(timeout=60)
    assert marker.exists()

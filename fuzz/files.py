"""Damaged and malicious files through every reader: an error that a user can read, or a value.

    python -m fuzz.files --count 5000 --seed 1

A right file of each format is mutated: bits, bytes, numbers, pieces, the end. A reader may refuse
it with a `UsageError`, or read it; nothing else. Every tensor that it gives is read to the last
byte. An audit hook sees whether anything is run, and the process has a limit on its memory.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fuzz.file_samples import EVIL, evil, samples, torch_legacy, torch_zip
from weft.io.archives import tar_extract
from weft.io.gguf import gguf_load
from weft.io.numpy_files import npy_load, npz_load
from weft.io.safetensors import safe_load
from weft.io.torch_files import torch_load
from weft.io.training_state import load_training_state
from weft.ir.uop import sweep
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
    "training state": lambda path: load_training_state(path, random=False),
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
MEMORY_LIMIT = 6 << 30
_MOST_REPLAYED = 1 << 20  # elements that are read of one tensor

_seen: list[str] = []
_is_watching = False


def _hook(event: str, _: object) -> None:
    if _is_watching and event in FORBIDDEN:
        _seen.append(event)


@contextlib.contextmanager
def watched() -> Iterator[list[str]]:
    """What is run inside, by the names that Python's audit gives it."""
    global _is_watching
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
        place = source.randrange(len(made))
        # Headers are where it hurts.
        if source.random() < 0.6:
            place = source.randrange(min(len(made), 400))
        kind = source.randrange(8)
        if kind == 0:
            made[place] ^= 1 << source.randrange(8)
        elif kind == 1:
            made[place] = source.randrange(256)
        elif kind == 2:
            size = source.choice((1, 2, 4, 8))
            value = source.choice(EXTREMES) & (1 << 8 * size) - 1
            made[place : place + size] = struct.pack("<Q", value)[:size]
        elif kind == 3:
            del made[place:]
        elif kind == 4:
            del made[place : place + source.randrange(1, 20)]
        elif kind == 5:
            made[place:place] = source.randbytes(source.randrange(1, 20))
        elif kind == 6:
            start = source.randrange(len(made))
            made[place:place] = made[start : start + source.randrange(1, 60)]
        else:
            made[place : place + 1] = source.choice(WORDS)
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


def outcome_of(name: str, data: bytes, folder: Path) -> str:
    """ "read" or "refused", or what a reader does wrong with a file."""
    path = folder / f"{time.monotonic_ns()}"
    path.write_bytes(data)
    outcome = "read"
    try:
        with watched() as events:
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


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--keep", help="a folder for the files that went wrong")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    wrong = read = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        right = samples(folder)
        for number in range(options.count):
            source = random.Random(options.seed * 1_000_003 + number)
            kind = source.choice(list(right))
            data = right[kind]
            if kind.startswith("torch") and source.random() < 0.3:
                pickle = evil(*source.choice(list(EVIL.values())))
                data = torch_zip(pickle) if kind == "torch zip" else torch_legacy(pickle)
            data = mutated(data, source)
            outcome = outcome_of(kind, data, folder)
            read += outcome == "read"
            if outcome not in ("read", "refused"):
                wrong += 1
                print(f"file {number} ({kind}): {outcome}")
                if options.keep:
                    (Path(options.keep) / f"{number}.bin").write_bytes(data)
            if number % 200 == 199:
                sweep()
    print(f"{options.count} files, {read} of them read, {wrong} problems, seed {options.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    limit_memory()
    sys.exit(main())

"""Small right files of every format that `weft.io` reads, as bytes: what the file fuzzer damages.

Also files that are wrong on purpose: pickles that want to run something.
"""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from weft.io.gguf_blocks import QUANTIZED
from weft.io.numpy_files import npz_save
from weft.io.safetensors import safe_save
from weft.io.training_state import save_training_state
from weft.ir.dtypes import dtypes
from weft.tensor.tensor import Tensor

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C


def text(value: str) -> bytes:
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def numbers(*values: int) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def torch_tensor(key: str, total: int, first: int, shape: Any, strides: Any) -> bytes:
    """The instructions that make a tensor of a float storage."""
    storage = text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text("cpu")
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n((" + storage + number(total) + b"tQ" + number(first)
        + numbers(*shape) + numbers(*strides) + b"\x89ccollections\nOrderedDict\n)RtR"
    )  # fmt: skip


def torch_value() -> bytes:
    """A pickle of a state dict with a matrix, its transpose and a number."""
    items = (
        text("weight") + torch_tensor("0", 6, 0, (2, 3), (3, 1))
        + text("turned") + torch_tensor("0", 6, 0, (3, 2), (1, 3))
        + text("every") + torch_tensor("1", 8, 1, (3,), (2,))
        + text("step") + number(7)
    )  # fmt: skip
    return b"\x80\x02}(" + items + b"u."


def torch_zip(pickle: bytes | None = None) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("model/data.pkl", torch_value() if pickle is None else pickle)
        archive.writestr("model/byteorder", "little")
        archive.writestr("model/data/0", np.arange(6, dtype=np.float32).tobytes())
        archive.writestr("model/data/1", np.arange(8, dtype=np.float32).tobytes())
    return data.getvalue()


def torch_legacy(pickle: bytes | None = None) -> bytes:
    magic = LEGACY_MAGIC.to_bytes(10, "little")
    parts = [
        b"\x80\x02\x8a\x0a" + magic + b".",
        b"\x80\x02M\xe9\x03.",
        b"\x80\x02}(" + text("little_endian") + b"\x88u.",
        torch_value() if pickle is None else pickle,
        b"\x80\x02](" + text("0") + text("1") + b"e.",
        struct.pack("<q", 6) + np.arange(6, dtype=np.float32).tobytes(),
        struct.pack("<q", 8) + np.arange(8, dtype=np.float32).tobytes(),
    ]
    return b"".join(parts)


def gguf_text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(tensors: dict[str, tuple[tuple[int, ...], int, bytes]]) -> bytes:
    """A GGUF file with tensors given by shape (rows first), type and bytes."""
    pairs = [
        gguf_text("general.architecture") + struct.pack("<I", 8) + gguf_text("llama"),
        gguf_text("llama.block_count") + struct.pack("<II", 4, 2),
        gguf_text("words") + struct.pack("<IIQ", 9, 8, 2) + gguf_text("a") + gguf_text("bc"),
        gguf_text("scores") + struct.pack("<IIQ2f", 9, 6, 2, 0.5, 1.5),
    ]
    entries, data = [], b""
    for name, (shape, kind, raw) in tensors.items():
        sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        entries.append(gguf_text(name) + sizes + struct.pack("<IQ", kind, len(data)))
        data += raw + b"\0" * (-len(raw) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    head += b"".join(pairs) + b"".join(entries)
    return head + b"\0" * (-len(head) % 32) + data


def gguf_sample() -> bytes:
    source = np.random.default_rng(0)
    tensors: dict[str, tuple[tuple[int, ...], int, bytes]] = {
        "plain": ((2, 3), 0, source.standard_normal((2, 3)).astype(np.float32).tobytes())
    }
    for kind in (2, 8, 12):
        row = QUANTIZED[kind]
        raw = source.integers(0, 256, 2 * row.bytes, np.uint8).tobytes()
        tensors[row.name] = ((2, row.elements), kind, raw)
    return gguf(tensors)


def _saved(save: Callable[[Path], None], folder: Path) -> bytes:
    path = folder / "sample"
    save(path)
    return path.read_bytes()


def tar() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, size in (("a.txt", 5), ("folder/" + "long" * 30, 700)):
            info = tarfile.TarInfo(name)
            info.size = size
            archive.addfile(info, io.BytesIO(b"x" * size))
    return data.getvalue()


def zipped() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("stored.txt", b"x" * 40)
        archive.writestr("deflated.txt", b"y" * 900, zipfile.ZIP_DEFLATED)
    return data.getvalue()


def npy() -> bytes:
    data = io.BytesIO()
    np.save(data, np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)))
    return data.getvalue()


def compressed_npz() -> bytes:
    data = io.BytesIO()
    np.savez_compressed(data, x=np.zeros(500), y=np.arange(4))
    return data.getvalue()


def evil(module: str, name: str, argument: str) -> bytes:
    """A pickle that calls a function."""
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + text(argument) + b"\x85R."


EVIL = {
    "os.system": ("os", "system", "touch weft_was_here"),
    "eval": ("builtins", "eval", "open('weft_was_here', 'w')"),
    "exec": ("__builtin__", "exec", "open('weft_was_here', 'w')"),
    "getattr": ("builtins", "getattr", "os"),
    "torch.load": ("torch", "load", "weft_was_here"),
    "import": ("importlib", "import_module", "antigravity"),
    "subprocess": ("subprocess", "Popen", "touch weft_was_here"),
    "dotted": ("collections", "OrderedDict.__class__", "x"),
}


def samples(folder: Path) -> dict[str, bytes]:
    """A right file of each format, under the name of its reader."""
    state = {"w": [Tensor([1.0, 2.0])], "step": 3, "raw": b"ab"}
    tensors = {
        "half": Tensor([[1, 2], [3, 4]], dtype=dtypes.bfloat16),
        "whole": Tensor([5, 6, 7]),
    }
    return {
        "safetensors": _saved(lambda path: safe_save(tensors, path, {"k": "v"}), folder),
        "torch zip": torch_zip(),
        "torch legacy": torch_legacy(),
        "gguf": gguf_sample(),
        "npy": npy(),
        "npz": _saved(lambda path: npz_save(path, {"x": Tensor([1, 2])}), folder),
        "npz compressed": compressed_npz(),
        "tar": tar(),
        "zip": zipped(),
        "training state": _saved(lambda path: save_training_state(path, state), folder),
    }

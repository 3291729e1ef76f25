"""Edited ONNX files with data in other files: nothing outside of the model's folder is opened.

An audit hook of Python sees every file that is opened while a model is loaded and run. Beside the
folder lies a file that a model must not reach, by `..`, an absolute path or a link.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from weft.support.errors import UsageError

_OPENED: list[str] | None = None


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if event == "open" and _OPENED is not None and isinstance(args[0], (str, bytes)):
        _OPENED.append(os.fsdecode(args[0]))


class Folder:
    """A folder with a model and its data, and a secret beside it."""

    def __init__(self) -> None:
        sys.addaudithook(_watch)
        self._temporary = tempfile.TemporaryDirectory()
        self.root = Path(self._temporary.name).resolve()
        self.inside = self.root / "model"
        (self.inside / "part").mkdir(parents=True)
        self.weight = np.arange(12, dtype=np.float32).reshape(3, 4)
        for file in (self.root / "secret.bin", self.inside / "part" / "w.bin"):
            file.write_bytes(self.weight.tobytes())
        (self.inside / "link.bin").symlink_to(self.root / "secret.bin")
        (self.inside / "up").symlink_to(self.root)

    def locations(self, rng: random.Random) -> str:
        """Where a file says that its data is; one of these is right."""
        absolute = str(self.root / "secret.bin")
        plain = ["part/w.bin", "part/../part/w.bin", "./part/w.bin", "part//w.bin"]
        bad = ["../secret.bin", "part/../../secret.bin", "link.bin", "up/secret.bin", absolute]
        odd = ["", ".", "part", "no.bin", "\0", "part/w.bin\0", "/dev/zero", "/proc/self/mem"]
        return rng.choice(plain + bad + odd)

    def model(self, rng: random.Random) -> Any:
        """x @ w, whose w is in another file."""
        weight = numpy_helper.from_array(self.weight, "w")
        weight.ClearField("raw_data")
        weight.data_location = TensorProto.EXTERNAL
        entries = {"location": self.locations(rng), "offset": "0", "length": "48"}
        if rng.random() < 0.3:
            key = rng.choice(("offset", "length"))
            entries[key] = rng.choice(("-1", "4", "47", "49", "x", "1" * 30, ""))
        for key, value in entries.items():
            weight.external_data.add(key=key, value=value)
        sides = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, size])
            for name, size in (("x", 3), ("y", 4))
        ]
        node = helper.make_node("MatMul", ["x", "w"], ["y"])
        graph = helper.make_graph([node], "g", sides[:1], sides[1:], [weight])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])

    def run(self, load: Any, model: Any) -> str:
        """What became of a model; an AssertionError if it read what it must not."""
        global _OPENED
        path = self.inside / "model.onnx"
        onnx.save_model(model, path)
        x = np.ones((2, 3), np.float32)
        _OPENED = []
        try:
            found = load(path, device="PYTHON", jit=False)(x).numpy()
            kind = "result"
        except UsageError as error:
            kind, found = type(error).__name__, None
        finally:
            opened, _OPENED = _OPENED, None
        outside = [name for name in opened if self._is_outside(name)]
        if outside:
            raise AssertionError(f"opened {outside}")
        if found is not None and not np.array_equal(found, x @ self.weight):
            raise AssertionError("a wrong result")
        return kind

    def _is_outside(self, name: str) -> bool:
        path = Path(name).resolve()
        own = (self.inside, Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())
        # Python writes bytecode to a file with a number behind its name, and renames it.
        is_code = not {".py", ".pyc", ".so"}.isdisjoint(path.suffixes)
        return not is_code and not any(path.is_relative_to(each) for each in own)

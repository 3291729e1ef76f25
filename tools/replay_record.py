"""Writes down the kernels of a corpus; `replay` runs this with the Weft of one commit.

It stands on little of Weft, so that older commits can be recorded too: the function
`load_kernels`, through which every kernel goes on its way to a device, and the text form.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


def load_corpus(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("corpus", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Recorder:
    """Notes the kernels that are loaded, and how long that takes."""

    def __init__(self) -> None:
        self.kernels: list[dict[str, Any]] = []
        self.seconds = 0.0

    def around(self, load: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        from weft.ir.text import dump

        def loaded(kernels: Any, device: Any) -> list[Any]:
            start = time.perf_counter()
            results = load(kernels, device)
            self.seconds += time.perf_counter() - start
            for kernel, result in zip(kernels, results, strict=True):
                program = result.program
                cost = program.estimate
                self.kernels.append(
                    {
                        "name": program.name,
                        "kernel": dump(kernel),
                        "program": program.source or dump(program.instructions),
                        "bytes": cost.bytes_read + cost.bytes_written,
                        "operations": cost.operations,
                    }
                )
            return results

        return loaded


def install(recorder: Recorder) -> None:
    """Put the recorder between the engine and its loader, wherever that is imported."""
    from weft.engine import compile as engine_compile

    real = engine_compile.load_kernels
    wrapped = recorder.around(real)
    for module in list(sys.modules.values()):
        if getattr(module, "load_kernels", None) is real:
            module.load_kernels = wrapped  # type: ignore[attr-defined]


def main(corpus: str, out: str, only: str) -> None:
    import weft.tensor  # noqa: F401 -- all of the engine, before it is wrapped

    recorder = Recorder()
    install(recorder)
    found: dict[str, dict[str, Any]] = {}
    for name, program in load_corpus(corpus).PROGRAMS.items():
        if only not in name:
            continue
        recorder.kernels, recorder.seconds = [], 0.0
        entry: dict[str, Any] = {}
        try:
            program()
        except Exception as error:  # an older Weft may lack what a program uses
            entry["error"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        found[name] = {**entry, "kernels": recorder.kernels, "seconds": recorder.seconds}
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:4])

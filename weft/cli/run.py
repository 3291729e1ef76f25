"""`weft run MODEL`: a model file on arrays from .npy files, or on numbers made up for a trial."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.support.errors import ArgumentError, file_error

if TYPE_CHECKING:
    from weft.onnx import Model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="an input as a .npy file; without a name, in order",
    )
    parser.add_argument("--output", metavar="FILE", help="write all outputs to an .npz file")
    parser.add_argument("--device", metavar="NAME", help="where it runs (the default device)")
    parser.add_argument("--times", type=int, default=1, metavar="N", help="run it N times")


def run(options: argparse.Namespace) -> int:
    """Load the model, run it, print what came out and how long it took."""
    import numpy as np

    from weft.onnx import load

    if options.times < 1:
        raise ArgumentError(f"run: {options.times} times", rule="a model runs once or more")
    model = load(options.model, device=options.device)
    inputs = _inputs(model, options.input)
    seconds = []
    for _ in range(options.times):
        start = time.perf_counter()
        results = {name: _array(value) for name, value in model.run(inputs).items()}
        seconds.append(time.perf_counter() - start)
    for name, array in results.items():
        print(f"{name}: {_described(array)}")
    best = f", best of {options.times} {min(seconds) * 1e3:.1f} ms" if options.times > 1 else ""
    print(f"first run {seconds[0] * 1e3:.1f} ms{best}")
    if options.output:
        kept: dict[str, Any] = {
            name: array for name, array in results.items() if isinstance(array, np.ndarray)
        }
        try:
            np.savez(options.output, **kept)
        except OSError as error:
            raise file_error(f"run: {options.output}", error) from None
    return 0


def _inputs(model: Model, given: list[str]) -> dict[str, Any]:
    names = [each.name for each in model.inputs]
    inputs: dict[str, Any] = {}
    for number, text in enumerate(given):
        name, is_named, path = text.partition("=")
        if not is_named or Path(text).exists():
            if number >= len(names):
                raise ArgumentError(f"run: {len(given)} inputs for a model of {len(names)}")
            name, path = names[number], text
        inputs[name] = _read(path)
    return inputs


def _read(path: str) -> Any:
    import numpy as np

    try:
        return np.load(path, allow_pickle=False)
    except OSError as error:
        raise file_error(f"run: {path}", error) from None
    except ValueError as error:
        raise ArgumentError(f"run: {path}: {error}", rule="inputs are .npy files") from None


def _array(value: Any) -> Any:
    if isinstance(value, list):
        return [_array(each) for each in value]
    return value.numpy() if hasattr(value, "numpy") else value


def _described(array: Any) -> str:
    import numpy as np

    if not isinstance(array, np.ndarray):
        return f"{len(array)} values" if isinstance(array, list) else str(array)
    text = f"{array.dtype} {array.shape}"
    if array.size == 0 or array.dtype == object:
        return text
    return f"{text}, from {array.min():.6g} to {array.max():.6g}"

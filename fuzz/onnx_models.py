"""Edited ONNX files: each is loaded and run, and gives results or an error of Weft's.

    python -m fuzz.onnx_models --count 2000 --seed 1

Bytes of small models are flipped, cut out, repeated and overwritten, and fields of their graphs
are replaced: sizes, attributes, names, operators, element types. A crash ends the process, a hang
is stopped by an alarm, and any other exception is printed with the seed of its file. A result is
compared with that of ONNX's reference evaluator, where that has one. Every eighth model has its
data in another file, and may open nothing outside of its folder (`onnx_folder.py`).
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.onnx_folder import Folder
from weft.onnx import load
from weft.support.errors import UsageError

_SECONDS = 20
_MEMORY = 6 << 30


class DifferenceError(Exception):
    """A result that is not that of the reference."""


class HangError(BaseException):
    """A file took too long."""


def models(limit: int = 60) -> list[tuple[str, Any, dict[str, Any]]]:
    """Small models with inputs: every so many of the node cases of the backend suite."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [case for case in load_model_tests(kind="node") if case.model is not None]
    chosen = found[:: max(1, len(found) // limit)]
    result = []
    for case in chosen:
        names = [each.name for each in case.model.graph.input]
        values = dict(zip(names, case.data_sets[0][0], strict=False))
        result.append((case.name, case.model, values))
    return result


def edited_bytes(content: bytes, rng: random.Random) -> bytes:
    """A file with one to four bytes changed."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data)) if data else 0
        kind = rng.randrange(5)
        if kind == 0 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and data:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            del data[at : at + rng.randint(1, 8)]
        elif kind == 3:
            data[at:at] = data[at : at + rng.randint(1, 8)]
        else:
            data = data[: max(1, at)]
    return bytes(data)


def edited_fields(model: Any, rng: random.Random) -> bytes:
    """A file that parses, with fields of its graph replaced."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    for _ in range(rng.randint(1, 3)):
        rng.choice(_EDITS)(graph, copy, rng)
    return bytes(copy.SerializeToString())


_NUMBERS = (-1, 0, 1, 2, 3, 7, 64, 2**31 - 1, 2**31, 2**40, 2**62, -(2**63), -2, -100)


def _edit_attribute(graph: Any, model: Any, rng: random.Random) -> None:
    node = rng.choice(graph.node)
    if not node.attribute:
        return
    attribute = rng.choice(node.attribute)
    if attribute.ints and rng.random() < 0.7:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(_NUMBERS)
    elif attribute.ints:
        attribute.ints.append(rng.choice(_NUMBERS))
    elif attribute.type == 2:
        attribute.i = rng.choice(_NUMBERS)
    elif attribute.type == 1:
        attribute.f = rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
    elif attribute.type == 3:
        attribute.s = rng.choice((b"", b"linear", b"x" * 50, b"\xff\xfe"))
    else:
        node.attribute.remove(attribute)


def _edit_wires(graph: Any, model: Any, rng: random.Random) -> None:
    names = [name for node in graph.node for name in (*node.input, *node.output)]
    node = rng.choice(graph.node)
    side = rng.choice((node.input, node.output))
    if side:
        side[rng.randrange(len(side))] = rng.choice([*names, "", "nowhere"])
    elif names:
        side.append(rng.choice(names))


def _edit_operator(graph: Any, model: Any, rng: random.Random) -> None:
    node = rng.choice(graph.node)
    node.op_type = rng.choice(
        ("Add", "Reshape", "Loop", "If", "Conv", "Gather", "Concat", "NoSuchOperator", "Cast")
    )


def _edit_described(graph: Any, model: Any, rng: random.Random) -> None:
    each = rng.choice([*graph.input, *graph.output])
    kind = each.type.tensor_type
    if kind.shape.dim and rng.random() < 0.6:
        kind.shape.dim[rng.randrange(len(kind.shape.dim))].dim_value = rng.choice(_NUMBERS)
    else:
        kind.elem_type = rng.choice((0, 1, 2, 7, 8, 9, 11, 16, 22, 99))


def _edit_weight(graph: Any, model: Any, rng: random.Random) -> None:
    if not graph.initializer:
        return
    weight = rng.choice(graph.initializer)
    if weight.dims and rng.random() < 0.5:
        weight.dims[rng.randrange(len(weight.dims))] = rng.choice(_NUMBERS)
    elif rng.random() < 0.5:
        weight.data_type = rng.choice((0, 1, 6, 7, 8, 14, 99))
    else:
        weight.data_location = 1
        entry = weight.external_data.add()
        entry.key, entry.value = "location", rng.choice(("../secret", "/etc/passwd", "none.bin"))


def _edit_opset(graph: Any, model: Any, rng: random.Random) -> None:
    rng.choice(model.opset_import).version = rng.choice((-1, 0, 1, 6, 7, 13, 18, 28, 99, 2**40))


def _edit_order(graph: Any, model: Any, rng: random.Random) -> None:
    nodes = list(graph.node)
    rng.shuffle(nodes)
    if rng.random() < 0.3 and len(nodes) > 1:
        nodes = nodes[:-1]
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


_EDITS: tuple[Callable[[Any, Any, random.Random], None], ...] = (
    _edit_attribute,
    _edit_attribute,
    _edit_wires,
    _edit_operator,
    _edit_described,
    _edit_weight,
    _edit_opset,
    _edit_order,
)


def try_model(content: bytes, inputs: dict[str, Any]) -> str:
    """Load and run a file: "result", or the error of Weft's; anything else is raised."""
    signal.alarm(_SECONDS)
    try:
        model = load(content, device="PYTHON", jit=False, most_iterations=200)
        names = [each.name for each in model.inputs]
        values = dict(zip(names, inputs.values(), strict=False))
        found = [
            value.numpy() if hasattr(value, "numpy") else value
            for value in model.run(values).values()
        ]
        return require_right(content, values, found)
    except (UsageError, MemoryError) as error:
        str(error)
        return type(error).__name__
    finally:
        signal.alarm(0)


def require_right(content: bytes, inputs: dict[str, Any], found: list[Any]) -> str:
    """Compare with ONNX's own evaluator; "right", or "result" where that refuses the file.

    Where it differs and onnxruntime does not confirm it, the edit left the meaning open.
    """
    import onnx
    from onnx.reference import ReferenceEvaluator

    try:
        proto = onnx.ModelProto.FromString(content)
        onnx.checker.check_model(proto, full_check=True)
        wanted = ReferenceEvaluator(proto).run(None, inputs)
    except Exception:  # whatever it says of an edited file
        return "result"
    for name, ours, theirs in zip(proto.graph.output, found, wanted, strict=False):
        is_array = isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray)
        if not is_array or ours.dtype != theirs.dtype or ours.dtype.kind not in "iufb":
            return "result"
        if not _is_close(ours, theirs):
            if _is_confirmed(content, inputs, wanted):
                raise DifferenceError(f"{name.name} is not what the reference has")
            return "result"
    return "right"


def _is_close(ours: Any, theirs: Any) -> bool:
    return ours.shape == theirs.shape and np.allclose(
        ours, theirs, rtol=1e-3, atol=1e-4, equal_nan=True
    )


def _is_confirmed(content: bytes, inputs: dict[str, Any], wanted: list[Any]) -> bool:
    """Whether onnxruntime has the results of the reference, too; else neither is believed."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    try:
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        return all(map(_is_close, session.run(None, inputs), wanted))
    except Exception:  # whatever it says of an edited file
        return False


def run(count: int, seed: int) -> int:
    """Try so many files; how many went wrong."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    signal.signal(signal.SIGALRM, _stop)
    warnings.simplefilter("ignore")
    samples, folder = models(), Folder()
    wrong, kinds = 0, dict[str, int]()
    start = time.monotonic()
    for number in range(count):
        rng = random.Random(f"{seed}-{number}")
        if number % 8 == 0:
            kind = folder.run(load, folder.model(rng))
            kinds[f"folder: {kind}"] = kinds.get(f"folder: {kind}", 0) + 1
            continue
        name, model, inputs = rng.choice(samples)
        plain = {key: value for key, value in inputs.items() if isinstance(value, np.ndarray)}
        try:
            if rng.random() < 0.5:
                content = edited_bytes(model.SerializeToString(), rng)
            else:
                content = edited_fields(model, rng)
        except (TypeError, ValueError, IndexError):  # the edit itself made no sense
            continue
        try:
            kind = try_model(content, plain)
        except (Exception, HangError) as error:
            wrong += 1
            print(f"{name} seed {seed}-{number}: {type(error).__name__}: {str(error)[:300]}")
            continue
        kinds[kind] = kinds.get(kind, 0) + 1
    print(f"{count} files, {wrong} wrong, {time.monotonic() - start:.0f} s: {kinds}")
    return wrong


def _stop(*_: object) -> None:
    raise HangError(f"longer than {_SECONDS} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    return 1 if run(options.count, options.seed) else 0


if __name__ == "__main__":
    sys.exit(main())

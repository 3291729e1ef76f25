"""Random ONNX models of every opset, beside onnxruntime and ONNX's reference evaluator.

    python -m fuzz.onnx_graphs --count 300 --seed 1 [--device PYTHON]

A model is some inputs and a handful of nodes over what stands before them, all of them outputs.
Operators, attributes, opsets (7 to the newest that onnxruntime loads), element types, left-out
inputs, constants and inputs are drawn from `onnx_drawn`. Weft loads it from bytes and runs
it, eagerly, jitted, after a call with other sizes, which makes named ones symbolic where that is
possible, or with `sizes=`, which it may refuse. A result that is not that of
onnxruntime is believed to be wrong where the reference evaluator has that one, too, or does not
run the model; where the two differ, the meaning is open, and Weft has to agree with one of them.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from contextlib import suppress
from typing import Any

import numpy as np

from fuzz.onnx_drawn.pool import MICROSOFT, OPERATORS, Pool, Refused
from weft.onnx import load
from weft.support.errors import UsageError

OPSETS = range(7, 27)
_MOST_NODES = 6
_MOST_SIZE = 8


def model_of(rng: random.Random) -> tuple[Any, Pool]:
    """A model whose nodes onnxruntime runs, and what it is made of."""
    opset = rng.choice(OPSETS)
    pool = Pool(rng, opset)
    wanted = rng.randint(1, _MOST_NODES)
    for _ in range(4 * wanted):
        if len(pool.outputs) >= wanted:
            break
        names = [name for name, row in OPERATORS.items() if row.first <= opset <= row.last]
        before = pool.mark()
        try:
            OPERATORS[rng.choice(names)].draw(pool)
            results = onnxruntime_of(_built(pool), pool.feeds)
        except (
            Refused,
            _RefusedByRuntimeError,
            ValueError,
        ):  # nothing to draw from an empty value
            pool.reset(before)
            continue
        pool.settle(results)
    if not pool.outputs:
        pool.node("Identity", [pool.floats()])
        pool.settle(onnxruntime_of(_built(pool), pool.feeds))
    return _built(pool), pool


class _RefusedByRuntimeError(Exception):
    """onnxruntime does not run a model."""


def _built(pool: Pool) -> Any:
    from onnx import helper

    opsets = [helper.make_opsetid("", pool.opset), helper.make_opsetid(MICROSOFT, 1)]
    opsets.append(helper.make_opsetid("ai.onnx.ml", 3))
    outputs = [helper.make_empty_tensor_value_info(name) for name in pool.outputs]
    graph = helper.make_graph(pool.nodes, "g", pool.infos, outputs, pool.weights)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def onnxruntime_of(model: Any, feeds: dict[str, Any]) -> list[Any]:
    """What onnxruntime computes, without its own rewrites."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
        )
        return list(session.run(None, feeds))
    except Exception as error:
        raise _RefusedByRuntimeError(str(error)) from None


def reference_of(model: Any, feeds: dict[str, Any]) -> list[Any] | None:
    """What ONNX's evaluator computes, or None where it cannot."""
    from onnx.reference import ReferenceEvaluator

    try:
        return list(ReferenceEvaluator(model).run(None, feeds))
    except Exception:  # whatever it lacks
        return None


def is_close(ours: Any, theirs: Any) -> bool:
    """Whether two results are the same, as far as floats are; lists are sequences."""
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return False
        return all(map(is_close, ours, theirs))
    if ours is None or theirs is None:
        return ours is theirs
    ours = ours.numpy() if hasattr(ours, "numpy") else ours
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape:
        return False
    if theirs.dtype.kind in "OUS":
        return bool((ours.astype(str) == theirs.astype(str)).all())
    if ours.dtype != theirs.dtype:
        return False
    if theirs.dtype.kind != "f":
        # A quantized number may lie between two integers.
        is_byte = theirs.dtype.itemsize == 1 and theirs.dtype.kind in "iu"
        gap = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        return bool((gap <= (1 if is_byte else 0)).all())
    finite = theirs[np.isfinite(theirs)]
    size = float(np.abs(finite.astype(np.float64)).max(initial=0.0))
    rough = theirs.dtype.itemsize == 2
    with np.errstate(all="ignore"):
        return bool(
            np.allclose(
                ours.astype(np.float64),
                theirs.astype(np.float64),
                rtol=1e-2 if rough else 1e-3,
                atol=(2e-2 if rough else 2e-5) * (1 + size),
                equal_nan=True,
            )
        )


def fault_of(rng: random.Random, device: str) -> str:
    """What is wrong with Weft's results of a random model; empty if nothing is."""
    model, pool = model_of(rng)
    feeds, theirs = pool.feeds, list(pool.results.values())
    is_jitted = rng.random() < 0.6
    is_named = any(dim.dim_param for each in pool.infos for dim in _dims(each))
    sizes = _MOST_SIZE if is_jitted and is_named and rng.random() < 0.3 else None
    others = _of_other_sizes(pool, rng) if is_jitted and is_named and not sizes else None
    text = " ".join(f"{node.op_type}" for node in model.graph.node)
    way = "symbolic" if sizes else "after other sizes" if others else "jitted"
    way = way if is_jitted else "eager"
    about = f"opset {pool.opset}, {way}: {text}"
    try:
        loaded = load(model.SerializeToString(), device=device, jit=is_jitted, sizes=sizes)
        if others:  # the names are symbolic from then on
            with suppress(UsageError):
                loaded.run(others)
        ours = [list(loaded.run(feeds).values()) for _ in range(2)]
    except UsageError as error:
        if sizes:  # not everything is there for symbolic sizes
            return ""
        return f"{about}\n  refused: {str(error)[:600]}"
    except Exception as error:
        return f"{about}\n  {type(error).__name__}: {str(error)[:600]}"
    second: list[Any] | None = None
    for number, name in enumerate(pool.outputs):
        if all(is_close(results[number], theirs[number]) for results in ours):
            continue
        second = reference_of(model, feeds) if second is None else second
        if second and all(is_close(results[number], second[number]) for results in ours):
            continue
        node = next(node for node in model.graph.node if name in node.output)
        if second and not is_close(second[number], theirs[number]):
            return f"{about}\n  no two agree on {_shown(node, pool)}"
        return (
            f"{about}\n  {_shown(node, pool)}\n  ours {_brief(ours[0][number])}"
            f"\n  theirs {_brief(theirs[number])}"
        )
    return ""


def _of_other_sizes(pool: Pool, rng: random.Random) -> dict[str, Any]:
    """Inputs whose named dimensions have other sizes; the model may have no meaning for them."""
    sizes: dict[str, int] = {}
    result = dict(pool.feeds)
    for info in pool.infos:
        for axis, dim in enumerate(_dims(info)):
            if dim.dim_param and isinstance(array := result.get(info.name), np.ndarray):
                size = sizes.setdefault(dim.dim_param, rng.randint(1, _MOST_SIZE))
                count = max(array.shape[axis], 1)
                if array.shape[axis]:
                    result[info.name] = array.take(np.arange(size) % count, axis)
    return result


def _dims(info: Any) -> Any:
    return info.type.tensor_type.shape.dim


def _shown(node: Any, pool: Pool) -> str:
    from onnx import helper

    attributes = {
        each.name: helper.get_attribute_value(each)
        for each in node.attribute
        if each.type not in (5, 10)
    }
    inputs = []
    for name in node.input:
        value = pool.values.get(name)
        inputs.append(name + (_brief(value) if isinstance(value, np.ndarray) else ""))
    return f"{node.op_type} {attributes} of {inputs}"


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return str([_brief(each) for each in value[:3]])
    value = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
    return f"{value.dtype}{value.shape} {np.array2string(value.reshape(-1)[:8], precision=5)}"


def run(count: int, seed: int, device: str) -> int:
    """Try so many models; how many went wrong."""
    warnings.simplefilter("ignore")
    wrong, start = 0, time.monotonic()
    for number in range(count):
        fault = fault_of(random.Random(f"{seed}-{number}"), device)
        if fault:
            wrong += 1
            print(f"seed {seed}-{number}: {fault}", flush=True)
    print(f"{count} models, {wrong} wrong, {time.monotonic() - start:.0f} s")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="CPU")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    return 1 if run(options.count, options.seed, options.device) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Edited files of exported functions: an error that a user can read, or what the file describes.

    python -m fuzz.function_files --count 10000 --seed 1

A right file is taken apart, its header, graph or contents are edited, and it is put together with
a checksum that fits. It is loaded and called in a process of its own, with limits on memory and
time, between redzones (`CHECK=memory`), and again by the interpreter, which has to agree. A crash,
a hang, a stray access, another error than a `UsageError` or another result is a problem.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import random
import re
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from fuzz.files import limit_memory, mutated
from fuzz.function_samples import Parts, samples
from weft import Context, Tensor, UsageError, load_function
from weft.export.container import write_container
from weft.export.loaded import LoadedFunction
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp, sweep
from weft.ir.walk import bodies, topological
from weft.tensor.jit.program import TensorKind
from weft.tensor.trees import build, flatten

SECONDS = 60  # for one file, on a machine that does other work too
_MOST_ELEMENTS = 1 << 14  # of a value in a function that is called
_NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 63, 100, 1000, -1, -2, 2**31, 2**48, 2**62, 2**63, 10**30)
_WORDS = (
    *("float32", "int32", "uint8", "bool", "float64", "int64", "index", "bfloat16", "void"),
    *("reduce", "scan", "shrink", "pad", "reshape", "expand", "permute", "flip", "scatter"),
    *("ADD", "MUL", "MAX", "SHL", "param", "iota", "store", "after", "buffer", "copy", "call"),
    *("where", "exp", "sqrt", "true", "false", "nan", "inf", "kernel", "load", "tuple", "n"),
    *('"CPU"', '"DISK:weft_was_here"', "variable", "detach", "bitcast", "stage", "item"),
)
_TOKENS = re.compile(r"[A-Za-z_]\w*|\d+|\S|\s+")


def edited_text(text: str, source: random.Random) -> str:
    """The text of a graph with some tokens or lines changed."""
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        lines = text.split("\n")
        if source.random() < 0.15:
            first, second = source.randrange(len(lines)), source.randrange(len(lines))
            kind = source.randrange(3)
            if kind == 0:
                lines[first], lines[second] = lines[second], lines[first]
            elif kind == 1:
                del lines[first]
            else:
                lines.insert(first, lines[second])
            text = "\n".join(lines)
            continue
        tokens = _TOKENS.findall(text)
        numbers = [i for i, token in enumerate(tokens) if token.isdigit()]
        words = [i for i, token in enumerate(tokens) if token[0].isalpha()]
        if not numbers or not words:
            break
        if source.random() < 0.6:
            tokens[source.choice(numbers)] = str(source.choice(_NUMBERS))
        else:
            others = [tokens[source.choice(words)], source.choice(_WORDS)]
            tokens[source.choice(words)] = source.choice(others)
        text = "".join(tokens)
    return text


def _addresses(node: Any) -> list[tuple[Any, Any]]:
    """All (container, key) pairs of a nest."""
    found: list[tuple[Any, Any]] = []
    stack = [node]
    while stack:
        inner = stack.pop()
        keys = inner if isinstance(inner, dict) else range(len(inner))
        for key in list(keys):
            found.append((inner, key))
            if isinstance(inner[key], (dict, list)):
                stack.append(inner[key])
    return found


def edited_header(header: dict[str, Any], source: random.Random) -> dict[str, Any]:
    """The header with some values changed, moved or left out."""
    made = copy.deepcopy(header)
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        addresses = _addresses(made)
        if not addresses:
            break
        inner, key = source.choice(addresses)
        kind = source.randrange(6)
        if kind == 0:
            other, address = source.choice(addresses)
            inner[key] = copy.deepcopy(other[address])
        elif kind == 1 and isinstance(inner[key], int):
            inner[key] += source.choice((-1, 1))
        elif kind == 2:
            del inner[key]
        elif kind == 3 and isinstance(inner, list):
            inner.insert(key, copy.deepcopy(inner[source.randrange(len(inner))]))
        elif kind == 4 and isinstance(inner[key], str):
            inner[key] = edited_text(inner[key], source)
        else:
            inner[key] = source.choice((*_NUMBERS, None, True, "x", [], {}, 1.5, "DISK:x"))
    return made


def edited_alike(parts: Parts, source: random.Random) -> Parts:
    """The parts with one number or word exchanged for another everywhere."""
    header, text, contents = parts
    tokens = [token for token in _TOKENS.findall(text) if token.isalnum()]
    old = source.choice(tokens)
    if old.isdigit():
        new = str(source.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 40, 100)))
    else:
        new = source.choice((source.choice(tokens), *_WORDS))
    pattern = re.compile(rf"\b{old}\b")
    changed = json.loads(pattern.sub(new, json.dumps(header)) if old != "0" else "{}") or header
    return Parts(changed, pattern.sub(new, text), contents)


def write_edited(parts: Parts, path: Path, source: random.Random) -> None:
    """Write a file with one to three kinds of edits."""
    kind = source.random()
    if source.random() < 0.5:
        with contextlib.suppress(ValueError):  # what is left is not JSON
            parts = edited_alike(parts, source)
            kind = kind if source.random() < 0.3 else 1.0
    header, text, contents = parts
    if kind < 0.05:
        write_container(path, header, [text.encode(), *contents])
        path.write_bytes(mutated(path.read_bytes(), source))
        return
    if kind < 0.6:
        text = edited_text(text, source)
    if 0.5 < kind < 1:
        header = edited_header(header, source)
    if contents and source.random() < 0.1:
        number = source.randrange(len(contents))
        contents = [*contents]
        contents[number] = mutated(contents[number], source)
    write_container(path, header, [text.encode(), *contents])


def is_small(function: LoadedFunction) -> bool:
    """Whether a call is over soon. A file may ask for more work than anybody can wait for."""
    graph = function._program.graph
    roots = [*graph.versions, *(value for value in graph.values if value is not None)]
    nodes = topological(*roots, *bodies(*roots))
    elements = [largest_size(shape_of(node)) for node in (*nodes, *graph.parameters)]
    return max(elements, default=0) <= _MOST_ELEMENTS


def arguments_of(function: LoadedFunction, device: str) -> tuple[Any, Any]:
    """Arguments that the loaded function says it takes."""
    values: list[Any] = []
    for kind in function._leaves:
        if isinstance(kind, TensorKind):
            sizes = [size if isinstance(size, int) else _bound(size) for size in kind.shape]
            whole = [size if isinstance(size, int) else largest_size((size,)) for size in sizes]
            count = int(np.prod(whole))
            data = np.arange(count).reshape(whole) % 5
            tensor = Tensor(data, dtype=kind.dtype, device=device)
            if any(isinstance(size, UOp) for size in sizes):
                tensor = tensor[tuple(slice(0, size) for size in sizes)].contiguous()
            values.append(tensor.realize())
        else:
            value = kind.value if hasattr(kind, "value") else None
            values.append(_bound(value) if isinstance(value, UOp) else value)
    return build(function._structure, iter(values))  # type: ignore[no-any-return]


def _bound(size: UOp) -> Any:
    """A size with a value for each of its variables."""
    from weft.engine.bindings import give_bindings
    from weft.ir.build import bind
    from weft.ir.ops import Op

    variables = [node for node in topological(size) if node.op == Op.VARIABLE]
    values = {node: bind(node, (node.arg[1] + node.arg[2]) // 2) for node in variables}
    return give_bindings(size, values)


def _results(path: Path, device: str) -> list[Any] | None:
    """What a file computes on a device, twice, as arrays and values; None if it is too much."""
    with Context(DEVICE=device):
        function = load_function(path, device=device)
        if not is_small(function):
            return None
        leaves: list[Any] = []
        for _ in range(2):
            args, kwargs = arguments_of(function, device)
            flatten(function(*args, **kwargs), leaves)
        return [leaf.numpy() if isinstance(leaf, Tensor) else leaf for leaf in leaves]


def _agree(a: Any, b: Any) -> bool:
    if isinstance(a, UOp) or isinstance(b, UOp):
        return int(a) == int(b)
    if not isinstance(a, np.ndarray):
        return str(a) == str(b)
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    with np.errstate(all="ignore"):
        return bool(np.allclose(a, b, rtol=1e-2, atol=1e-2, equal_nan=True))


def outcome_of(path: Path, is_compared: bool) -> str:
    """What becomes of one file: "refused", "computed", "large", or a problem in words."""
    try:
        results = _results(path, "CPU")
        if results is None:
            return "large"
        if is_compared:
            right = _results(path, "PYTHON")
            pairs = zip(results, right or [], strict=True)
            if not all(_agree(a, b) for a, b in pairs):
                return "another result than the interpreter's"
        return "computed"
    except UsageError as error:
        return "refused" if str(error) else "an error without a message"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"


def work(arguments: argparse.Namespace) -> int:
    """Run some files one after the other; what becomes of each is a line of JSON."""
    limit_memory()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as name, Context(CHECK="memory"):
        right = samples(Path(name))
        path = Path(arguments.keep or name) / "edited.weft"
        for number in range(arguments.first, arguments.count):
            source = random.Random(arguments.seed * 1_000_003 + number)
            kind = source.choice(list(right))
            write_edited(right[kind], path, source)
            print(json.dumps({"number": number, "kind": kind}))
            print(json.dumps({"outcome": outcome_of(path, number % 4 == 0)}))
            if number % 100 == 99:
                sweep()
    return 0


class Worker:
    """A process that runs files from one number on."""

    def __init__(self, first: int, options: argparse.Namespace) -> None:
        command = self.command(first, options)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._lines: IO[str] = self._process.stdout

    def command(self, first: int, options: argparse.Namespace) -> list[str]:
        command = [sys.executable, "-m", "fuzz.function_files", "--work", "--first", str(first)]
        command += ["--count", str(options.count), "--seed", str(options.seed)]
        return command + (["--keep", options.keep] if options.keep else [])

    def line(self) -> dict[str, Any] | None:
        """The next thing that it says; None at its end, or if it says nothing for too long."""
        ready, _, _ = select.select([self._lines], [], [], SECONDS)
        text = self._lines.readline() if ready else ""
        return json.loads(text) if text.endswith("\n") else None

    def end(self) -> str:
        """Why it says nothing any more; "" at the right end."""
        is_hanging = self._process.poll() is None and self._wait(5) is None
        if is_hanging:
            self._process.kill()
        status = self._process.wait()
        self._lines.close()
        return "it hangs" if is_hanging else f"it ended with status {status}" if status else ""

    def _wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--keep", help="a folder for the file that is being run")
    parser.add_argument("--work", action="store_true", help="run the files in this process")
    options = parser.parse_args(arguments)
    if options.work:
        return work(options)
    print(f"seed {options.seed}", flush=True)
    outcomes: Counter[str] = Counter()
    number = options.first
    while number < options.count:
        worker = Worker(number, options)
        while (line := worker.line()) is not None:
            if "number" in line:
                number, kind = line["number"], line["kind"]
                continue
            outcome = line["outcome"]
            number += 1
            _count(outcomes, outcome, number - 1, kind)
        reason = worker.end()
        if reason:
            _count(outcomes, reason, number, kind)
            number += 1
        elif number < options.count:
            _count(outcomes, "it ended too early", number, "")
            break
    wrong = outcomes.total() - sum(outcomes[name] for name in ("refused", "computed", "large"))
    told = ", ".join(f"{count} {name}" for name, count in outcomes.most_common(3))
    print(f"{options.count} files ({told}), {wrong} problems, seed {options.seed}")
    return 1 if wrong else 0


def _count(outcomes: Counter[str], outcome: str, number: int, kind: str) -> None:
    is_fine = outcome in ("refused", "computed", "large")
    outcomes[outcome if is_fine else "problem"] += 1
    if not is_fine:
        print(f"file {number} ({kind}): {outcome}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

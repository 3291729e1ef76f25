"""Schedules on disk: which programs run on which slots, and where temporaries are.

A process that meets a graph which another one has run goes from the graph to a running list
without scheduling it and without generating code: it asks for the name of the graph, and loads
programs by theirs. What a person wants to see, or to have checked, is made anew.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.engine.compile import disk_key, try_load
from weft.engine.run import Prepared, Temporary, planned
from weft.ir.build import param
from weft.ir.dtypes import by_name
from weft.ir.shapes import shape_of
from weft.ir.text import dump, parse
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.rewrite.trace_file import current
from weft.runtime.device import Device
from weft.support.cache import DiskCache
from weft.support.code_version import COMPILER, code_version
from weft.support.settings import settings
from weft.support.source_line import SourceLine

_CACHE: Final = DiskCache("schedules", 6)


def is_wanted() -> bool:
    """Whether what is on disk may be used: what somebody wants to see or to check is made anew."""
    return not (settings.DEBUG or settings.CHECK or settings.SPEC or current() is not None)


def try_stored(body: UOp, device: Device) -> Prepared | None:
    """The schedule of a graph over parameters as another process left it, with its programs."""
    return try_stored_as(schedule_key(body, device), body, device) if is_wanted() else None


def try_stored_as(key: str, body: UOp | Callable[[], UOp], device: Device) -> Prepared | None:
    """The schedule under a key, if it is there; of its graph only a reader of lines asks."""
    data = _CACHE.get(key)
    if data is None:
        return None
    stored = json.loads(data)
    programs = try_load(stored["programs"], device)
    if programs is None:  # the disk has forgotten one of them
        return None
    size_of = functools.cache(parse)  # a few sizes are those of all memory
    memory = [
        param(
            slot, by_name(dtype), tuple([s if isinstance(s, int) else size_of(s) for s in shape])
        )
        for slot, dtype, shape in stored["memory"]
    ]
    made = Prepared(
        device,
        body,
        [
            planned(programs[number], tuple([memory[part] for part in parts]), label=label)
            for (number, *parts), label in zip(stored["launches"], stored["labels"], strict=True)
        ],
        tuple(map(parse, stored["variables"])),
        tuple(Temporary(*each) for each in stored["temporaries"]),
        stored["arena"],
    )
    made.line_nodes = stored["line_nodes"]
    return made


def put_stored(body: UOp, prepared: Prepared, keys: Sequence[str]) -> None:
    """Keep a schedule for other processes; `keys` are those of the program of each step."""
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    used = dict.fromkeys(node for step in prepared.steps for node in step.memory)
    memory = {node: number for number, node in enumerate(used)}
    # The first node of each line; other programs have other lines for the same graph.
    nodes: dict[SourceLine, int] = {}
    for number, node in enumerate(topological(body)):
        if node.line is not None:
            nodes.setdefault(node.line, number)
    stored = {
        "programs": list(numbers),
        "labels": [step.label for step in prepared.steps],
        "line_nodes": [-1 if s.line is None else nodes.get(s.line, -1) for s in prepared.steps],
        "memory": list(map(_memory_to, memory)),
        "launches": [
            (numbers[key], *map(memory.__getitem__, step.memory))
            for key, step in zip(keys, prepared.steps, strict=True)
        ],
        "variables": [dump(variable) for variable in prepared.variables],
        "temporaries": prepared.temporaries,
        "arena": prepared.arena,
    }
    _CACHE.put(schedule_key(body, prepared.device), json.dumps(stored).encode())


def _memory_to(node: UOp) -> Any:
    """A PARAM; sizes that are symbolic are texts."""
    sizes = [size if isinstance(size, int) else dump(size) for size in shape_of(node)]
    return node.arg[0], node.dtype.name, sizes


def schedule_key(body: UOp, device: Device) -> str:
    """What the schedule of a graph is found by."""
    return disk_key(body, device, code_version((*COMPILER, "schedule")))

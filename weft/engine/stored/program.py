"""A compiled program as bytes, for the disk and other processes: a header in JSON and the code.

The instructions and the source stay behind; whoever runs a program needs neither.
"""

from __future__ import annotations

import json
from dataclasses import astuple

from weft.ir.build import Size
from weft.ir.dtypes import by_name, dtypes
from weft.ir.ops import Op
from weft.ir.program import Estimate, Parameter, Program, TensorMap
from weft.ir.text import dump, parse
from weft.ir.uop import make


def pack(program: Program) -> bytes:
    """What it takes to load and run a program."""
    header = {
        "name": program.name,
        "target": program.target,
        "parameters": [
            (p.slot, p.dtype.name, p.is_written, p.is_read, p.size) for p in program.parameters
        ],
        "variables": [dump(variable) for variable in program.variables],
        "groups": [size if isinstance(size, int) else dump(size) for size in program.groups],
        "threads": program.threads,
        "dynamic_bytes": program.dynamic_bytes,
        "waits": program.waits,
        "early": program.early,
        "maps": [astuple(each) for each in program.maps],
        "estimate": astuple(program.estimate),
    }
    return json.dumps(header).encode() + b"\0" + program.binary


def unpack(data: bytes) -> Program:
    """The program that `pack` was given, without its instructions and source."""
    text, _, binary = data.partition(b"\0")
    header = json.loads(text)
    groups: list[Size] = [s if isinstance(s, int) else parse(s) for s in header["groups"]]
    return Program(
        name=header["name"],
        target=header["target"],
        instructions=make(Op.LINEAR, dtypes.void),
        parameters=tuple(
            Parameter(slot, by_name(name), *rest) for slot, name, *rest in header["parameters"]
        ),
        variables=tuple(parse(variable) for variable in header["variables"]),
        groups=tuple(groups),
        threads=tuple(header["threads"]),
        estimate=Estimate(*header["estimate"]),
        binary=binary,
        dynamic_bytes=header["dynamic_bytes"],
        waits=header["waits"],
        early=tuple(header["early"]),
        maps=tuple(
            TensorMap(position, size, offset, *map(tuple, rest))
            for position, size, offset, *rest in header["maps"]
        ),
    )

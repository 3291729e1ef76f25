"""What a realize would do to memory, written down, so that it can be done many times.

A graph over several devices is many programs with copies between them. Where `realize` is given a
`Tape`, nothing runs: it writes down each program and each copy, with the memory that they are for.
`TapeRun` of `replay.py` makes a list of steps of that, for other memory.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.engine.buffers import Buffer
from weft.ir.uop import UOp


class Run(NamedTuple):
    """A program of one device: a body over parameters, and the memory that they stand for."""

    device: str
    body: UOp
    memory: tuple[Buffer, ...]
    written: tuple[Buffer, ...]  # of these, what was there before


class Copy(NamedTuple):
    """The contents of memory in other memory."""

    source: Buffer
    target: Buffer


class Tape:
    """Runs and copies, in their order."""

    def __init__(self) -> None:
        self.actions: list[Run | Copy] = []


class NotTapedError(Exception):
    """A graph does something that a tape cannot hold: the interpreter, values of variables."""

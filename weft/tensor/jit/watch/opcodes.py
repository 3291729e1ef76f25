"""The instructions of a code object with the depth of the stack before each of them.

`frame.py` follows a running frame with a stack of its own, and these depths keep it aligned after
jumps, exceptions and instructions that it has no handler for. Everything goes through `dis`, so
that one description serves all versions of Python.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any, Final, NamedTuple

_ENDS: Final = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "INTERPRETER_EXIT")
_JUMPS: Final = frozenset([*dis.hasjrel, *dis.hasjabs])


class Bytecode(NamedTuple):
    """An instruction; `depth` is that of the stack before it, `next` the offset after it."""

    name: str
    arg: int
    value: Any
    offset: int
    next: int
    depth: int
    effect: int  # on the depth, where it does not jump


def read_steps(code: CodeType) -> dict[int, Bytecode]:
    """Every instruction by its offset. A prefix of an argument stands for its instruction."""
    bytecode: Any = dis.Bytecode(code)
    instructions = list(bytecode)
    following = [each.offset for each in instructions[1:]] + [len(code.co_code)]
    depths = _depths(instructions, following, bytecode.exception_entries)
    steps: dict[int, Bytecode] = {}
    prefixes: list[int] = []
    for each, after in zip(instructions, following, strict=True):
        if each.opname == "EXTENDED_ARG":
            prefixes.append(each.offset)
            continue
        step = Bytecode(
            each.opname,
            each.arg or 0,
            each.argval,
            each.offset,
            after,
            depths.get(each.offset, 0),
            _effect(each, False),
        )
        for offset in (*prefixes, each.offset):
            steps[offset] = step
        prefixes = []
    return steps


def _depths(
    instructions: list[dis.Instruction], following: list[int], entries: Any
) -> dict[int, int]:
    numbers = {each.offset: number for number, each in enumerate(instructions)}
    depths = {0: 0}
    waiting = [0]
    # A handler has the exception above what was there, and the offset it was raised at.
    for entry in entries:
        depths.setdefault(entry.target, entry.depth + 1 + bool(entry.lasti))
        waiting.append(entry.target)
    while waiting:
        offset = waiting.pop()
        number = numbers[offset]
        each = instructions[number]
        targets = []
        if each.opcode in _JUMPS:
            targets.append((each.argval, _effect(each, True)))
        if each.opname not in _ENDS and not _always_jumps(each.opname):
            targets.append((following[number], _effect(each, False)))
        for target, effect in targets:
            if target in numbers and target not in depths:
                depths[target] = max(0, depths[offset] + effect)
                waiting.append(target)
    return depths


def _always_jumps(name: str) -> bool:
    return name.startswith(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE"))


def _effect(each: dis.Instruction, jump: bool) -> int:
    if each.opname == "PRECALL":  # 3.11 counts the arguments here, and takes them in CALL
        return 0
    if each.opname == "CALL":
        return -(each.arg or 0) - 1
    return dis.stack_effect(each.opcode, each.arg, jump=jump)

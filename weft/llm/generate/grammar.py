"""Grammars over bytes, and the states of a text that follows one.

A rule has alternatives, each a sequence of byte sets and of other rules. A state is a set of
stacks, each the rest of the text that one reading of the grammar expects; it never holds a rule on
top, so a byte either continues a stack or ends it. States are numbered and remembered with what
each byte leads to: a text that comes back to a state costs a lookup.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from weft.support.errors import ArgumentError

MOST_STACKS: Final = 10_000


class ByteSet(NamedTuple):
    """Any one of some bytes, as the bits of a number."""

    bits: int


class Rule(NamedTuple):
    """What another rule says."""

    name: str


Element = ByteSet | Rule
Alternative = tuple[Element, ...]


class Frame:
    """What is left of an alternative, and below it what follows the rule that it is of.

    A grammar has one of each, so that they compare as objects: texts may be nested deep.
    """

    __slots__ = ("below", "rest")

    def __init__(self, rest: Alternative, below: Stack) -> None:
        self.rest = rest
        self.below = below


Stack = Frame | None
State = int
DEAD: Final = -1


class Grammar:
    """Rules by name; a text follows the rule `root`."""

    def __init__(self, rules: dict[str, list[Alternative]]) -> None:
        self.rules = rules
        for name, alternatives in rules.items():
            for alternative in alternatives:
                for element in alternative:
                    if isinstance(element, Rule) and element.name not in rules:
                        raise ArgumentError(f"grammar: {name} names a rule {element.name!r}")
        if "root" not in rules:
            raise ArgumentError("grammar: there is no rule 'root'", rule="a text follows root")
        _require_progress(rules)
        self._frames: dict[tuple[Alternative, Stack], Frame] = {}
        self._stacks: list[frozenset[Stack]] = []
        self._numbers: dict[frozenset[Stack], State] = {}
        self._next: dict[tuple[State, int], State] = {}
        self.start = self._number([self._frame((Rule("root"),), None)])

    def step(self, state: State, byte: int) -> State:
        """The state after a byte; `DEAD` where the byte may not follow."""
        key = state, byte
        found = self._next.get(key)
        if found is None:
            bit = 1 << byte
            after: list[Stack] = []
            for stack in self._stacks[state]:
                if stack is not None:
                    top = stack.rest[0]
                    if isinstance(top, ByteSet) and top.bits & bit:
                        after.append(self._frame(stack.rest[1:], stack.below))
            found = self._next[key] = self._number(after) if after else DEAD
        return found

    def walk(self, state: State, data: bytes) -> State:
        """The state after some bytes."""
        for byte in data:
            if state == DEAD:
                return DEAD
            state = self.step(state, byte)
        return state

    def is_complete(self, state: State) -> bool:
        """Whether the text so far is a whole one."""
        return state != DEAD and None in self._stacks[state]

    def is_final(self, state: State) -> bool:
        """Whether nothing can follow."""
        return state != DEAD and self._stacks[state] == {None}

    @property
    def states(self) -> int:
        """How many states texts have come to; each is kept."""
        return len(self._stacks)

    def matches(self, text: str | bytes) -> bool:
        data = text.encode() if isinstance(text, str) else text
        return self.is_complete(self.walk(self.start, data))

    def _frame(self, rest: Alternative, below: Stack) -> Stack:
        if not rest:  # a rule at the end of an alternative leaves nothing behind: lists stay flat
            return below
        found = self._frames.get((rest, below))
        if found is None:
            found = self._frames[rest, below] = Frame(rest, below)
        return found

    def _number(self, stacks: Iterable[Stack]) -> State:
        closed = self._closed(stacks)
        found = self._numbers.get(closed)
        if found is None:
            found = self._numbers[closed] = len(self._stacks)
            self._stacks.append(closed)
        return found

    def _closed(self, stacks: Iterable[Stack]) -> frozenset[Stack]:
        """Stacks with a byte set on top, or empty ones: rules are replaced by what they say."""
        seen: set[Stack] = set()
        waiting, result = list(stacks), set()
        while waiting:
            stack = waiting.pop()
            if stack in seen:
                continue
            seen.add(stack)
            if len(seen) > MOST_STACKS:
                raise ArgumentError(
                    "grammar: a text can be read in too many ways",
                    rule=f"at most {MOST_STACKS:,} readings are followed at once",
                )
            if stack is None or isinstance(top := stack.rest[0], ByteSet):
                result.add(stack)
                continue
            below = self._frame(stack.rest[1:], stack.below)
            waiting += [self._frame(each, below) for each in self.rules[top.name]]
        return frozenset(result)


def _require_progress(rules: dict[str, list[Alternative]]) -> None:
    """No rule begins with itself, directly or through others: its stacks would never end."""
    empty = _nullable(rules)
    first: dict[str, set[str]] = {name: set() for name in rules}
    for name, alternatives in rules.items():
        for alternative in alternatives:
            for index, element in enumerate(alternative):
                if isinstance(element, ByteSet):
                    break
                if index < len(alternative) - 1:  # at the end, nothing is left behind
                    first[name].add(element.name)
                if element.name not in empty:
                    break
    open_ones: dict[str, bool] = {}  # by name: whether it is still walked
    for start in rules:
        stack = [] if start in open_ones else [(start, iter(first[start]))]
        open_ones.setdefault(start, True)
        while stack:
            name, others = stack[-1]
            following = next((each for each in others if open_ones.get(each, True)), None)
            if following is None:
                open_ones[name] = False
                stack.pop()
            elif following in open_ones:
                raise ArgumentError(
                    f"grammar: the rule {following!r} begins with itself",
                    rule="a rule reads something before it comes to itself again",
                )
            else:
                open_ones[following] = True
                stack.append((following, iter(first[following])))


def _nullable(rules: dict[str, list[Alternative]]) -> set[str]:
    """The rules that an empty text follows."""
    missing: list[int] = []  # of each alternative of rules alone: those not found yet
    owners: list[str] = []
    users: dict[str, list[int]] = {name: [] for name in rules}
    waiting = []
    for name, alternatives in rules.items():
        for alternative in alternatives:
            if any(isinstance(element, ByteSet) for element in alternative):
                continue
            for element in alternative:
                assert isinstance(element, Rule)
                users[element.name].append(len(missing))
            missing.append(len(alternative))
            owners.append(name)
            if not alternative:
                waiting.append(name)
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for number in users[name]:
            missing[number] -= 1
            if not missing[number]:
                waiting.append(owners[number])
    return found


def byte_set(data: Iterable[int]) -> ByteSet:
    bits = 0
    for byte in data:
        bits |= 1 << byte
    return ByteSet(bits)


def literal(text: str) -> Alternative:
    """The bytes of a text, one after the other."""
    return tuple(ByteSet(1 << byte) for byte in text.encode())


def characters(ranges: Iterable[tuple[int, int]]) -> list[Alternative]:
    """Characters from first to last of each range, as the bytes of UTF-8."""
    found: list[Alternative] = []
    single = 0
    for low, high in ranges:
        for first, last in _same_length(low, high):
            for part in _byte_ranges(_utf8(first), _utf8(last)):
                sets = tuple(byte_set(range(a, b + 1)) for a, b in part)
                if len(sets) == 1:
                    single |= sets[0].bits
                else:
                    found.append(sets)
    return ([(ByteSet(single),)] if single else []) + found


_LENGTHS: Final = (
    (0, 0x7F),
    (0x80, 0x7FF),
    (0x800, 0xD7FF),
    (0xE000, 0xFFFF),
    (0x10000, 0x10FFFF),
)


def _same_length(low: int, high: int) -> list[tuple[int, int]]:
    """The parts of a range whose characters have equally many bytes; no surrogates."""
    parts = [(max(low, a), min(high, b)) for a, b in _LENGTHS]
    return [(a, b) for a, b in parts if a <= b]


def _utf8(number: int) -> bytes:
    return chr(number).encode()


def _byte_ranges(low: bytes, high: bytes) -> list[list[tuple[int, int]]]:
    """Sequences of byte ranges that cover all encodings from low to high, of one length."""
    if len(low) == 1:
        return [[(low[0], high[0])]]
    if low[0] == high[0]:
        return [[(low[0], low[0]), *rest] for rest in _byte_ranges(low[1:], high[1:])]
    least, most = b"\x80" * (len(low) - 1), b"\xbf" * (len(low) - 1)
    found = []
    first, last = low[0], high[0]
    if low[1:] != least:
        found += [[(first, first), *rest] for rest in _byte_ranges(low[1:], most)]
        first += 1
    after = []
    if high[1:] != most:
        after = [[(last, last), *rest] for rest in _byte_ranges(least, high[1:])]
        last -= 1
    if first <= last:
        found += [[(first, last), *rest] for rest in _byte_ranges(least, most)]
    return found + after

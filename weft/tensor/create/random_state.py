"""Random numbers by counting: Threefry-2x32 of a key and a counter.

The state of a device is a tensor of four words, (key, key, counter, counter), which each draw
reads and advances; so the numbers depend on the seed and on the order in which the program draws,
and on nothing else. As long as the host knows the words, a draw reads memory of its own with these
words in it: draws wait for nothing, and equal ones are one program. A jitted function advances the
state in the memory of the device, and from then on so do all draws, until the host knows the words
again. Threefry is from Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3"
(2011): twenty rounds of add, rotate and xor, with a word of the key added after every fourth.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import struct
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final

from weft.engine.contents import buffer_from
from weft.engine.devices import Placement, is_computing
from weft.ir import movement
from weft.ir.build import call, param
from weft.ir.dtypes import dtypes
from weft.ir.inline import inline_body
from weft.ir.uop import UOp, const, on_sweep
from weft.support.errors import ArgumentError, NotSupported
from weft.tensor.checks import device_text
from weft.tensor.storage import Storage
from weft.tensor.trace.state import tracing
from weft.tensor.turns import tracer, wait_for_trace

_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = 0x1BD11BDA
_WORD: Final = 0xFFFFFFFF
_FOUR: Final = struct.Struct("=4I")
_seed = 0


class RandomState(Storage):
    """The four words of a device. The host knows them as long as `words` are those of `uop`.

    Whoever writes the memory of a node that somebody holds replaces it by another node, so a
    node that is still the current version has what it had.
    """

    __slots__ = ("_known", "_words")

    def __init__(self, words: list[int], device: Placement) -> None:
        self._words = words
        self._known = _memory(words, device)
        super().__init__(self._known, device)

    def try_words(self) -> list[int] | None:
        """The words, unless only the device has them."""
        return self._words if self.uop is self._known else None

    def start_at(self, words: list[int]) -> None:
        """Go on from these words, in memory of their own: what was drawn keeps what it reads."""
        if tracer.thread:
            wait_for_trace()
        self._words = words
        self._known = _memory(words, self.device)
        self.take_over(self._known)


def _memory(words: list[int], device: Placement) -> UOp:
    return buffer_from(dtypes.uint32, (4,), device, memoryview(_FOUR.pack(*words)))


_STATES: Final[dict[Any, RandomState]] = {}  # by device, or by the tuple of several


class Source:
    """A seed and states of devices, which draws with a generator read instead of the thread's."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.states: dict[Any, RandomState] = {}

    def state(self) -> dict[str, Any]:
        """As `random_state`, of these numbers."""
        return {"seed": self.seed, "devices": _words_of(self.states)}

    def restore(self, devices: dict[str, list[int]]) -> None:
        """Draw on from these words."""
        self.states = {name: RandomState(list(words), name) for name, words in devices.items()}


class _Stream(threading.local):
    """What a thread draws from: the main one from `_STATES`, each other from states of its own."""

    source: Source | None = None  # of the generator that is drawn from

    number = -1  # of the stream; 0 is the main one
    round = -1  # how often the numbers had been started anew when this stream began
    states: dict[Any, RandomState]


_STREAM: Final = _Stream()
_STREAM.number = 0
_numbers = itertools.count(1)
_round = 0


def _states() -> dict[Any, RandomState]:
    """The states of this thread, or of the generator that it draws from."""
    if _STREAM.source is not None:
        return _STREAM.source.states
    if _STREAM.number == 0:
        return _STATES
    if _STREAM.round != _round:
        _STREAM.number, _STREAM.round, _STREAM.states = next(_numbers), _round, {}
    return _STREAM.states


@contextlib.contextmanager
def drawing_from(source: Source) -> Iterator[None]:
    """Draw from these numbers meanwhile."""
    before, _STREAM.source = _STREAM.source, source
    try:
        yield
    finally:
        _STREAM.source = before


def threefry(key: tuple[UOp, UOp], counter: tuple[UOp, UOp]) -> tuple[UOp, UOp]:
    """Two words of noise for two words of counter, all uint32."""
    keys = (*key, key[0] ^ key[1] ^ const(dtypes.uint32, _PARITY))
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for amount in _ROTATIONS[group % 2]:
            x = x + y
            y = (y << amount | y >> 32 - amount) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + (group + 1)
    return x, y


def manual_seed(seed: int = 0) -> None:
    """Start the random numbers of all devices anew.

    The main thread draws from one stream of numbers, each other thread from one of its own: the
    n-th thread that draws after this has the n-th stream.

    >>> from weft.tensor import Tensor
    >>> Tensor.manual_seed(7)
    >>> first = Tensor.rand(2).tolist()
    >>> Tensor.manual_seed(7)
    >>> Tensor.rand(2).tolist() == first
    True
    """
    global _seed, _round, _numbers
    _seed, _round, _numbers = int(seed), _round + 1, itertools.count(1)
    if tracing.trace is not None:
        tracing.trace.is_seeded = True
    for state in _STATES.values():  # jitted functions hold these storages
        _restart(state, _start())


def _restart(state: RandomState, words: list[int]) -> None:
    if tracing.trace is None:
        state.start_at(words)
    else:  # in every call
        state.write((), _memory(words, state.device))


def _start() -> list[int]:
    """The words of a device that has drawn nothing."""
    if _STREAM.source is not None:
        seed = _STREAM.source.seed
        return [seed & _WORD, seed >> 32 & _WORD, 0, 0]
    # An odd number near the golden part of 2**64 keeps the keys of streams far apart.
    key = _seed + _STREAM.number * 0x9E3779B97F4A7C15
    return [key & _WORD, key >> 32 & _WORD, 0, 0]


def _state(device: Placement) -> RandomState:
    states = _states()
    if device not in states:
        states[device] = RandomState(_start(), device)
        if tracing.trace is not None:
            tracing.trace.adopt(states[device])
            if tracing.trace.is_seeded:
                _restart(states[device], _start())
    return states[device]


def random_state() -> dict[str, Any]:
    """The seed, and the four words of each device; computes them."""
    return {"seed": _seed, "devices": _words_of(_STATES)}


def _words_of(states: dict[Any, RandomState]) -> dict[str, list[int]]:
    from weft.tensor.tensor import Tensor

    return {
        device_text(on): state.try_words() or Tensor._of(state).tolist()
        for on, state in states.items()
    }


def restore_random_state(state: dict[str, Any]) -> None:
    """Draw as if nothing had been drawn since `random_state` gave this state.

    >>> from weft.tensor import Tensor
    >>> Tensor.manual_seed(7)
    >>> state = random_state()
    >>> first = Tensor.rand(2).tolist()
    >>> restore_random_state(state)
    >>> Tensor.rand(2).tolist() == first
    True
    """
    global _seed
    require_random_state(state)
    devices = state["devices"]
    _seed = state["seed"]
    for name in devices.keys() | set(map(device_text, _STATES)):
        on = tuple(name.split(", ")) if "," in name else name
        _restart(_state(on), list(devices.get(name, _start())))


def require_random_state(state: Any) -> None:
    """Raise unless a value is what `random_state` gives."""
    if not _is_state(state):
        raise ArgumentError(
            "random: expected a random state", rule="a state is what random_state() returned"
        )


def _is_state(state: Any) -> bool:
    """Whether a value is a state. It may come from a file, so its devices are looked at too."""
    if not isinstance(state, dict) or state.keys() != {"seed", "devices"}:
        return False
    seed, devices = state["seed"], state["devices"]
    if type(seed) is not int or not isinstance(devices, dict):
        return False
    names = [part for name in devices for part in str(name).split(", ")]
    return all(map(is_computing, names)) and all(
        isinstance(words, list)
        and len(words) == 4
        and all(type(word) is int and 0 <= word < 1 << 32 for word in words)
        for words in devices.values()
    )


def _word(state: UOp, position: int) -> UOp:
    return movement.reshape(movement.shrink(state, [(position, position + 1)]), ())


def draw(
    sizes: tuple[int, ...], device: Placement, distribution: Callable[..., UOp], *args: Hashable
) -> UOp:
    """Random numbers of a shape; the device's counter advances.

    `distribution(words, *args)` makes a value of two words of noise. It depends on nothing else:
    what it made is used again.
    """
    count = math.prod(sizes)
    if count >= 1 << 32:
        raise NotSupported(
            f"random: {count} elements at once", rule="one draw has fewer than 2**32 elements"
        )
    state = _state(device)
    drawn = call(_body(sizes, distribution, *args), state.uop)
    words = state.try_words() if tracing.trace is None else None
    if words is None:
        _advance(state, count)
    else:
        counter = (words[2] | words[3] << 32) + count
        state.start_at([*words[:2], counter & _WORD, counter >> 32 & _WORD])
    return drawn


@functools.lru_cache(maxsize=256, typed=True)
def _body(sizes: tuple[int, ...], distribution: Callable[..., UOp], *args: Hashable) -> UOp:
    """What draws have in common that differ in the state alone."""
    state = param(0, dtypes.uint32, (4,))
    low, high = _word(state, 2), _word(state, 3)
    here = movement.iota(math.prod(sizes), dtypes.uint32) + low
    noise = threefry((_word(state, 0), _word(state, 1)), (here, high + _carry(here, low)))
    return inline_body(movement.reshape(distribution(noise, *args), sizes))


on_sweep(_body.cache_clear)


def _advance(state: RandomState, count: int) -> None:
    """Count on in the memory of the device."""
    node = state.uop
    low = _word(node, 2)
    step = const(dtypes.uint32, count)
    index = movement.iota(4, dtypes.uint32)
    zero = const(dtypes.uint32, 0)
    moved = index.equal(2).where(step, index.equal(3).where(_carry(low + step, low), zero))
    state.write((), node + moved)


def _carry(total: UOp, part: UOp) -> UOp:
    return (total < part).cast(dtypes.uint32)

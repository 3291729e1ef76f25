"""Random numbers by counting: Threefry-2x32 of a key and a counter.

The state of a device is a tensor of four words, (key, key, counter, counter), which each draw
reads and advances; so the numbers depend on the seed and on the order in which the program draws,
and on nothing else. Threefry is from Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3"
(2011): twenty rounds of add, rotate and xor, with a word of the key added after every fourth.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any, Final
from weakref import WeakSet

from weft.engine.devices import DevicePlace, is_computing
from weft.ir import movement
from weft.ir.dtypes import dtypes
from weft.ir.uop import UOp, const
from weft.support.errors import ArgumentError, NotSupported
from weft.tensor.checks import device_text
from weft.tensor.host.host_data import from_host
from weft.tensor.storage import Storage, realize
from weft.tensor.trace.state import tracing

_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = 0x1BD11BDA
_seed = 0
_STATES: Final[dict[Any, Storage]] = {}  # by device, or by the tuple of several
_EVERY: Final[WeakSet[Storage]] = WeakSet()


class _Stream(threading.local):
    """What a thread draws from: the main one from `_STATES`, each other from states of its own."""

    number = -1  # of the stream; 0 is the main one
    round = -1  # how often the numbers had been started anew when this stream began
    states: dict[Any, Storage]


_STREAM: Final = _Stream()
_STREAM.number = 0
_numbers = itertools.count(1)
_round = 0


def _states() -> dict[Any, Storage]:
    """The states of this thread."""
    if _STREAM.number == 0:
        return _STATES
    if _STREAM.round != _round:
        _STREAM.number, _STREAM.round, _STREAM.states = next(_numbers), _round, {}
    return _STREAM.states


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
    for device, storage in _STATES.items():  # jitted functions hold these storages
        storage.write((), _first_state(device))


def _first_state(device: DevicePlace) -> UOp:
    return from_host(_start(), dtypes.uint32, device)


def _start() -> list[int]:
    """The words of a device that has drawn nothing."""
    # An odd number near the golden part of 2**64 keeps the keys of streams far apart.
    key = _seed + _STREAM.number * 0x9E3779B97F4A7C15
    return [key & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF, 0, 0]


def _state(device: DevicePlace) -> Storage:
    states = _states()
    if device not in states:
        states[device] = Storage(_first_state(device), device)
        _EVERY.add(states[device])
        if tracing.trace is not None:
            tracing.trace.adopt(states[device])
            if tracing.trace.is_seeded:  # in every call
                states[device].write((), _first_state(device))
    return states[device]


def is_random_state(storage: Storage) -> bool:
    """Whether a storage is the state of a device, which belongs to no tensor."""
    return storage in _EVERY


def random_state() -> dict[str, Any]:
    """The seed, and the four words of each device; computes them."""
    from weft.tensor.tensor import Tensor

    words = {device_text(on): Tensor._of(storage).tolist() for on, storage in _STATES.items()}
    return {"seed": _seed, "devices": words}


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
        # Written in place, because what captured the state goes on with the same memory.
        on = tuple(name.split(", ")) if "," in name else name
        _state(on).write((), from_host(devices.get(name, _start()), dtypes.uint32, on))
    if tracing.trace is None:
        realize(_STATES.values())


def require_random_state(state: Any) -> None:
    """Raise unless a value is what `random_state` gives."""
    if not _is_state(state):
        raise ArgumentError(
            "random: this is no state", law="a state is what random_state() gave before"
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


def draw(count: int, device: DevicePlace) -> tuple[UOp, UOp]:
    """Two words of noise for each of `count` elements; the device's counter advances."""
    if count >= 1 << 32:
        raise NotSupported(
            f"random: {count} elements at once", law="one draw has fewer than 2**32 elements"
        )
    storage = _state(device)
    state = storage.uop
    low, high = _word(state, 2), _word(state, 3)
    here = movement.iota(count, dtypes.uint32) + low
    noise = threefry((_word(state, 0), _word(state, 1)), (here, high + _carry(here, low)))
    step = const(dtypes.uint32, count)
    place = movement.iota(4, dtypes.uint32)
    zero = const(dtypes.uint32, 0)
    moved = place.equal(2).where(step, place.equal(3).where(_carry(low + step, low), zero))
    storage.write((), state + moved)
    return noise


def _carry(total: UOp, part: UOp) -> UOp:
    return (total < part).cast(dtypes.uint32)

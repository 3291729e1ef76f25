"""Waiting for a GPU, and telling what it was doing when something went wrong.

A GPU runs behind the host, so that an illegal access shows at some later call. The watch numbers
every launch and remembers its kernel and the user's line; behind each launch the stream writes the
number to memory of the host. That word outlives the context: when a fault is found, the first
launch that did not write its number is the one at fault. Waiting looks at the same word, so that a
kernel that never ends is found too, by the setting `KERNEL_SECONDS`.

After a fault the driver answers no call of this process any more. The watch keeps the error and
raises it again for each later use, without asking the driver.
"""

from __future__ import annotations

import ctypes
import time
from collections import deque
from typing import Any, Final, NamedTuple

from weft.runtime.cuda.driver import NOT_READY, SUCCESS, describe, require_success
from weft.support.errors import DeviceError
from weft.support.settings import settings
from weft.support.source_line import SourceLine, user_line

# Launches that may be remembered; more are never in flight on one stream.
MOST_REMEMBERED: Final = 4096
# A wait asks without a pause for so long, then it sleeps in between.
SPIN_SECONDS: Final = 0.002
PAUSE_SECONDS: Final = 2e-5
KERNELS_SHOWN: Final = 5
_PORTABLE: Final = 1

_ILLEGAL: Final = "touched memory that it does not own"
# What a kernel did, by the driver's code. All of these end the context.
FAULTS: Final = {
    700: _ILLEGAL,
    702: "ran longer than the system allows",
    710: "failed an assertion",
    714: _ILLEGAL,
    715: "met an illegal instruction",
    716: "used an address that is not aligned",
    717: "used an address of another kind of memory",
    718: "jumped to an illegal address",
    719: "failed",
    720: "failed in a group launch",
    999: "failed for a reason that the driver does not know",
}


class Launched(NamedTuple):
    """One entry of the queue: its kernels, its grid and the line that asked for it."""

    number: int
    kernels: tuple[str, ...]
    grid: tuple[int, ...]
    where: SourceLine


class LaunchWatch:
    """The launches of one stream. `lost` is the error that ended the context."""

    def __init__(self, api: Any, stream: Any, device: str) -> None:
        self._api, self._stream, self._device = api, stream, device
        self._queue: deque[Launched] = deque(maxlen=MOST_REMEMBERED)
        self._count = 0
        self._done = 0  # what a wait has shown to be over
        self.lost: DeviceError | None = None
        block = ctypes.c_void_p()
        code = api.cuMemHostAlloc(ctypes.byref(block), ctypes.sizeof(ctypes.c_uint64), _PORTABLE)
        require_success(api, code, "taking memory of the host")
        self._address = block.value or 0
        self._word = ctypes.c_uint32.from_address(self._address)
        self._word.value = 0
        # A system without such writes still finds faults, and names all that may be at fault.
        self.writes_numbers = api.cuStreamWriteValue32_v2(stream, self._address, 0, 0) == SUCCESS

    def launched(self, kernels: tuple[str, ...], grid: tuple[int, ...] = ()) -> None:
        """Remember a launch that was just queued; to be called in the order of the launches."""
        self._count = number = self._count + 1
        self._queue.append(Launched(number, kernels, grid, user_line()))
        if self.writes_numbers:
            self._api.cuStreamWriteValue32_v2(self._stream, self._address, number & 0xFFFFFFFF, 0)

    def wait(self) -> None:
        """Wait for all that was queued."""
        self._wait(self._api.cuStreamQuery, self._stream)
        self._done = self._count
        self._queue.clear()

    def wait_for(self, event: Any) -> None:
        """Wait for an event of the stream."""
        self._wait(self._api.cuEventQuery, event)

    def _wait(self, query: Any, what: Any) -> None:
        self.require_alive()
        code = query(what)
        if code == NOT_READY:
            code = self._poll(query, what)
        if code != SUCCESS:
            raise self.fault(code)

    def _poll(self, query: Any, what: Any) -> int:
        limit = settings.KERNEL_SECONDS
        start = changed = time.perf_counter()
        seen = self._word.value
        while (code := query(what)) == NOT_READY:
            now = time.perf_counter()
            if self._word.value != seen:
                seen, changed = self._word.value, now
            elif limit and now - changed > limit:
                raise self._endless(limit)
            if now - start > SPIN_SECONDS:
                time.sleep(PAUSE_SECONDS)
        return int(code)

    def require_alive(self) -> None:
        """Raise again what ended the context."""
        if self.lost is not None:
            first = self.lost
            raise DeviceError(
                f"{self._device} cannot be used any more: {first.what.partition(': ')[2]}",
                facts=first.facts,
                rule="after a fault the driver runs nothing in the process that had it",
                fix=first.fix,
                where=first.where,
            ) from first

    def fault(self, code: int) -> DeviceError:
        """The error of a code that a call gave, with the kernel at fault where one is."""
        if code not in FAULTS:
            return DeviceError(
                f"{self._device}: a call of the driver failed",
                facts=[("the driver says", describe(self._api, code))],
            )
        said = describe(self._api, code)
        self.lost = self._about(
            FAULTS[code], said, "CHECK=memory looks for such an access; start the process again"
        )
        return self.lost

    def _endless(self, limit: int) -> DeviceError:
        self.lost = self._about(
            f"has not ended after {limit} s",
            "still running",
            "set KERNEL_SECONDS to more seconds, or to 0 for no limit; start the process again",
        )
        return self.lost

    def _about(self, did: str, said: str, fix: str) -> DeviceError:
        """The error of the first launch that is not over."""
        unfinished = self.unfinished()
        facts: list[tuple[object, ...]] = [("the driver says", said)]
        if not unfinished:
            what, where = f"{self._device}: a kernel of this process {did}", user_line()
            return DeviceError(what, facts=facts, fix=fix, where=where)
        first = unfinished[0]
        names = first.kernels
        if not self.writes_numbers:
            names = tuple(name for each in unfinished for name in each.kernels)
        if len(names) == 1:
            what = f"kernel {names[0]!r} {did}"
            facts += [("grid", first.grid)] if first.grid else []
        else:
            what = f"one of {len(names)} kernels {did}"
            more = ["…"] if len(names) > KERNELS_SHOWN else []
            facts.append(("kernels", ", ".join([*names[:KERNELS_SHOWN], *more])))
            fix = f"DEBUG=2 runs them one by one and names it; {fix}"
        return DeviceError(
            f"{self._device}: {what}",
            facts=facts,
            rule="after a fault the driver runs nothing in the process that had it",
            fix=fix,
            where=first.where,
        )

    def unfinished(self) -> list[Launched]:
        """The launches that are not known to be over, the oldest first."""
        done = self._done
        if self.writes_numbers:
            # The word has the low bits; launches in flight are fewer than it can tell apart.
            behind = (self._count - self._word.value) & 0xFFFFFFFF
            done = max(done, self._count - behind)
        return [each for each in self._queue if each.number > done]

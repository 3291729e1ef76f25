"""Counts of what ran and of memory in use; always on, and cheap."""

from __future__ import annotations

from typing import Final


class _Counters:
    """Counts of what ran; always on. `reset` starts anew, memory in use stays.

    `kernel_count`, `global_ops` (operations), `global_mem` (bytes read and written), `time_sum_s`
    (seconds, where they are measured), `mem_used` (bytes), `mem_used_by` and `peak_memory` (bytes
    by device).
    """

    def __init__(self) -> None:
        self.mem_used_by: dict[str, int] = {}
        self.peak_memory: dict[str, int] = {}
        self.reset()

    def reset(self) -> None:
        self.kernel_count = 0
        self.global_ops = 0
        self.global_mem = 0
        self.time_sum_s = 0.0
        self.peak_memory = dict(self.mem_used_by)

    @property
    def mem_used(self) -> int:
        """Bytes in use on all devices."""
        return sum(self.mem_used_by.values())

    @property
    def mem_used_per_device(self) -> dict[str, int]:
        """`mem_used_by` by tinygrad's name."""
        return self.mem_used_by

    def count_memory(self, name: str, change: int) -> int:
        """Count bytes that a device gave or got back; how many are in use."""
        used = self.mem_used_by[name] = self.mem_used_by.get(name, 0) + change
        if used > self.peak_memory.get(name, -1):
            self.peak_memory[name] = used
        return used


GlobalCounters: Final = _Counters()

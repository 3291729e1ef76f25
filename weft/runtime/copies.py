"""Bytes from the memory of one device to that of another."""

from __future__ import annotations

from weft.runtime.cpu.memory import fresh_bytes
from weft.runtime.device import Device, Handle


def copy_bytes(source: Device, handle: Handle, target: Device, other: Handle, size: int) -> None:
    """Copy bytes from one device to another: directly where they can, else through the host."""
    if target.peers is not None and target.peers.try_copy_from(other, source, handle, size):
        return
    if source.host_memory is not None:
        target.copy_in(other, source.host_memory.host_view(handle, size))
    elif target.host_memory is not None:
        source.copy_out(target.host_memory.host_view(other, size), handle)
    else:
        data = fresh_bytes(size)
        source.copy_out(data, handle)
        target.copy_in(other, data)

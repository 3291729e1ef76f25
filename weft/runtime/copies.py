"""Bytes of the host, and bytes from the memory of one device to that of another."""

from __future__ import annotations

from weft.runtime.cpu.memory import allocate, share
from weft.runtime.device import Device, Handle


def fresh_bytes(size: int) -> memoryview:
    """Bytes to be written, whose contents are not defined: nobody waits for them to be zeroed."""
    return memoryview(share(allocate(size))).cast("B") if size else memoryview(b"")


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

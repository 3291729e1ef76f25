"""Devices: memory, queues and compilers of real machines, one folder each."""

"""Kernels in C, compiled by the compiler of the system."""

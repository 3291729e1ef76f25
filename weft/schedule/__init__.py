"""Tensor graphs to kernels: rangeify, fuse, split, plan; phases.py is the list."""

"""Kernels become programs: a pure function of kernel, target and opts, in the passes of phases."""

"""Kernels to programs: opts, expansion, decomposition, lowering; phases.py is the list."""

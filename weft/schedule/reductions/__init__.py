"""Reductions, scans and scatters: their order, their parts, and where they add."""

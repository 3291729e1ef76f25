"""Benchmarks: each one runs its peer in the same process. `python -m bench` prints the table."""

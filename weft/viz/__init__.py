"""A viewer of traces: files that `VIZ=1` writes become one page that needs nothing else."""

"""Long-running random tests. Each prints its seed first and takes `--seed` and `--count`."""

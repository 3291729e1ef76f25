"""Programs that leave the process: files that a later one loads and runs without the source."""

"""What the engine keeps on disk: compiled programs, and schedules as lists of them."""

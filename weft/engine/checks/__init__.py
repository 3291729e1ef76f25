"""What the setting CHECK turns on: levels, redzones around memory, finite values."""

"""A device that schedules and compiles for any target, and runs nothing."""

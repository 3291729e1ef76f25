"""A graph over several devices becomes one for each."""

"""Which opts a kernel gets: heuristics without search."""

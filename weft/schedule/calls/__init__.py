"""Calls in a graph: found, written out, trimmed."""

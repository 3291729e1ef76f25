"""Reverse mode as rules on the graph."""

"""The text form of a graph."""

from weft.ir.text.text import dump, locate, mark, parse, show

__all__ = ["dump", "locate", "mark", "parse", "show"]

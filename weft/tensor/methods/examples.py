"""Docstrings of methods that are made from tables: a summary, what else is so, and an example."""

from __future__ import annotations


def with_example(summary: str, call: str, shown: str, more: str = "") -> str:
    """The docstring of a method.

    >>> with_example("Add.", "Tensor([1]).add(2).tolist()", "[3]", "PyTorch: add.").split("\\n")[0]
    'Add. PyTorch: add.'
    """
    first = f"{summary} {more}".strip()
    return f"{first}\n\n>>> from weft.tensor import Tensor\n>>> {call}\n{shown}\n"

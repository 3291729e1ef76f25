"""Lets the functions of `weft.nn.functional` refuse a first argument that is not a tensor.

It is imported last, and replaces each that was imported before by a checked function.
"""

from __future__ import annotations

import sys
from types import FunctionType

from weft.nn.functional.inputs import require_tensors

_PACKAGE = vars(sys.modules["weft.nn.functional"])
require_tensors(
    _PACKAGE,
    [
        name
        for name, value in _PACKAGE.items()
        if isinstance(value, FunctionType) and name[0] != "_" and name != "missing_name"
    ],
)

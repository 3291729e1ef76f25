"""What `__array_namespace_info__` says of devices, dtypes and abilities."""

from __future__ import annotations

from typing import Any

from weft.array_api.promotion import DEFAULT_INTEGER, INDEX, KINDS
from weft.ir.dtypes import DType, complex_of, dtypes
from weft.support.errors import ArgumentError
from weft.tensor.create.creation import device_name


class NamespaceInfo:
    """Answers about this namespace, by the names of the standard."""

    def capabilities(self) -> dict[str, Any]:
        """What a program may do here."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": None,
        }

    def default_device(self) -> str:
        """Where arrays are if nobody says."""
        name: str = device_name(None)
        return name

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """The dtypes of what is made without one."""
        return {
            "real floating": dtypes.default_float,
            "complex floating": complex_of(dtypes.default_float),
            "integral": DEFAULT_INTEGER,
            "indexing": INDEX,
        }

    def devices(self) -> list[str]:
        """Where arrays can be."""
        return sorted({self.default_device(), "CPU"})

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """All dtypes by name, or those of a kind."""
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        for each in kinds:
            if each not in KINDS:
                raise ArgumentError(f"dtypes: unknown kind {each!r}", rule=", ".join(KINDS))
        return {dtype.name: dtype for each in kinds for dtype in KINDS[each]}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807 -- the standard's name
    """What this namespace has and can."""
    return NamespaceInfo()

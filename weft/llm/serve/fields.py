"""The body of a request, field by field: what is missing or wrong is an answer of status 4xx."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Refused(Exception):  # noqa: N818 -- an answer, more than an error
    """A request that is answered with a status and a reason."""

    def __init__(
        self, message: str, *, status: int = 400, field: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.status, self.field, self.code = message, status, field, code

    def body(self) -> dict[str, Any]:
        kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
        kind = kinds.get(self.status, "server_error" if self.status >= 500 else "")
        return {
            "error": {
                "message": self.message,
                "type": kind or "invalid_request_error",
                "param": self.field,
                "code": self.code,
            }
        }


class Fields:
    """Typed access to a body; null counts as absent."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body

    def get(self, name: str) -> Any:
        return self.body.get(name)

    def number(self, name: str, default: float, least: float, most: float) -> float:
        value = self.get(name)
        if value is None:
            return default
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not least <= value <= most:  # a nan is in no range
            raise Refused(f"{name} is a number from {least:g} to {most:g}", field=name)
        return float(value)

    def whole(self, name: str, default: int | None, least: int, most: int) -> int | None:
        value = self.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise Refused(f"{name} is a whole number from {least} to {most}", field=name)
        return value

    def flag(self, name: str) -> bool:
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise Refused(f"{name} is true or false", field=name)
        return bool(value)

    def text(self, name: str, default: str = "") -> str:
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise Refused(f"{name} is a text", field=name)
        return default if value is None else value

    def mapping(self, name: str) -> Mapping[str, Any]:
        value = self.get(name)
        if value is not None and not isinstance(value, Mapping):
            raise Refused(f"{name} is an object", field=name)
        return value or {}

    def items(self, name: str) -> list[Any]:
        value = self.get(name)
        if value is not None and not isinstance(value, list):
            raise Refused(f"{name} is a list", field=name)
        return value or []

    def require_absent(self, *names: str) -> None:
        """Fields that would change the answer and are not supported."""
        for name in names:
            if self.get(name) not in (None, False):
                raise Refused(f"{name} is not supported", field=name, code="unsupported")

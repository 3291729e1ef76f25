"""Tokenizers from the files of a Hugging Face model: tokenizer.json and what stands beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from weft.llm.text.tokenizer import Encoding, Marks, TextTokenizer, package
from weft.support.errors import FileFormatError, file_error


def tokenizer_from_json(folder: str | Path) -> TextTokenizer:
    """The tokenizer of a folder with tokenizer.json, or of that file."""
    path = Path(folder)
    path = path / "tokenizer.json" if path.is_dir() else path
    text = _text(path)
    backend = _backend(path, text)
    described = _json(path, text)
    added = [each for each in described.get("added_tokens", []) if isinstance(each, dict)]
    special = frozenset(each["id"] for each in added if each.get("special"))
    config = _optional(path.with_name("tokenizer_config.json"))
    encoding, strips = _encoding_of(described)
    return TextTokenizer(
        backend,
        encoding,
        _marks(backend, path, config),
        special=special,
        literal=frozenset(each["id"] for each in added) - special,
        strips_space=strips,
        templates=_templates(path, config),
    )


def _backend(path: Path, text: str) -> Any:
    try:
        return package().Tokenizer.from_str(text)
    except Exception as failure:  # of the package, which has no class of its own for it
        if type(failure) is not Exception:
            raise
        raise FileFormatError(f"tokenizer: {path} cannot be read: {failure}") from None


def _encoding_of(described: dict[str, Any]) -> tuple[Encoding, bool]:
    """How the vocabulary spells bytes, and whether a first space is dropped, by the decoder."""
    steps = _steps(described.get("decoder"))
    kinds = [step.get("type") for step in steps]
    if "ByteLevel" in kinds:
        return "bytes", False
    if "WordPiece" in kinds:
        return "wordpiece", True
    scheme = next((s.get("prepend_scheme") for s in steps if s.get("type") == "Metaspace"), None)
    return "sentencepiece", "Strip" in kinds or scheme in ("always", "first")


def _steps(decoder: Any) -> list[dict[str, Any]]:
    if not isinstance(decoder, dict):
        return []
    if decoder.get("type") == "Sequence":
        return [step for part in decoder.get("decoders", []) for step in _steps(part)]
    return [decoder]


def _marks(backend: Any, path: Path, config: dict[str, Any]) -> Marks:
    def number(name: str) -> int | None:
        token = config.get(name)
        token = token.get("content") if isinstance(token, dict) else token
        return backend.token_to_id(token) if isinstance(token, str) else None

    ends = {number("eos_token")}
    generation = _optional(path.with_name("generation_config.json")).get("eos_token_id")
    ends |= set(generation if isinstance(generation, list) else [generation])
    empty = backend.encode("", add_special_tokens=True).ids  # what is put around every text
    begin = number("bos_token")
    begin = begin if begin is not None else number("cls_token")
    return Marks(
        begin=begin,
        ends=frozenset(end for end in ends if type(end) is int),
        separator=number("sep_token"),
        begins_text=begin is not None and begin in empty[:1],
        ends_text=bool(empty) and empty[-1] != begin,
    )


def _templates(path: Path, config: dict[str, Any]) -> dict[str, str]:
    found = config.get("chat_template")
    alone = path.with_name("chat_template.jinja")
    if alone.is_file():
        return {"default": _text(alone)}
    if isinstance(found, str):
        return {"default": found}
    rows = found if isinstance(found, list) else []
    return {row["name"]: row["template"] for row in rows if {"name", "template"} <= row.keys()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as failure:
        raise file_error(f"tokenizer: {path}", failure) from None
    except UnicodeDecodeError:
        raise FileFormatError(f"tokenizer: expected text in {path}, got other bytes") from None


def _json(path: Path, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as failure:
        raise FileFormatError(f"tokenizer: expected JSON in {path}: {failure}") from None
    if not isinstance(found, dict):
        raise FileFormatError(f"tokenizer: expected an object in {path}")
    return found


def _optional(path: Path) -> dict[str, Any]:
    return _json(path, _text(path)) if path.is_file() else {}

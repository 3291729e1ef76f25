"""A tokenizer with what a model file says about its tokens.

The work is done by the package `tokenizers`; `from_gguf.py` and `from_json.py` make its parts.
Text comes back from tokens byte by byte, so a stream of tokens gives the text of all of them,
whatever characters are cut by a token.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from weft.support.errors import ArgumentError, NotSupported

Encoding = Literal["bytes", "sentencepiece", "wordpiece"]


def package() -> Any:
    """The package `tokenizers`."""
    try:
        import tokenizers
    except ImportError:
        raise NotSupported(
            "tokenizer: the package tokenizers is not installed",
            fix='install it: pip install "weft[llm]"',
        ) from None
    return tokenizers


@dataclass(frozen=True)
class Marks:
    """The tokens that mean something other than text."""

    begin: int | None = None
    ends: frozenset[int] = frozenset()  # an answer ends with any of them
    separator: int | None = None
    begins_text: bool = False  # whether `begin` is put before a text
    ends_text: bool = False  # whether an end is put behind it


@dataclass(frozen=True)
class TextTokenizer:
    """Text to tokens and back.

    `backend` is a `tokenizers.Tokenizer`; `special` are the tokens that are not text.
    """

    backend: Any
    encoding: Encoding
    marks: Marks = field(default_factory=Marks)
    special: frozenset[int] = frozenset()
    literal: frozenset[int] = frozenset()  # added tokens, which stand for themselves
    strips_space: bool = False  # a space before the first word is not part of the text
    templates: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def size(self) -> int:
        """The number of tokens."""
        return int(self.backend.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str, marked: bool = True) -> list[int]:
        """The tokens of a text; `marked` adds the first and last ones that the model expects."""
        found: list[int] = self.backend.encode(text, add_special_tokens=False).ids
        if not marked:
            return found
        marks, begin = self.marks, self.marks.begin
        if marks.begins_text and begin is not None and found[:1] != [begin]:
            found = [begin, *found]
        end = marks.separator if marks.separator is not None else min(marks.ends, default=None)
        if marks.ends_text and end is not None and found[-1:] != [end]:
            found = [*found, end]
        return found

    def decode(self, tokens: Iterable[int], special: bool = False) -> str:
        """The text of tokens; `special` keeps the tokens that are not text."""
        stream = TextStream(self, special)
        return "".join([stream.add(token) for token in tokens]) + stream.end()

    def name(self, token: int) -> str | None:
        """A token as the vocabulary spells it, or None where there is none of this number."""
        found: str | None = self.backend.id_to_token(token)
        return found

    def number(self, name: str) -> int | None:
        found: int | None = self.backend.token_to_id(name)
        return found

    @cached_property
    def token_bytes(self) -> list[bytes]:
        """The bytes of each token."""
        return [self.bytes_of(token) for token in range(self.size)]

    def bytes_of(self, token: int) -> bytes:
        """The bytes of a token."""
        name = self.name(token)
        if name is None:
            return b""
        if token in self.special or token in self.literal:
            return name.encode()
        return _TO_BYTES[self.encoding](name)

    def require_tokens(self, tokens: Sequence[int]) -> None:
        wrong = [t for t in tokens if type(t) is not int or not 0 <= t < self.size]
        if wrong:
            raise ArgumentError(
                f"tokenizer: there is no token {wrong[0]!r}",
                rule=f"tokens are numbers from 0 to {self.size - 1}",
            )


class TextStream:
    """The text of tokens that come one by one; half a character waits for its other half."""

    def __init__(self, tokenizer: TextTokenizer, special: bool = False) -> None:
        self._tokenizer = tokenizer
        self._special = special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_first = True

    def add(self, token: int) -> str:
        """The characters that this token completes."""
        tokenizer = self._tokenizer
        if token in tokenizer.special and not self._special:
            return ""
        data = tokenizer.bytes_of(token) if 0 <= token < tokenizer.size else b""
        if self._is_first and tokenizer.strips_space and token not in tokenizer.special:
            data = data.removeprefix(b" ")
        self._is_first = False
        return self._decoder.decode(data)

    def end(self) -> str:
        """What is left; bytes that are not a character become one sign."""
        return self._decoder.decode(b"", final=True)


def _byte_alphabet() -> dict[str, int]:
    """The characters that stand for bytes in byte-level vocabularies.

    Printable bytes stand for themselves, the others for the characters from 256 on.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + number): byte for number, byte in enumerate(others)
    }


_BYTES: Final = _byte_alphabet()


def _of_byte_level(name: str) -> bytes:
    if all(character in _BYTES for character in name):
        return bytes(_BYTES[character] for character in name)
    return name.encode()


def _of_sentencepiece(name: str) -> bytes:
    if len(name) == 6 and name.startswith("<0x") and name.endswith(">"):
        try:
            return bytes([int(name[3:5], 16)])
        except ValueError:
            pass
    return name.replace("▁", " ").encode()


def _of_wordpiece(name: str) -> bytes:
    return name[2:].encode() if name.startswith("##") else b" " + name.encode()


_TO_BYTES: Final = {
    "bytes": _of_byte_level,
    "sentencepiece": _of_sentencepiece,
    "wordpiece": _of_wordpiece,
}

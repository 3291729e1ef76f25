"""Tokenizers of language models, built from the metadata of a GGUF file.

The work is done by the package `tokenizers`; here its parts are chosen as the file says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weft.support.errors import FileFormatError, NotSupported

_CONTROL: Final = 3
_USER_DEFINED: Final = 4
# How text is cut before pairs are merged, by the name that a file gives it.
_SINGLE_DIGITS: Final = ("smollm", "starcoder", "refact", "command-r")
_PLAIN: Final = ("gpt-2", "default", "smollm", "starcoder", "refact", "command-r")


def tokenizer_from_gguf(metadata: Mapping[str, Any]) -> Any:
    """A `tokenizers.Tokenizer` with byte-level pairs, as GPT-2 has them.

    `encode(text).ids` are the tokens of a text, `decode(ids)` is the text.
    """
    tokens, merges, kinds = (
        _strings(metadata, "tokens"),
        _strings(metadata, "merges"),
        metadata.get("tokenizer.ggml.token_type"),
    )
    model, cut = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if model != "gpt2" or (cut or "default") not in _PLAIN:
        raise NotSupported(
            f"tokenizer: the file needs {model!r} with {cut!r}",
            law="byte-level pairs are read (gpt2), cut as " + ", ".join(_PLAIN),
        )
    try:
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    except ImportError:
        raise NotSupported(
            "tokenizer: the package tokenizers is not installed",
            fix='install it: pip install "weft[llm]"',
        ) from None
    try:
        pairs = [_pair(merge) for merge in merges]
        vocabulary = {token: number for number, token in enumerate(tokens)}
        made = Tokenizer(models.BPE(vocabulary, pairs))
    except Exception as failure:  # of the package, which has no class of its own for it
        raise FileFormatError(f"tokenizer: the pairs do not fit the tokens: {failure}") from None
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = [pre_tokenizers.Digits(individual_digits=True)] if cut in _SINGLE_DIGITS else []
    made.pre_tokenizer = pre_tokenizers.Sequence([*digits, byte_level])
    made.decoder = decoders.ByteLevel()
    marks = kinds if isinstance(kinds, list) and len(kinds) == len(tokens) else []
    special = [t for t, kind in zip(tokens, marks, strict=False) if kind == _CONTROL]
    added = [t for t, kind in zip(tokens, marks, strict=False) if kind == _USER_DEFINED]
    made.add_special_tokens([AddedToken(token, normalized=False) for token in special])
    made.add_tokens([AddedToken(token, normalized=False) for token in added])
    return made


def _strings(metadata: Mapping[str, Any], name: str) -> list[str]:
    found = metadata.get(f"tokenizer.ggml.{name}")
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise FileFormatError(f"tokenizer: the metadata has no tokenizer.ggml.{name}")
    return found


def _pair(merge: str) -> tuple[str, str]:
    left, space, right = merge.partition(" ")
    if not space or not left or not right:
        raise ValueError(f"expected a pair, got {merge!r}")
    return left, right

"""Tokenizers from the metadata of a GGUF file.

The file names one of four models, and what it says becomes the parts of a `tokenizers.Tokenizer`:
pairs of bytes (`gpt2`), pairs by score as SentencePiece has them (`llama`), the likeliest pieces
(`t5`), and parts of words (`bert`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from weft.llm.text.pieces import BEGINS, PIECES
from weft.llm.text.tokenizer import Encoding, Marks, TextTokenizer, package
from weft.support.errors import FileFormatError, NotSupported

_UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 2, 3, 4, 6
# Tokens that end a turn, in files that name only the end of a text.
_TURN_ENDS: Final = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>", "<|endoftext|>"),
    *("<|end_of_text|>", "<|return|>", "<|call|>", "<turn|>", "<EOT>", "_<EOT>"),
)


def tokenizer_from_gguf(metadata: Mapping[str, Any]) -> TextTokenizer:
    """The tokenizer that a GGUF file describes.

    `encode(text)` are the tokens of a text, `decode(tokens)` is the text.
    """
    model = metadata.get("tokenizer.ggml.model")
    row = _MODELS.get(model) if isinstance(model, str) else None
    if row is None:
        raise NotSupported(
            f"tokenizer: the file needs the model {model!r}",
            rule="the models that are read are " + ", ".join(_MODELS),
        )
    make, encoding = row
    parts = _Parts(metadata)
    try:
        backend = make(parts)
    except (FileFormatError, NotSupported):
        raise
    except Exception as failure:  # of the package, which has no class of its own for it
        raise FileFormatError(f"tokenizer: the tokens do not fit: {failure}") from None
    literal = parts.add_tokens(backend)
    return TextTokenizer(
        backend,
        encoding,
        parts.marks(str(model)),
        special=frozenset(parts.numbers(_CONTROL, _UNKNOWN)),
        literal=literal,
        strips_space=encoding == "wordpiece" or (model == "llama" and parts.has_prefix),
        templates=_templates(metadata),
    )


class _Parts:
    """What the metadata say about tokens, checked."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self.metadata = metadata
        self.tokens = self.strings("tokens")
        kinds = metadata.get("tokenizer.ggml.token_type")
        is_list = isinstance(kinds, list) and len(kinds) == len(self.tokens)
        self.kinds: list[int] = kinds if is_list else [1] * len(self.tokens)  # type: ignore[assignment]
        self.cut = str(metadata.get("tokenizer.ggml.pre") or "default")
        self.has_prefix = bool(metadata.get("tokenizer.ggml.add_space_prefix", True))

    def strings(self, name: str) -> list[str]:
        found = self.metadata.get(f"tokenizer.ggml.{name}")
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise FileFormatError(f"tokenizer: the metadata has no tokenizer.ggml.{name}")
        return found

    def scores(self) -> list[float]:
        found = self.metadata.get("tokenizer.ggml.scores")
        if not isinstance(found, list) or len(found) != len(self.tokens):
            raise FileFormatError("tokenizer: the metadata has no tokenizer.ggml.scores")
        return found

    def vocabulary(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}

    def numbers(self, *kinds: int) -> list[int]:
        return [number for number, kind in enumerate(self.kinds) if kind in kinds]

    def number(self, *names: str) -> int | None:
        """The first of these that the file gives a token for."""
        for name in names:
            found = self.metadata.get(f"tokenizer.ggml.{name}_token_id")
            if type(found) is int and 0 <= found < len(self.tokens):
                return found
        return None

    def unknown(self) -> str | None:
        found = self.number("unknown")
        marked = self.numbers(_UNKNOWN)
        if found is None and marked:
            found = marked[0]
        return None if found is None else self.tokens[found]

    def flag(self, name: str, default: bool) -> bool:
        found = self.metadata.get(f"tokenizer.ggml.{name}", default)
        return bool(found)

    def add_tokens(self, backend: Any) -> frozenset[int]:
        """Add tokens that are found before anything else; give those that stand for themselves."""
        added = package().AddedToken
        special, own = self.numbers(_CONTROL), self.numbers(_USER_DEFINED)
        backend.add_special_tokens([added(self.tokens[n], normalized=False) for n in special])
        backend.add_tokens([added(self.tokens[n], normalized=False) for n in own])
        return frozenset(n for n in own if "▁" not in self.tokens[n])

    def marks(self, model: str) -> Marks:
        begin = self.number("bos", "cls")
        ends = {self.number("eos"), self.number("eot"), self.number("eom")} - {None}
        known = {self.tokens[number] for number in self.numbers(_CONTROL, _USER_DEFINED)}
        ends |= {self.tokens.index(name) for name in _TURN_ENDS if name in known}
        begins = model in ("llama", "bert") or (model == "gpt2" and self.cut in BEGINS)
        return Marks(
            begin=begin,
            ends=frozenset(ends),  # type: ignore[arg-type]
            separator=self.number("seperator", "separator", "sep") if model == "bert" else None,
            begins_text=self.flag("add_bos_token", begins),
            ends_text=self.flag("add_eos_token", model in ("t5", "bert")),
        )


def _byte_pairs(parts: _Parts) -> Any:
    """Pairs of bytes, in pieces that regular expressions cut."""
    if parts.cut not in PIECES:
        raise NotSupported(
            f"tokenizer: the file cuts text as {parts.cut!r}",
            rule="text is cut as " + ", ".join(sorted(PIECES)),
        )
    halves = [merge.partition(" ") for merge in parts.strings("merges")]
    wrong = next((each for each in halves if not (each[0] and each[2])), None)
    if wrong is not None:
        raise FileFormatError(f"tokenizer: expected a pair, got {''.join(wrong)!r}")
    merges = [(left, right) for left, _, right in halves]
    tokenizers = package()
    pre = tokenizers.pre_tokenizers
    ignores = parts.cut in ("llama3", "llama-v3", "llama-bpe")  # whole words stay whole
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE(parts.vocabulary(), merges, ignore_merges=ignores)
    )
    cuts = [pre.Split(tokenizers.Regex(each), "isolated") for each in PIECES[parts.cut]]
    made.pre_tokenizer = pre.Sequence([*cuts, pre.ByteLevel(False, use_regex=False)])
    made.decoder = tokenizers.decoders.ByteLevel()
    return made


def _scored_pairs(parts: _Parts) -> Any:
    """Pairs whose union is a token, the one of the highest score first."""
    tokenizers = package()
    vocabulary = parts.vocabulary()
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            vocabulary,
            _merges(parts.tokens, parts.scores(), parts.kinds),
            unk_token=parts.unknown(),
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    normal, decoders = tokenizers.normalizers, tokenizers.decoders
    spaces = normal.Replace(" ", "▁")
    made.normalizer = (
        normal.Sequence([normal.Prepend("▁"), spaces]) if parts.has_prefix else spaces
    )
    ends = [decoders.Strip(" ", 1, 0)] if parts.has_prefix else []
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *ends]
    )
    return made


def _merges(
    tokens: Sequence[str], scores: Sequence[float], kinds: Sequence[int]
) -> list[tuple[str, str]]:
    """All pairs of tokens that are a token together, by its score."""
    skipped = (_CONTROL, _UNKNOWN, _BYTE)
    score_of = {
        token: score
        for token, score, kind in zip(tokens, scores, kinds, strict=True)
        if kind not in skipped
    }
    pairs: list[tuple[float, str, str]] = []
    for token, score in score_of.items():
        halves = [
            (token[:at], token[at:])
            for at in range(1, len(token))
            if token[:at] in score_of and token[at:] in score_of
        ]
        halves.sort(key=lambda half: (score_of[half[0]], score_of[half[1]]), reverse=True)
        pairs += [(score, left, right) for left, right in halves]
    pairs.sort(key=lambda pair: -pair[0])  # stable: halves of a token keep their order
    return [(left, right) for _, left, right in pairs]


def _likeliest_pieces(parts: _Parts) -> Any:
    """The pieces of a text with the highest product of their probabilities."""
    tokenizers = package()
    unknown = parts.unknown()
    has_bytes = _BYTE in parts.kinds
    made = tokenizers.Tokenizer(
        tokenizers.models.Unigram(
            list(zip(parts.tokens, parts.scores(), strict=True)),
            unk_id=None if unknown is None else parts.tokens.index(unknown),
            byte_fallback=has_bytes,
        )
    )
    normal = tokenizers.normalizers
    steps = []
    charsmap = parts.metadata.get("tokenizer.ggml.precompiled_charsmap")
    if isinstance(charsmap, list) and charsmap:
        steps.append(normal.Precompiled(bytes(value & 255 for value in charsmap)))
    if parts.flag("remove_extra_whitespaces", True):
        steps += [normal.Strip(), normal.Replace(tokenizers.Regex(" {2,}"), " ")]
    if steps:
        made.normalizer = normal.Sequence(steps)
    scheme = "always" if parts.has_prefix else "never"
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace("▁", prepend_scheme=scheme)
    spaces = tokenizers.decoders.Metaspace("▁", prepend_scheme=scheme)
    fallback = [tokenizers.decoders.ByteFallback()] if has_bytes else []
    made.decoder = tokenizers.decoders.Sequence([*fallback, spaces])
    return made


def _parts_of_words(parts: _Parts) -> Any:
    """Words, then their longest known beginnings; GGUF marks what begins a word."""
    tokenizers = package()
    vocabulary = {_wordpiece(token): number for number, token in enumerate(parts.tokens)}
    unknown = parts.unknown() or "[UNK]"
    is_cased = any(
        token.lower() != token
        for token, kind in zip(parts.tokens, parts.kinds, strict=True)
        if kind == 1 and not token.startswith("[")
    )
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token=unknown))
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=not is_cased)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.decoder = tokenizers.decoders.WordPiece(cleanup=False)
    return made


def _wordpiece(token: str) -> str:
    if token.startswith("▁"):
        return token[1:]
    return token if token.startswith("[") and token.endswith("]") else "##" + token


def _templates(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Chat templates by name; the main one has the name `default`."""
    start = "tokenizer.chat_template"
    found = {
        key[len(start) :].lstrip(".") or "default": text
        for key, text in metadata.items()
        if key.startswith(start) and isinstance(text, str)
    }
    return found


_MODELS: Final[dict[str, tuple[Callable[[_Parts], Any], Encoding]]] = {
    "gpt2": (_byte_pairs, "bytes"),
    "llama": (_scored_pairs, "sentencepiece"),
    "t5": (_likeliest_pieces, "sentencepiece"),
    "bert": (_parts_of_words, "wordpiece"),
}

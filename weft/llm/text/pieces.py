"""How a text is cut into pieces before pairs are merged, by the name that a GGUF file gives it.

A kind is a list of regular expressions. Each cuts the pieces of the one before: what matches is a
piece, and so is what lies between two matches. `PIECES` is read by `from_gguf.py`.
"""

from __future__ import annotations

from typing import Final

# Contractions, in lower case or in any.
_LOWER: Final = "'s|'t|'re|'ve|'m|'ll|'d"
_ANY_CASE: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES: Final = r"\s+(?!\S)|\s+"
_LINES: Final = r"\s*[\r\n]+"

_GPT2: Final = rf"{_LOWER}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_SPACES}"
_WORD: Final = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SIGNS: Final = r" ?[^\s\p{L}\p{N}]+[\r\n]*"


def _with_numbers(numbers: str) -> tuple[str, ...]:
    """Words with one sign before them, numbers as stated, signs with the line ends behind them."""
    return (f"{_ANY_CASE}|{_WORD}|{numbers}|{_SIGNS}|{_LINES}|{_SPACES}",)


_CAPITALS: Final = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_SMALL: Final = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def _by_case(numbers: str, ending: str) -> tuple[str, ...]:
    """Words cut where small letters are followed by capitals."""
    before = r"[^\r\n\p{L}\p{N}]?"
    words = (
        rf"{before}{_CAPITALS}*{_SMALL}+{ending}|{before}{_CAPITALS}+{_SMALL}*{ending}"
        rf"|{numbers}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_LINES}|{_SPACES}"
    )
    return (words,)


_SINGLE_DIGITS: Final = (r"\p{N}", _GPT2)
_THREE_DIGITS: Final = _with_numbers(r"\p{N}{1,3}")
_ONE_DIGIT: Final = _with_numbers(r"\p{N}")
_SENTENCE_ENDS: Final = r" ?[^(\s|.,!?…。，、।۔،)]+"
# Letters that have a case, but those of formulas.
_DEEPSEEK_LETTERS: Final = r"\s?[\p{Lu}\p{Ll}\p{Lt}&&[^\x{1D400}-\x{1D7CB}]]+"
_CJK: Final = r"[一-龥ࠀ-一가-퟿]+"

KINDS: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    (
        *("gpt-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "phi-2", "roberta-bpe"),
        *("jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code"),
        *("gigachat", "a.x-4.0", "mellum", "modern-bert", "exaone4"),
    ): (_GPT2,),
    ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"): (
        _SINGLE_DIGITS
    ),
    (
        *("llama3", "llama-v3", "llama-bpe", "dbrx", "smaug-bpe", "falcon3", "falcon-h1"),
        *("pixtral", "midm-2.0", "lfm2", "glm4", "chatglm-bpe"),
    ): _THREE_DIGITS,
    (
        *("qwen2", "deepseek-r1-qwen", "kormo", "stablelm2", "megrez", "hunyuan", "grok-2"),
        *("solar-open",),
    ): _ONE_DIGIT,
    ("qwen35",): (
        rf"{_ANY_CASE}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_LINES}|{_SPACES}",
    ),
    ("bailingmoe", "bailingmoe2", "llada-moe"): (
        rf"{_ANY_CASE}|[^\r\n\p{{L}}\p{{N}}]?+\p{{L}}+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]++[\r\n]*|\s*[\r\n]|{_SPACES}",
    ),
    ("seed-coder",): (
        rf"{_ANY_CASE}|{_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_LINES}|{_SPACES}",
    ),
    ("gpt-4o", "llama4", "kanana2", "minimax-m2"): _by_case(r"\p{N}{1,3}", f"{_ANY_CASE}?"),
    ("tekken",): _by_case(r"\p{N}", ""),
    ("kimi-k2",): (
        r"[\p{Han}]+|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
        rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]+{_ANY_CASE}?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]*{_ANY_CASE}?|"
        rf"\p{{N}}{{1,3}}|{_SIGNS}|{_LINES}|{_SPACES}",
    ),
    ("deepseek-llm",): (
        *(r"[\r\n]", _DEEPSEEK_LETTERS, r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$"),
        *(_CJK, r"\p{N}+"),
    ),
    ("deepseek-coder",): (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, r"\p{N}"),
    ("deepseek-v3", "hunyuan-dense", "youtu"): (
        r"\p{N}{1,3}",
        r"[一-龥぀-ゟ゠-ヿ]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
        r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
        rf"|{_LINES}|{_SPACES}",
    ),
    ("falcon",): (r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, r"[0-9][0-9][0-9]"),
    ("poro-chat", "bloom", "gpt3-finnish"): (_SENTENCE_ENDS,),
    ("viking",): (_SENTENCE_ENDS, r"\p{N}"),
    ("superbpe",): (r"\p{N}+", r"(?=(\d{3})+(?!\d))"),
    ("chameleon",): (
        *(r"<sentinel:[0-9]+>", r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )"),
        *(r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", _GPT2),
    ),
    ("default",): (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"),
}
PIECES: Final = {name: expressions for names, expressions in KINDS.items() for name in names}
# Files of these kinds that do not say so begin each text with the first token.
BEGINS: Final = frozenset(
    (
        *("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0"),
        *("lfm2", "tekken", "chameleon", "seed-coder"),
    )
)

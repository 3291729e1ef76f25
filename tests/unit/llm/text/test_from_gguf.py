"""Tokenizers from metadata: equal to those of the package `tokenizers` on mixed text."""

import itertools
import random

import pytest

from tests.unit.llm.text.mixed_text import mixed_text
from weft import FileFormatError, NotSupported
from weft.llm.text.from_gguf import tokenizer_from_gguf
from weft.llm.text.pieces import PIECES
from weft.llm.text.tokenizer import TextStream

tokenizers = pytest.importorskip("tokenizers", reason="needs the extra `llm`")
pre = tokenizers.pre_tokenizers
TEXTS = mixed_text()
METADATA = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": ["<end>", "a", "b", "Ġ", "ab", "Ġab", "1", "11"],
    "tokenizer.ggml.token_type": [3, 1, 1, 1, 1, 1, 1, 1],
    "tokenizer.ggml.merges": ["a b", "Ġ ab", "1 1"],
}
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split(*expressions):
    cuts = [pre.Split(tokenizers.Regex(each), "isolated") for each in expressions]
    return pre.Sequence([*cuts, pre.ByteLevel(False, use_regex=False)])


# How the tokenizer.json files of these models cut text.
REFERENCES = {
    "gpt-2": pre.ByteLevel(False),
    "smollm": pre.Sequence([pre.Digits(True), pre.ByteLevel(False)]),
    "llama-bpe": split(_LLAMA3),
    "qwen2": split(_LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")),
    "tekken": split(_TEKKEN),
    "deepseek-coder": split(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"),
}


def byte_pairs(cut):
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer, made.decoder = REFERENCES[cut], tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=900,
        show_progress=False,
        special_tokens=["<|end|>"],
        initial_alphabet=pre.ByteLevel.alphabet(),
    )
    made.train_from_iterator(TEXTS, trainer)
    return made


def names_of(made):
    return [made.id_to_token(number) for number in range(made.get_vocab_size())]


def merges_of(made):
    import json

    pairs = json.loads(made.to_str())["model"]["merges"]
    return [pair if isinstance(pair, str) else " ".join(pair) for pair in pairs]


@pytest.mark.parametrize("cut", REFERENCES)
def test_byte_pairs_are_those_of_the_package(cut):
    peer = byte_pairs(cut)
    names = names_of(peer)
    ours = tokenizer_from_gguf(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": cut,
            "tokenizer.ggml.tokens": names,
            "tokenizer.ggml.token_type": [3] + [1] * (len(names) - 1),
            "tokenizer.ggml.merges": merges_of(peer),
            "tokenizer.ggml.add_bos_token": False,
        }
    )
    for text in TEXTS:
        ids = peer.encode(text).ids
        if cut == "llama-bpe":  # this kind takes words that are a token as they are
            assert ours.decode(ours.encode(text)) == text
        else:
            assert ours.encode(text) == ids
        assert ours.decode(ids) == text == peer.decode(ids)
    assert ours.encode("a<|end|>b") == peer.encode("a<|end|>b").ids


@pytest.mark.parametrize("cut", sorted(PIECES))
def test_every_kind_cuts_and_loses_nothing(cut):
    alphabet = sorted(pre.ByteLevel.alphabet())
    ours = tokenizer_from_gguf(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": cut,
            "tokenizer.ggml.tokens": alphabet,
            "tokenizer.ggml.merges": [],
        }
    )
    for text in TEXTS[:40]:
        assert ours.decode(ours.encode(text)) == text


def scored_metadata():
    """Pieces of a SentencePiece model: letters of the text, then unions of two by score."""
    trainer = tokenizers.SentencePieceBPETokenizer()
    trainer.train_from_iterator(TEXTS[:200], vocab_size=700, show_progress=False)
    found = [name for name in names_of(trainer) if name != "<unk>"]
    controls = ["<unk>", "<s>", "</s>"]
    octets = [f"<0x{byte:02X}>" for byte in range(256)]
    names = [*controls, *octets, *found]
    scores = [0.0] * (3 + 256) + [-float(index) for index in range(len(found))]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": names,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * len(found),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }


def merged_by_score(text, metadata):
    """SentencePiece's rule, written out: the best pair first, the left one of two."""
    names = metadata["tokenizer.ggml.tokens"]
    number = {name: index for index, name in enumerate(names)}
    score = dict(zip(names, metadata["tokenizer.ggml.scores"], strict=True))
    pieces = list("▁" + text.replace(" ", "▁"))
    while True:
        unions = [a + b for a, b in itertools.pairwise(pieces)]
        known = [(score[union], -at) for at, union in enumerate(unions) if union in number]
        if not known:
            break
        at = -max(known)[1]
        pieces[at : at + 2] = [unions[at]]
    found = []
    for piece in pieces:
        octets = [f"<0x{byte:02X}>" for byte in piece.encode()]
        found += [number[piece]] if piece in number else [number[each] for each in octets]
    return found


def test_scored_pairs_are_merged_as_sentencepiece_does():
    metadata = scored_metadata()
    ours = tokenizer_from_gguf(metadata)
    for text in TEXTS[:60]:
        ids = ours.encode(text)
        assert ids == [1, *merged_by_score(text, metadata)]
        assert ours.decode(ids) == text == ours.backend.decode(ids)


def test_likeliest_pieces_are_those_of_the_package():
    peer = tokenizers.Tokenizer(tokenizers.models.Unigram())
    peer.normalizer = tokenizers.normalizers.Sequence(
        [
            tokenizers.normalizers.Strip(),
            tokenizers.normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
        ]
    )
    peer.pre_tokenizer = pre.Metaspace()
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=600, show_progress=False, unk_token="<unk>", special_tokens=["<unk>", "</s>"]
    )
    peer.train_from_iterator(TEXTS, trainer)
    import json

    rows = json.loads(peer.to_str())["model"]["vocab"]
    ours = tokenizer_from_gguf(
        {
            "tokenizer.ggml.model": "t5",
            "tokenizer.ggml.tokens": [name for name, _ in rows],
            "tokenizer.ggml.scores": [score for _, score in rows],
            "tokenizer.ggml.token_type": [2, 3] + [1] * (len(rows) - 2),
            "tokenizer.ggml.eos_token_id": 1,
        }
    )
    for text in TEXTS:
        assert ours.encode(text) == [*peer.encode(text).ids, 1]


def test_parts_of_words_are_those_of_the_package():
    peer = tokenizers.BertWordPieceTokenizer(lowercase=True)
    peer.train_from_iterator(TEXTS, vocab_size=700, show_progress=False)
    names = names_of(peer)

    def marked(name):  # as GGUF files write them
        if name.startswith("[") and name.endswith("]") and len(name) > 2:
            return name
        return name[2:] if name.startswith("##") else "▁" + name

    special = [name.startswith("[") and len(name) > 2 for name in names]
    ours = tokenizer_from_gguf(
        {
            "tokenizer.ggml.model": "bert",
            "tokenizer.ggml.tokens": [marked(name) for name in names],
            "tokenizer.ggml.token_type": [3 if each else 1 for each in special],
            "tokenizer.ggml.cls_token_id": names.index("[CLS]"),
            "tokenizer.ggml.seperator_token_id": names.index("[SEP]"),
            "tokenizer.ggml.unknown_token_id": names.index("[UNK]"),
        }
    )
    for text in TEXTS:
        ids = peer.encode(text).ids
        assert ours.encode(text) == [names.index("[CLS]"), *ids, names.index("[SEP]")]


def test_a_stream_gives_the_text_of_all_tokens():
    alphabet = sorted(pre.ByteLevel.alphabet())
    ours = tokenizer_from_gguf(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": alphabet,
            "tokenizer.ggml.merges": [],
        }
    )
    source = random.Random(1)
    for text in TEXTS[:17]:
        stream = TextStream(ours)
        pieces = [stream.add(token) for token in ours.encode(text)]
        assert "".join(pieces) == text
        assert "�" not in "".join(pieces) and stream.end() == ""
    noise = [source.randrange(256) for _ in range(500)]
    assert ours.decode(noise) == ours.backend.decode(noise)


def test_pairs_are_merged_and_digits_are_not():
    tokenizer = tokenizer_from_gguf(METADATA)
    assert tokenizer.encode("ab ab11<end>") == [4, 5, 6, 6, 0]
    assert tokenizer.decode([4, 5, 6, 0]) == "ab ab1"
    assert tokenizer.decode([4, 5, 6, 0], special=True) == "ab ab1<end>"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"tokenizer.ggml.tokens": None}, FileFormatError),
        ({"tokenizer.ggml.tokens": [1, 2]}, FileFormatError),
        ({"tokenizer.ggml.merges": ["ab"]}, FileFormatError),
        ({"tokenizer.ggml.merges": ["x y"]}, FileFormatError),
        ({"tokenizer.ggml.model": "llama"}, FileFormatError),
        ({"tokenizer.ggml.model": "t5"}, FileFormatError),
        ({"tokenizer.ggml.model": "rwkv"}, NotSupported),
        ({"tokenizer.ggml.model": ["gpt2"]}, NotSupported),
        ({"tokenizer.ggml.pre": "unknown"}, NotSupported),
    ],
)
def test_other_metadata(change, error):
    with pytest.raises(error, match="tokenizer:"):
        tokenizer_from_gguf({**METADATA, **change})

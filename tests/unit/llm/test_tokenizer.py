"""Tokenizers from metadata, and metadata that describes none."""

import pytest

from weft import ArgumentError, FileFormatError, NotSupported
from weft.llm.llama import LlamaConfig, generate
from weft.llm.tokenizer import tokenizer_from_gguf

METADATA = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": ["<end>", "a", "b", "Ġ", "ab", "Ġab", "1", "11"],
    "tokenizer.ggml.token_type": [3, 1, 1, 1, 1, 1, 1, 1],
    "tokenizer.ggml.merges": ["a b", "Ġ ab", "1 1"],
}


def test_pairs_are_merged_and_digits_are_not():
    pytest.importorskip("tokenizers")
    tokenizer = tokenizer_from_gguf(METADATA)
    assert tokenizer.encode("ab ab11<end>").ids == [4, 5, 6, 6, 0]
    assert tokenizer.decode([4, 5, 6]) == "ab ab1"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"tokenizer.ggml.tokens": None}, FileFormatError),
        ({"tokenizer.ggml.tokens": [1, 2]}, FileFormatError),
        ({"tokenizer.ggml.merges": ["ab"]}, FileFormatError),
        ({"tokenizer.ggml.merges": ["x y"]}, FileFormatError),
        ({"tokenizer.ggml.model": "llama"}, NotSupported),
        ({"tokenizer.ggml.pre": "unknown"}, NotSupported),
    ],
)
def test_other_metadata(change, error):
    if change.get("tokenizer.ggml.merges"):
        pytest.importorskip("tokenizers")
    with pytest.raises(error, match="tokenizer:"):
        tokenizer_from_gguf({**METADATA, **change})


SIZES = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.embedding_length": 64,
    "llama.attention.head_count": 4,
    "llama.context_length": 100,
}


def test_sizes_from_metadata():
    config = LlamaConfig.from_gguf(SIZES, context=50)
    assert config == (2, 64, 4, 4, 16, 50, 10000.0, 1e-5)
    assert LlamaConfig.from_gguf(SIZES).context == 100
    for change in ({"general.architecture": "gpt2"}, {"llama.block_count": "2"}):
        with pytest.raises(FileFormatError, match="llama:"):
            LlamaConfig.from_gguf({**SIZES, **change})


def test_a_prompt_fits_the_context():
    class Model:
        config = LlamaConfig.from_gguf(SIZES, context=8)

    for prompt in ([], [1] * 6):
        with pytest.raises(ArgumentError, match="do not fit"):
            list(generate(Model(), prompt, 4))

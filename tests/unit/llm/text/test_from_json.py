"""Tokenizers from tokenizer.json and the files beside it."""

import json

import pytest

from tests.unit.llm.text.mixed_text import mixed_text
from weft import FileFormatError, MissingFile
from weft.llm.text.from_json import tokenizer_from_json

tokenizers = pytest.importorskip("tokenizers", reason="needs the extra `llm`")
TEXTS = mixed_text(8000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    made = tokenizers.ByteLevelBPETokenizer()
    made.train_from_iterator(
        TEXTS, vocab_size=500, show_progress=False, special_tokens=["<s>", "</s>", "<|im_end|>"]
    )
    made._tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    made.save(str(path / "tokenizer.json"))
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": "x"}
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 2]}))
    return path


def test_a_folder(folder):
    ours = tokenizer_from_json(folder)
    peer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert (ours.marks.begin, ours.marks.ends) == (0, {1, 2})
    assert ours.templates == {"default": "x"}
    for text in TEXTS:
        ids = ours.encode(text)
        assert ids == peer.encode(text).ids
        assert ours.decode(ids) == text


def test_what_is_no_tokenizer(tmp_path):
    with pytest.raises(MissingFile):
        tokenizer_from_json(tmp_path)
    path = tmp_path / "tokenizer.json"
    for text in ("{", "[]", '{"model": 3}'):
        path.write_text(text)
        with pytest.raises(FileFormatError, match="tokenizer:"):
            tokenizer_from_json(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FileFormatError, match="expected text"):
        tokenizer_from_json(path)

"""The tiny model, once for a test run."""

import pytest

from tests.unit.llm.tiny_model import write_tiny
from weft.llm import load


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.fixture(scope="session")
def tiny_model(tiny_path):
    return load(tiny_path)


@pytest.fixture(scope="session")
def tiny_tokenizer(tiny_model):
    pytest.importorskip("tokenizers", reason="needs the extra `llm`")
    from weft.llm.text.from_gguf import tokenizer_from_gguf

    return tokenizer_from_gguf(tiny_model.tokenizer_data)

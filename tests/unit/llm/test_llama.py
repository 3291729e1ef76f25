"""A model of random weights: pieces of a prompt are read as its tokens are, one by one."""

import numpy as np
import pytest

from weft.llm.llama import CHUNK, FEW, Llama, LlamaConfig, generate
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor

WORDS, INNER = 40, 24
CONFIG = LlamaConfig(
    layers=2,
    width=16,
    heads=4,
    groups=2,
    head_size=4,
    context=3 * CHUNK,
    rope_base=10000.0,
    epsilon=1e-5,
)
LENGTHS = [1, 2, FEW + 1, FEW + 2, CHUNK, CHUNK + 1, CHUNK + FEW + 2, 2 * CHUNK + 1]


def random_llama() -> Llama:
    source = np.random.default_rng(0)
    c = CONFIG
    keys = c.groups * c.head_size
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (WORDS, c.width)}
    for n in range(c.layers):
        shapes |= {
            f"blk.{n}.attn_q.weight": (c.heads * c.head_size, c.width),
            f"blk.{n}.attn_k.weight": (keys, c.width),
            f"blk.{n}.attn_v.weight": (keys, c.width),
            f"blk.{n}.attn_output.weight": (c.width, c.heads * c.head_size),
            f"blk.{n}.ffn_gate.weight": (INNER, c.width),
            f"blk.{n}.ffn_up.weight": (INNER, c.width),
            f"blk.{n}.ffn_down.weight": (c.width, INNER),
            f"blk.{n}.attn_norm.weight": (c.width,),
            f"blk.{n}.ffn_norm.weight": (c.width,),
        }
    shapes["output_norm.weight"] = (c.width,)
    return Llama(c, {k: Tensor(_random(source, shape)) for k, shape in shapes.items()})


def _random(source: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return (source.standard_normal(shape) * 0.5).astype(np.float32)


def one_by_one(model: Llama, tokens: list[int]) -> np.ndarray:
    """The logits after tokens from position 0 on, each read by a step."""
    for place, token in enumerate(tokens):
        logits = model.step(Tensor(np.int32(token)), model.position.bind(place))
    return logits.numpy()


@pytest.fixture(scope="module")
def models() -> tuple[Llama, Llama]:
    return random_llama(), random_llama()


def prompt_of(length: int) -> list[int]:
    return np.random.default_rng(length).integers(0, WORDS, length).tolist()


def assert_same(model: Llama, plain: Llama, tokens: list[int]) -> None:
    """After the last of these tokens, both models have the same logits."""
    last = model.step(Tensor(np.int32(tokens[-1])), model.position.bind(len(tokens) - 1))
    np.testing.assert_allclose(last.numpy(), one_by_one(plain, tokens), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", LENGTHS)
def test_an_answer_is_that_of_tokens_one_by_one(models, length):
    model, plain = models
    tokens = prompt_of(length)
    for token in list(generate(model, tokens, 3)):
        assert one_by_one(plain, tokens).argmax() == token
        tokens.append(token)
    assert_same(model, plain, tokens)


def test_a_piece_gives_the_logits_of_its_tokens(models):
    model, plain = models
    tokens = prompt_of(CHUNK + 8)
    model.read(Tensor(np.array(tokens[:7], np.int32)), model.position.bind(0))
    model.read(Tensor(np.array(tokens[7:-1], np.int32)), model.position.bind(7))
    assert_same(model, plain, tokens)


def test_a_second_prompt_goes_on_after_the_first_answer(models):
    model, plain = models
    first = prompt_of(CHUNK + 3)
    *answer, last = generate(model, first, 4)
    read = first + answer
    second = [last, *prompt_of(CHUNK - 9)]
    (found,) = generate(model, second, 1, start=len(read))
    assert one_by_one(plain, read + second).argmax() == found
    assert_same(model, plain, read + second)


def test_a_prompt_from_the_beginning_forgets_what_was_read(models):
    model, plain = models
    list(generate(model, prompt_of(CHUNK + 9), 2))
    list(generate(model, second := prompt_of(9), 1))
    assert_same(model, plain, second)


def test_one_trace_reads_all_pieces(models):
    model, _ = models
    list(generate(model, prompt_of(CHUNK), 1))
    traces = model.read.traces, model.next_token.traces
    list(generate(model, prompt_of(2 * CHUNK + 9), 2))
    assert (model.read.traces, model.next_token.traces) == traces


@pytest.mark.parametrize(
    ("length", "start"), [(0, 0), (3 * CHUNK, 0), (8, 3 * CHUNK - 8), (8, -1)]
)
def test_what_does_not_fit_is_an_error(models, length, start):
    with pytest.raises(ArgumentError, match="do not fit the context"):
        list(generate(models[0], prompt_of(length), 1, start=start))

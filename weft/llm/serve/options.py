"""How an answer is made, from the fields that chats and completions share."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from weft.llm.generate.constraint import Masks, Vocabulary
from weft.llm.generate.gbnf import parse_grammar
from weft.llm.generate.grammar import Grammar
from weft.llm.generate.json_schema import json_grammar, schema_grammar
from weft.llm.generate.sampling import Sampling
from weft.llm.serve.fields import Fields, Refused
from weft.llm.text.tokenizer import TextTokenizer
from weft.support.errors import UsageError

MOST_STOPS: Final = 16
MOST_GRAMMARS: Final = 32
MOST_STATES: Final = 100_000  # a grammar that was followed to more is made anew
_TOKEN: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Options:
    """What is asked of an answer; each of `count` choices has its own random numbers."""

    sampling: Sampling
    most: int
    count: int
    stops: tuple[str, ...]
    is_streamed: bool
    with_usage: bool

    def sampling_of(self, choice: int) -> Sampling:
        seed = self.sampling.seed
        return self.sampling if seed is None else replace(self.sampling, seed=seed + choice)


def options_of(fields: Fields, most_choices: int, default_most: int, logprobs: int) -> Options:
    """The options of a body; `logprobs` is how many of the likeliest are reported, or -1."""
    count = fields.whole("n", 1, 1, most_choices) or 1
    most = fields.whole("max_completion_tokens", None, 1, 1 << 31)
    if most is None:
        most = fields.whole("max_tokens", default_most, 0, 1 << 31)
    seed = fields.whole("seed", None, -(1 << 63), (1 << 64) - 1)
    return Options(
        sampling=Sampling(
            temperature=fields.number("temperature", 1.0, 0, 100),
            top_k=fields.whole("top_k", 0, 0, 1 << 31) or 0,
            top_p=max(fields.number("top_p", 1.0, 0, 1), 1e-9),
            min_p=fields.number("min_p", 0.0, 0, 1),
            typical_p=max(fields.number("typical_p", 1.0, 0, 1), 1e-9),
            repetition_penalty=max(fields.number("repetition_penalty", 1.0, 0, 100), 1e-9),
            presence_penalty=fields.number("presence_penalty", 0.0, -100, 100),
            frequency_penalty=fields.number("frequency_penalty", 0.0, -100, 100),
            seed=secrets.randbits(63) if seed is None else seed & ((1 << 63) - 1),
            logit_bias=_bias(fields),
            logprobs=logprobs,
        ),
        most=most or 0,
        count=count,
        stops=_stops(fields),
        is_streamed=fields.flag("stream"),
        with_usage=Fields(fields.mapping("stream_options")).flag("include_usage"),
    )


def _bias(fields: Fields) -> dict[int, float]:
    found: dict[int, float] = {}
    for token, value in fields.mapping("logit_bias").items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not _TOKEN.fullmatch(token) or not is_number or not abs(value) <= 100:
            raise Refused(
                "logit_bias has tokens as names and numbers from -100 to 100", field="logit_bias"
            )
        found[int(token)] = float(value)
    return found


def _stops(fields: Fields) -> tuple[str, ...]:
    value = fields.get("stop")
    stops = [value] if isinstance(value, str) else fields.items("stop")
    if len(stops) > MOST_STOPS or not all(isinstance(stop, str) for stop in stops):
        raise Refused(f"stop is a text, or a list of at most {MOST_STOPS}", field="stop")
    return tuple(stop for stop in stops if stop)


class Grammars:
    """The masks of grammars that were asked for, by their text: the next request shares them."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._vocabulary: Vocabulary | None = None
        self._masks: OrderedDict[str, Masks] = OrderedDict()
        self._lock = threading.Lock()  # requests make grammars on threads of their own

    def of(self, fields: Fields) -> Masks | None:
        """What `response_format` or `grammar` asks for."""
        if text := fields.text("grammar"):
            return self._found(text, lambda: parse_grammar(text), "grammar")
        stated = Fields(fields.mapping("response_format"))
        kind = stated.text("type", "text")
        if kind == "text":
            return None
        if kind == "json_object":
            return self._found("json", json_grammar, "response_format")
        if kind != "json_schema":
            raise Refused(
                "response_format is text, json_object or json_schema", field="response_format"
            )
        schema = stated.mapping("json_schema").get("schema")
        if not isinstance(schema, (dict, bool)):
            raise Refused("json_schema has a schema", field="response_format")
        return self.of_schema(schema, "response_format")

    def of_schema(self, schema: Any, field: str) -> Masks:
        key = json.dumps(schema, sort_keys=False)
        return self._found(key, lambda: schema_grammar(schema), field)

    def _found(self, key: str, make: Callable[[], Grammar], field: str) -> Masks:
        with self._lock:
            return self._shared(key, make, field)

    def _shared(self, key: str, make: Callable[[], Grammar], field: str) -> Masks:
        found = self._masks.get(key)
        if found is None or found.grammar.states > MOST_STATES:
            try:
                grammar = make()
            except (UsageError, RecursionError) as failure:
                what = failure.what if isinstance(failure, UsageError) else "it is nested too deep"
                raise Refused(what, field=field) from None
            if self._vocabulary is None:
                self._vocabulary = Vocabulary.of(self._tokenizer)
            found = self._masks[key] = Masks(grammar, self._vocabulary)
            if len(self._masks) > MOST_GRAMMARS:
                self._masks.popitem(last=False)
        self._masks.move_to_end(key)
        return found

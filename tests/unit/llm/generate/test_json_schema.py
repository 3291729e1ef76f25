"""Schemas: valid values match, others do not, and any text that a grammar allows is valid."""

import json
import random

import pytest

from weft import ArgumentError, NotSupported
from weft.llm.generate.grammar import DEAD
from weft.llm.generate.json_schema import json_grammar, schema_grammar

PERSON = {
    "type": "object",
    "title": "A person",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3},
        "child": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    },
    "required": ["name", "tags"],
    "additionalProperties": False,
}
CASES = [
    (PERSON, {"name": "Ann", "age": 3, "tags": ["a"], "child": None}, True),
    (PERSON, {"name": "Ann", "tags": ["a", "b", "a"]}, True),
    (PERSON, {"name": "Ann", "tags": ["b"], "child": {"name": "B", "tags": ["a"]}}, True),
    (PERSON, {"name": "Ann", "tags": []}, False),
    (PERSON, {"name": "Ann", "tags": ["a"] * 4}, False),
    (PERSON, {"name": "far too long", "tags": ["a"]}, False),
    (PERSON, {"tags": ["a"]}, False),
    (PERSON, {"name": "Ann", "age": 1.5, "tags": ["a"]}, False),
    (PERSON, {"name": "Ann", "tags": ["a"], "more": 1}, False),
    ({"type": "array", "prefixItems": [{"const": 1}], "items": False}, [1], True),
    ({"type": "array", "prefixItems": [{"const": 1}], "items": False}, [1, 2], False),
    ({"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}}, [1, 2, 2], True),
    ({"type": "array", "items": {"type": "number"}, "minItems": 2}, [1, -2.5e3, 0], True),
    ({"type": "array", "items": {"type": "number"}, "minItems": 2}, [1], False),
    ({"type": "array"}, [], True),
    ({"type": "array", "maxItems": 0}, [1], False),
    ({"type": ["string", "null"]}, None, True),
    ({"type": ["string", "null"]}, 1, False),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"x": 1, "y": 2}, True),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"x": "1"}, False),
    ({"allOf": [{"type": "object", "properties": {"a": {"const": "é"}}}]}, {"a": "é"}, True),
    ({"enum": ["x", 2, None, {"a": [1]}]}, {"a": [1]}, True),
    ({}, [{"a": [True, '"\\\n']}, 1e5], True),
    ({"properties": {"a": {}}, "required": ["a", "b"]}, {"a": 1, "b": [2]}, True),
    ({"properties": {"a": {}}, "required": ["a", "b"]}, {"a": 1}, False),
]


@pytest.mark.parametrize(("schema", "value", "expected"), CASES)
def test_values(schema, value, expected):
    grammar = schema_grammar(schema)
    assert grammar.matches(json.dumps(value, ensure_ascii=False)) == expected
    if not ("enum" in schema or "allOf" in schema):  # constants are written in one way
        assert grammar.matches(json.dumps(value, indent=2)) == expected
    assert not grammar.matches(json.dumps(value)[:-1] + "~")


def random_text(grammar, source, limit=300):
    """A text that follows a grammar, byte by byte; short ends are preferred."""
    state, data = grammar.start, bytearray()
    while not (grammar.is_complete(state) and (len(data) > 5 or grammar.is_final(state))):
        if len(data) > limit:
            return None
        bytes_ = [b for b in range(256) if grammar.step(state, b) != DEAD]
        assert bytes_, "a grammar never gets stuck"
        closing = [b for b in bytes_ if chr(b) in '"]}'] if source.random() < 0.6 else []
        byte = source.choice(closing or bytes_)
        data.append(byte)
        state = grammar.step(state, byte)
    return data.decode()


@pytest.mark.parametrize("schema", [PERSON, {}, {"type": "object"}, CASES[12][0], CASES[18][0]])
def test_every_text_is_valid(schema):
    grammar, source, count = schema_grammar(schema), random.Random(0), 0
    for _ in range(60):
        text = random_text(grammar, source)
        if text is not None:
            json.loads(text)
            count += 1
    assert count > 5


def test_json_mode_is_an_object():
    grammar = json_grammar()
    assert grammar.matches('{"a": [1, {"b": null}]}') and not grammar.matches("[1]")
    assert not grammar.matches("{'a': 1}") and not grammar.matches('{"a": 01}')


def test_lengths_in_lengths_are_limited():
    long = {"type": "string", "minLength": 2000}
    for schema in (
        {"type": "array", "minItems": 2000, "items": long},
        {"properties": {f"p{n}": long for n in range(1000)}},
    ):
        with pytest.raises(ArgumentError, match="write out more"):
            schema_grammar(schema)


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"type": "strin"}, ArgumentError),
        ({"type": []}, ArgumentError),
        ({"enum": []}, ArgumentError),
        ({"anyOf": 3}, ArgumentError),
        (3, ArgumentError),
        ({"$ref": "#/$defs/none"}, ArgumentError),
        ({"$ref": "http://example.org"}, NotSupported),
        ({"type": "string", "pattern": "a+"}, NotSupported),
        ({"type": "integer", "minimum": 3}, NotSupported),
        ({"type": "string", "minLength": 5, "maxLength": 2}, ArgumentError),
        ({"type": "string", "maxLength": 10**9}, ArgumentError),
        ({"properties": 3}, ArgumentError),
        ({"required": "a"}, ArgumentError),
        ({"prefixItems": 5}, ArgumentError),
        ({"allOf": [{"properties": {}}, {"properties": 5}]}, ArgumentError),
        ({"allOf": [{"required": 1}, {"required": 2}]}, NotSupported),
        ({"allOf": [{"type": "string"}, {"type": "null"}]}, NotSupported),
    ],
)
def test_what_cannot_be_held_is_an_error(schema, error):
    with pytest.raises(error, match="schema:"):
        schema_grammar(schema)

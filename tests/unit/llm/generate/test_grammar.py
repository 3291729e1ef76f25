"""Grammars: what they match, beside regular expressions, and what is not a grammar."""

import random
import re

import numpy as np
import pytest

from weft import ArgumentError
from weft.llm.generate.constraint import Constraint, Masks, Vocabulary
from weft.llm.generate.gbnf import parse_grammar
from weft.llm.generate.grammar import characters

SAME = {
    "ab*c+d?": 'root ::= "a" "b"* "c"+ "d"?',
    "(ab|c){2,3}": 'root ::= ("ab" | "c"){2,3}',
    "[a-c]{2}[^a-c]": "root ::= [a-c]{2} [^a-c]",
    "a{0,2}b{1,}": 'root ::= "a"{0,2} "b"{1,}',
    "(a(b(c)?)?)*": 'root ::= ("a" ("b" ("c")?)?)*',
    "(a?)*b": 'root ::= ("a"?)* "b"',
    "d|": 'root ::= "d" |',
    "(ab|abc)d": 'root ::= x "d"  # two ways\nx ::= "ab" | "abc"',
}


@pytest.mark.parametrize("expression", SAME)
def test_a_grammar_matches_as_an_expression_does(expression):
    grammar, compiled = parse_grammar(SAME[expression]), re.compile(expression, re.S)
    source = random.Random(0)
    for _ in range(2000):
        text = "".join(source.choice("abcd") for _ in range(source.randint(0, 7)))
        assert grammar.matches(text) == bool(compiled.fullmatch(text)), text


def test_nesting():
    grammar = parse_grammar('root ::= "(" root ")" | "[" root "]" | ""')
    assert grammar.matches("([([])])")
    assert not grammar.matches("([)]")
    assert grammar.matches("(" * 500 + ")" * 500)


def test_nesting_has_no_limit():
    deep = 100_000  # what compares whole stacks would never end, or overflow
    assert parse_grammar('root ::= "(" root ")" | ""').matches("(" * deep + ")" * deep)


def test_rules_in_long_chains():
    chain = [f"r{n} ::= r{n + 1} r{n + 1}" for n in range(2000)]
    grammar = parse_grammar("\n".join([*chain, 'r2000 ::= ""', 'root ::= "b" | r1999']))
    assert grammar.matches("") and grammar.matches("b") and not grammar.matches("bb")
    with pytest.raises(ArgumentError, match="begins with itself"):
        parse_grammar("\n".join([*chain, 'r2000 ::= r5 "x" |', "root ::= r0"]))


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0x10FFFF), (0x20, 0x7F), (0x7F, 0x900), (0xFFF, 0x12345), (0x41, 0x41)]
)
def test_ranges_of_characters_are_their_bytes(low, high):
    alternatives = characters([(low, high)])

    def is_in(data):
        return any(
            len(data) == len(sets)
            and all(s.bits >> b & 1 for s, b in zip(sets, data, strict=True))
            for sets in alternatives
        )

    source = random.Random(1)
    near = [n + d for n in (low, high, 0x7F, 0x7FF, 0xFFFF) for d in (-1, 0, 1)]
    for number in near + [source.randrange(0x110000) for _ in range(3000)]:
        if 0 <= number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
            assert is_in(chr(number).encode()) == (low <= number <= high), hex(number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x ::= 'a'",
        'root ::= "a',
        "root ::= [a",
        "root ::= other",
        "root ::= root",
        'root ::= root "a"',
        'root ::= x "a"\nx ::= "" root',
        'root ::= "a"{5,2}',
        'root ::= "a"{99999}',
        'root ::= "a"{' + "9" * 5000 + "}",
        'root ::= (("a"{1000}){1000}){1000}',
        "root ::= " + ("(" * 3 + '"a"' + "{2000})" * 3 + " ") * 50,
        'root ::= "' + "a" * 300_000 + '"',
        'root ::= ("a"',
        'root ::= "a" )',
        'root ::= "\\xZZ"',
        "root ::= [z-a]",
        'root ::= "a"\nroot ::= "b"',
        "root ::= " + "(" * 300,
        'root ::= "\\U00FFFFFF"',
    ],
)
def test_what_is_no_grammar(text):
    if text == "root ::= root":  # it says nothing, and no text follows it
        assert not parse_grammar(text).matches("")
        return
    with pytest.raises(ArgumentError, match="grammar:"):
        parse_grammar(text)


WORDS = [b"", b"<end>", b"a", b"ab", b"abc", b"b", b"c", b"\xc3", b"\xa9", b"\xff", b"ba", b"cc"]


def test_masks_are_those_of_each_token_alone():
    vocabulary = Vocabulary(WORDS, special=[1], ends=[1])
    for text in [*SAME.values(), 'root ::= [é-ü] "a"*']:
        grammar = parse_grammar(text)
        constraint = Constraint(Masks(grammar, vocabulary))
        source = random.Random(2)
        for _ in range(12):
            state = constraint.state
            expected = [
                bool(word) and token != 1 and grammar.walk(state, word) >= 0
                for token, word in enumerate(WORDS)
            ]
            expected[1] = grammar.is_complete(state) or not any(expected)
            np.testing.assert_array_equal(constraint.allowed(), expected)
            choices = [t for t in range(len(WORDS)) if expected[t] and t != 1]
            if not choices:
                break
            constraint.add(source.choice(choices))

"""JSON schemas as grammars: a text that follows one is valid.

Properties come in the order of the schema, and constants are written in one way. What a schema
says and a grammar cannot is an error, never ignored; words that only describe (title, description,
format and so on) say nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from weft.llm.generate.gbnf import Rules, new_rule, parse_grammar, repeated
from weft.llm.generate.grammar import Alternative, Grammar, Rule, literal
from weft.support.errors import ArgumentError, NotSupported

# White space is short: a model that is unsure cannot fill its answer with it.
_BASE: Final = r"""
root ::= value
value ::= object | array | string | number | boolean | null
object ::= "{" ws ( member ( "," ws member )* )? "}"
member ::= string ":" ws value ws
array ::= "[" ws ( value ws ( "," ws value ws )* )? "]"
string ::= "\"" character* "\""
character ::= [^"\\\x00-\x1F] | "\\" ( ["\\/bfnrt] | "u" [0-9a-fA-F]{4} )
integer ::= "-"? ( "0" | [1-9] [0-9]{0,15} )
number ::= integer ( "." [0-9]{1,16} )? ( [eE] [-+]? [0-9]{1,3} )?
boolean ::= "true" | "false"
null ::= "null"
ws ::= | " " | "\n" [ \t]{0,20}
"""
_DESCRIBING: Final = frozenset(
    (
        *("title", "description", "default", "examples", "format", "$schema", "$id", "$comment"),
        *("deprecated", "readOnly", "writeOnly", "$defs", "definitions", "strict", "name"),
    )
)
_KNOWN: Final = {
    "object": frozenset(("properties", "required", "additionalProperties")),
    "array": frozenset(("items", "prefixItems", "minItems", "maxItems")),
    "string": frozenset(("minLength", "maxLength")),
}
_ANYWHERE: Final = frozenset(("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"))
_TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
MOST_DEPTH: Final = 64
MOST_LENGTH: Final = 2000


def json_grammar() -> Grammar:
    """Any JSON object."""
    return schema_grammar({"type": "object"})


def schema_grammar(schema: Mapping[str, Any] | bool) -> Grammar:
    """The texts that are valid by a schema.

    >>> grammar = schema_grammar({"type": "array", "items": {"enum": [1, "a"]}, "maxItems": 2})
    >>> grammar.matches('[1, "a"]'), grammar.matches('["b"]')
    (True, False)
    """
    return _Writer(schema).grammar()


class _Writer:
    def __init__(self, schema: Mapping[str, Any] | bool) -> None:
        self.top = schema
        self.rules = Rules(parse_grammar(_BASE).rules)
        self.named: dict[str, Rule] = {}  # rules of references, which may contain themselves

    def grammar(self) -> Grammar:
        self.rules["root"] = [self.value(self.top, 0)]
        return Grammar(self.rules)

    def value(self, schema: Any, depth: int) -> Alternative:
        """What a value of the schema reads as."""
        if depth > MOST_DEPTH:
            raise ArgumentError("schema: it is nested too deep")
        if schema is True:
            return (Rule("value"),)
        if not isinstance(schema, Mapping):
            raise ArgumentError(
                f"schema: expected an object, got {schema!r:.60}", rule="a schema is an object"
            )
        if "$ref" in schema:
            return (self._reference(schema["$ref"], depth),)
        if "allOf" in schema:
            return self.value(_merged(schema), depth + 1)
        if "const" in schema:
            return literal(_text(schema["const"]))
        if "enum" in schema:
            return self._one_of([literal(_text(each)) for each in _list(schema, "enum")])
        for word in ("anyOf", "oneOf"):
            if word in schema:
                rest = {k: v for k, v in schema.items() if k not in (word, *_DESCRIBING)}
                parts = [_both(rest, part) for part in _list(schema, word)]
                return self._one_of([self.value(part, depth + 1) for part in parts])
        return self._typed(schema, depth)

    def _typed(self, schema: Mapping[str, Any], depth: int) -> Alternative:
        kinds = schema.get("type", _guess(schema))
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if not isinstance(kinds, list) or not kinds or any(k not in _TYPES for k in kinds):
            raise ArgumentError(
                f"schema: the type is {schema.get('type')!r:.60}",
                rule="types are " + ", ".join(_TYPES),
            )
        known = _ANYWHERE | _DESCRIBING | frozenset().union(*(_KNOWN.get(k, ()) for k in kinds))
        others = sorted(str(key) for key in schema if key not in known)
        if others:
            raise NotSupported(
                f"schema: {others[0]!r} cannot be held by a grammar",
                rule="a schema may say " + ", ".join(sorted(known - _DESCRIBING)),
            )
        return self._one_of([self._of_type(kind, schema, depth) for kind in kinds])

    def _of_type(self, kind: str, schema: Mapping[str, Any], depth: int) -> Alternative:
        made: dict[str, Callable[[Mapping[str, Any], int], Alternative]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
        }
        return made[kind](schema, depth) if kind in made else (Rule(kind),)

    def _string(self, schema: Mapping[str, Any], depth: int) -> Alternative:
        least, most = _range(schema, "minLength", "maxLength")
        if (least, most) == (0, -1):
            return (Rule("string"),)
        inner = repeated(self.rules, "string", (Rule("character"),), least, most)
        return (*literal('"'), *inner, *literal('"'))

    def _array(self, schema: Mapping[str, Any], depth: int) -> Alternative:
        least, most = _range(schema, "minItems", "maxItems")
        listed = _list(schema, "prefixItems") if schema.get("prefixItems", []) != [] else []
        first = [self.value(each, depth + 1) for each in listed]
        items = schema.get("items", True)
        more = None if items is False else self.value(items, depth + 1)
        if most < 0 and more is None:
            most = len(first)
        return (*literal("["), Rule("ws"), self._items(first, more, least, most), *literal("]"))

    def _items(
        self, first: list[Alternative], more: Alternative | None, least: int, most: int
    ) -> Rule:
        """Items with commas between: the rest of a list after each number of them."""
        comma = (*literal(","), Rule("ws"))
        count = max(least, most, len(first))
        if count > MOST_LENGTH or (more is None and least > len(first)):
            raise ArgumentError(f"schema: a list of {count} items cannot be written")
        any_more: Alternative = ()
        if most < 0 and more is not None:
            loop = new_rule(self.rules, "items", [])
            self.rules[loop.name] = [(*comma, *more, Rule("ws"), loop), ()]
            any_more = (loop,)
        rest: Alternative = any_more
        for index in range((count if most < 0 else most) - 1, -1, -1):
            item = first[index] if index < len(first) else more
            if item is None:
                continue
            self.rules.write_out(len(item))
            lead = comma if index else ()
            ways: list[Alternative] = [(*lead, *item, Rule("ws"), *rest)]
            if index >= least:
                ways.append(())
            rest = (new_rule(self.rules, "items", ways),)
        if most < 0 and not count and more is not None:
            ways = [(*more, Rule("ws"), *any_more), ()]
            return new_rule(self.rules, "items", ways)
        return new_rule(self.rules, "items", [rest])

    def _object(self, schema: Mapping[str, Any], depth: int) -> Alternative:
        properties = dict(_mapping(schema, "properties"))
        required = schema.get("required", [])
        if not isinstance(required, list) or not all(isinstance(r, str) for r in required):
            raise ArgumentError(f"schema: expected a list of names as required, got {required!r}")
        extra = schema.get("additionalProperties", not properties)
        for name in required:
            properties.setdefault(name, True if extra in (True, False) else extra)
        if not properties:
            return self._free_object(extra, depth)
        members = [
            (
                (
                    *literal(_text(name) + ":"),
                    Rule("ws"),
                    *self.value(each, depth + 1),
                    Rule("ws"),
                ),
                name in required,
            )
            for name, each in properties.items()
        ]
        return (*literal("{"), Rule("ws"), self._members(members), *literal("}"))

    def _members(self, members: Sequence[tuple[Alternative, bool]]) -> Rule:
        """Members in their order; those that are not required may be left out."""
        comma = (*literal(","), Rule("ws"))
        after: Alternative = ()  # what may follow a member, and what may stand first
        first: Alternative = ()
        for member, is_required in reversed(members):
            ways = [(*comma, *member, *after)]
            begins = [(*member, *after)]
            if not is_required:
                ways.append(after)
                begins.append(first)
            after = (new_rule(self.rules, "members", ways),)
            first = (new_rule(self.rules, "members", begins),)
        (rule,) = first
        assert isinstance(rule, Rule)
        return rule

    def _free_object(self, extra: Any, depth: int) -> Alternative:
        if extra is False:
            return (*literal("{"), Rule("ws"), *literal("}"))
        if extra is True:
            return (Rule("object"),)
        value = self.value(extra, depth + 1)
        member = (Rule("string"), *literal(":"), Rule("ws"), *value, Rule("ws"))
        loop = new_rule(self.rules, "members", [])
        self.rules[loop.name] = [(*literal(","), Rule("ws"), *member, loop), ()]
        inner = new_rule(self.rules, "members", [(*member, loop), ()])
        return (*literal("{"), Rule("ws"), inner, *literal("}"))

    def _reference(self, name: Any, depth: int) -> Rule:
        if not isinstance(name, str) or not name.startswith("#"):
            raise NotSupported(f"schema: the reference {name!r:.80} leads outside")
        if name not in self.named:
            rule = self.named[name] = new_rule(self.rules, "reference", [])
            self.rules[rule.name] = [self.value(_found(self.top, name), depth + 1)]
        return self.named[name]

    def _one_of(self, ways: list[Alternative]) -> Alternative:
        if not ways:
            raise ArgumentError("schema: there is nothing to choose from")
        return ways[0] if len(ways) == 1 else (new_rule(self.rules, "choice", ways),)


def _guess(schema: Mapping[str, Any]) -> list[str]:
    """The types that are meant where none is stated."""
    found = [kind for kind, words in _KNOWN.items() if any(word in schema for word in words)]
    return found or [kind for kind in _TYPES if kind != "integer"]


def _both(rest: Mapping[str, Any], part: Any) -> Any:
    if not rest or not isinstance(part, Mapping):
        return part
    return _merged({"allOf": [rest, part]})


def _merged(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schemas of `allOf` as one, where they do not speak of the same thing."""
    found = {k: v for k, v in schema.items() if k not in ("allOf", *_DESCRIBING)}
    for part in _list(schema, "allOf"):
        if not isinstance(part, Mapping):
            raise ArgumentError("schema: allOf lists schemas")
        for key, value in part.items():
            if key in _DESCRIBING or found.get(key, value) == value:
                found[key] = value
            elif key == "properties" and not _mapping(found, key).keys() & _mapping(part, key):
                found[key] = {**found[key], **value}
            elif key == "required" and isinstance(value, list) and isinstance(found[key], list):
                found[key] = [*found[key], *value]
            else:
                raise NotSupported(f"schema: allOf says {key!r} twice, and differently")
    return found


def _found(top: Any, name: str) -> Any:
    here = top
    for part in name.lstrip("#").strip("/").split("/") if name != "#" else []:
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(here, Mapping) or key not in here:
            raise ArgumentError(f"schema: there is nothing at {name!r:.80}")
        here = here[key]
    return here


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _list(schema: Mapping[str, Any], name: str) -> list[Any]:
    found = schema[name]
    if not isinstance(found, list) or not found:
        raise ArgumentError(f"schema: expected a list of choices as {name}, got {found!r}")
    return found


def _mapping(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = schema.get(name, {})
    if not isinstance(found, Mapping):
        raise ArgumentError(f"schema: expected an object as {name}, got {found!r}")
    return found


def _range(schema: Mapping[str, Any], least: str, most: str) -> tuple[int, int]:
    low, high = schema.get(least, 0), schema.get(most, -1)
    is_wrong = any(type(each) is not int or each > MOST_LENGTH for each in (low, high))
    if is_wrong or low < 0 or (most in schema and high < low):
        raise ArgumentError(
            f"schema: {least} {low!r} and {most} {high!r}",
            rule=f"lengths are whole numbers up to {MOST_LENGTH}, the least first",
        )
    return low, high

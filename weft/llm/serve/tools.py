"""Tools: functions that a model may call, and calls found in what it says.

A model that must call one is held to a JSON schema. One that may is trusted to write
`<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, or such an object alone.
"""

from __future__ import annotations

import json
import re
import secrets
from typing import Any, Final, NamedTuple

from weft.llm.serve.fields import Fields, Refused

MOST_TOOLS: Final = 128
_BLOCK: Final = re.compile(r"<tool_call>\s*(\{.*?\})\s*(?:</tool_call>|$)", re.DOTALL)


class Tools(NamedTuple):
    """The functions of a request, and whether one of them must be called."""

    listed: list[dict[str, Any]]
    schema: dict[str, Any] | None  # of the call, if there must be one

    @property
    def names(self) -> set[str]:
        return {each["function"]["name"] for each in self.listed}


def tools_of(fields: Fields) -> Tools:
    """The tools of a body."""
    listed = fields.items("tools")
    if len(listed) > MOST_TOOLS:
        raise Refused(f"there are at most {MOST_TOOLS} tools", field="tools")
    for each in listed:
        function = each.get("function") if isinstance(each, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise Refused("a tool is a function with a name", field="tools")
        if not isinstance(function.get("parameters", {}), dict):
            raise Refused("the parameters of a tool are a JSON schema", field="tools")
    choice = fields.get("tool_choice")
    if choice in (None, "auto"):
        return Tools(listed, None)
    if choice == "none":
        return Tools([], None)
    if choice == "required" and listed:
        return Tools(listed, _schema(listed))
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    chosen = [each for each in listed if each["function"]["name"] == name]
    if not chosen:
        raise Refused(
            "tool_choice is none, auto, required, or one of the tools", field="tool_choice"
        )
    return Tools(listed, _schema(chosen))


def _schema(listed: list[dict[str, Any]]) -> dict[str, Any]:
    ways = [
        {
            "type": "object",
            "properties": {
                "name": {"const": each["function"]["name"]},
                "arguments": each["function"].get("parameters") or {"type": "object"},
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for each in listed
    ]
    return ways[0] if len(ways) == 1 else {"anyOf": ways}


def instructions(tools: Tools) -> str:
    """What a model is told whose template has no room for tools."""
    functions = [each["function"] for each in tools.listed]
    return (
        "You can call functions. To call one, answer only with\n"
        '<tool_call>{"name": "...", "arguments": {...}}</tool_call>\n'
        "The functions are: " + json.dumps(functions, ensure_ascii=False)
    )


def may_begin_call(text: str) -> bool:
    """Whether a text may turn out to be a call, so that it is not shown yet.

    >>> may_begin_call(" <tool"), may_begin_call('{"na'), may_begin_call("Hello")
    (True, True, False)
    """
    begun = text.lstrip()
    return not begun or begun.startswith("{") or "<tool_call>".startswith(begun[:11])


def calls_in(text: str, tools: Tools) -> list[dict[str, Any]]:
    """The calls of known functions in a text, in the form of the interface.

    >>> tools = Tools([{"function": {"name": "add"}}], None)
    >>> [each["function"] for each in calls_in('{"name": "add", "arguments": {"a": 1}}', tools)]
    [{'name': 'add', 'arguments': '{"a": 1}'}]
    """
    blocks = _BLOCK.findall(text) or [text.strip()]
    found = []
    for block in blocks:
        try:
            stated = json.loads(block)
        except (ValueError, RecursionError):
            continue
        if not isinstance(stated, dict) or stated.get("name") not in tools.names:
            continue
        arguments = stated.get("arguments", stated.get("parameters", {}))
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        found.append(
            {
                "id": "call_" + secrets.token_hex(12),
                "type": "function",
                "function": {"name": stated["name"], "arguments": written},
            }
        )
    return found

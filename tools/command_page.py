"""The page command.md, from the parser of the command `weft`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from table_page import code, head, markdown_table, wrapped

from weft.cli.main import COMMANDS, parser


def command_page() -> Iterator[str]:
    yield from head("The command weft", "weft/cli/")
    yield from wrapped("""
        Installing Weft brings a command. `weft COMMAND --help` prints what stands here, and
        `python -m weft` is the same without an installation.
    """)
    yield ""
    yield from markdown_table(
        ["command", "what it does"],
        [(f"[weft {name}](#weft-{name})", line) for name, line in COMMANDS.items()],
    )
    for name, sub in _commands().items():
        yield ""
        yield f"## weft {name}"
        yield ""
        yield from wrapped(f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.")
        rows = [(code(_name(action)), action.help or "") for action in _arguments(sub)]
        if rows:
            yield ""
            yield from markdown_table(["argument", "meaning"], rows)


def _commands() -> dict[str, argparse.ArgumentParser]:
    (commands,) = (
        action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    return dict(commands.choices)


def _arguments(sub: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in sub._actions if not isinstance(action, argparse._HelpAction)]


def _name(action: argparse.Action) -> str:
    """How an argument is written."""
    if not action.option_strings:
        return action.dest.upper()
    value = "" if action.nargs == 0 else f" {action.dest.upper()}"
    return action.option_strings[-1] + value

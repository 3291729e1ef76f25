"""`weft`: one command for a first look, the machine, speed, and what the messages mean.

    weft demo            train a small network on handwritten digits and show what happened
    weft devices         every back end: found, or what is missing and how to get it
    weft bench           how fast this machine runs Weft's kernels, beside torch where installed
    weft viz [TRACE]     look at what happened: graphs, rewrites, kernels, times, memory
    weft profile FILE    run a program and print where its time and memory went
    weft diff FILE       run a program with two settings and name the first tensor that differs
    weft trace [TRACE]   ask a trace for a rule, a kernel or a line; write it for Perfetto
    weft compile FILE    take a graph in text form through the passes, from any to any
    weft run MODEL       run a model file on arrays from .npy files
    weft onnx info FILE  what a model file needs, and whether Weft can run it
    weft chat MODEL      talk to a language model in the terminal
    weft serve MODEL     OpenAI's HTTP interface and a chat page
    weft embed MODEL     texts as vectors
    weft perplexity MODEL FILE  how well a model predicts a text
    weft convert MODEL OUT  a model as GGUF or safetensors, quantized
    weft bench-llm MODEL how fast a model reads and writes
    weft tune FILE       search better schedules for the kernels of a program
    weft explain CODE    what an error means and how to get out of it
    weft settings        every setting, its variable, its default and its value

Each command is a module of this package with `add_arguments` and `run`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from weft.support.errors import UsageError
from weft.support.source_line import NOWHERE, user_line

# The commands, each with the line that `weft --help` prints; the module has the same name.
COMMANDS: Final = {
    "demo": "train a small network on handwritten digits and show what happened",
    "devices": "list every back end: found, or what is missing and how to get it",
    "bench": "measure kernels on this machine, beside torch where it is installed",
    "viz": "look at a trace: graphs, rewrites, fusion, kernels, times and memory",
    "profile": "run a program and print where its time and memory went",
    "diff": "run a program with two settings and name the first tensor that differs",
    "trace": "ask a trace where something happened, or write it for another viewer",
    "compile": "take a graph in text form through the passes, from any pass to any",
    "run": "run a model file (ONNX) on arrays from .npy files",
    "onnx": "say what a model file needs, and whether Weft can run it",
    "chat": "talk to a language model in the terminal",
    "serve": "serve a language model: OpenAI's HTTP interface and a chat page",
    "embed": "print texts as vectors of a language model",
    "perplexity": "measure how well a language model predicts a text",
    "convert": "write a language model as GGUF or safetensors, quantized",
    "bench-llm": "measure how fast a language model reads and writes",
    "tune": "run a program and search better schedules for its kernels",
    "explain": "say what an error code means and how to get out of it",
    "settings": "list every setting, its variable, its default and its value",
}


def parser() -> argparse.ArgumentParser:
    """The command line, with one subcommand per row of the table."""
    top = argparse.ArgumentParser(prog="weft", description="Weft, from tensor to machine code")
    top.add_argument("--version", action="version", version=_version())
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for name, line in COMMANDS.items():
        module = import_module("weft.cli." + name.replace("-", "_"))
        sub = commands.add_parser(name, help=line, description=line)
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return top


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"weft {version('weft')}"
    except PackageNotFoundError:  # a checkout that was never installed
        return "weft (not installed)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status. Without a command, say which there are."""
    top = parser()
    launcher = user_line()
    options = top.parse_args(arguments)
    if options.command is None:
        top.print_help()
        return 0
    try:
        status = int(options.run(options))
        sys.stdout.flush()
        return status
    except UsageError as error:
        if error.where.code is not None and error.where.code is launcher.code:
            error.where = NOWHERE  # the line that called this command tells nobody anything
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())

"""Every public name exists, and takes the arguments that programs give it."""

import inspect
from typing import Any

import pytest

import weft
from tests.unit.tensor import api_names
from weft import Tensor, dtypes, nn

# A default that is found when the call is made, and what it is then.
LATER = {("randint", "dtype"): dtypes.int32, ("randperm", "dtype"): dtypes.int32}
POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
NO_DEFAULT = inspect.Parameter.empty

OWNERS: dict[str, tuple[Any, str]] = {
    "class methods": (Tensor, api_names.CLASS_METHODS),
    "methods": (Tensor, api_names.METHODS),
    "layers": (nn, api_names.LAYERS),
    "optimizers": (nn.optim, api_names.OPTIMIZERS),
    "state": (nn.state, api_names.STATE),
    "datasets": (nn.datasets, api_names.DATASETS),
}
NAMES: dict[str, tuple[Any, str]] = {
    "top": (weft, api_names.TOP),
    "properties": (Tensor, api_names.PROPERTIES),
    "further methods": (Tensor, api_names.FURTHER),
    "dtypes": (dtypes, api_names.DTYPES),
}


def signatures(text: str) -> list[str]:
    """The lines of a block; an indented one goes on with the line before."""
    return text.replace("\n    ", " ").strip().splitlines()


def parameters_of(function: Any) -> list[inspect.Parameter]:
    found = list(inspect.signature(function).parameters.values())
    return [each for each in found if each.name not in ("self", "cls")]


def asked_for(line: str) -> list[inspect.Parameter]:
    """The parameters that a line states."""
    scope: dict[str, Any] = {"dtypes": dtypes, "Tensor": Tensor}
    exec(f"def {line}: pass", scope)
    return list(inspect.signature(scope[line.partition("(")[0]]).parameters.values())


def differences(line: str, function: Any) -> list[str]:
    """What a function does not have of a line."""
    name = line.partition("(")[0]
    own = parameters_of(function)
    by_name = {each.name: each for each in own}
    found = []
    for position, wanted in enumerate(asked_for(line)):
        given = by_name.get(wanted.name)
        if wanted.kind == inspect.Parameter.VAR_KEYWORD:
            continue
        if given is None:
            found.append(f"{name} has no argument {wanted.name}")
            continue
        if given.kind == POSITIONAL and own[position] is not given:
            found.append(f"{name}: {wanted.name} is not argument {position}")
        if given.kind != wanted.kind:
            found.append(f"{name}: {wanted.name} is {given.kind.description}")
        default = LATER.get((name, wanted.name)) or given.default
        if wanted.default is not NO_DEFAULT and default != wanted.default:
            found.append(f"{name}: {wanted.name} is {default!r} by default")
    asked = {each.name for each in asked_for(line)}
    needed = [e.name for e in own if e.default is NO_DEFAULT and e.kind == POSITIONAL]
    return [*found, *(f"{name} also needs {each}" for each in needed if each not in asked)]


@pytest.mark.parametrize("family", OWNERS)
def test_signatures(family: str):
    owner, text = OWNERS[family]
    problems = []
    for line in signatures(text):
        name = line.partition("(")[0]
        function = getattr(owner, name, None)
        problems += [f"there is no {name}"] if function is None else differences(line, function)
        if name not in getattr(owner, "__all__", [name]):
            problems.append(f"{name} is not in __all__")
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("family", NAMES)
def test_names(family: str):
    owner, text = NAMES[family]
    missing = [name for name in text.split() if not hasattr(owner, name)]
    assert not missing


def test_the_comparison_can_fail():
    def function(self: Any, a: Any, c: int = 2, *, b: int = 1) -> None: ...

    assert differences("f(a, c=2)", function) == []
    assert differences("f(a, b=1)", function) == ["f: b is keyword-only"]
    assert differences("f(c=3)", function) == [
        "f: c is not argument 0",
        "f: c is 2 by default",
        "f also needs a",
    ]
    assert differences("f(a, d=0)", function) == ["f has no argument d"]

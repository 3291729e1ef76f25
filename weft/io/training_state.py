"""The state of a training run in one file: save it, load it, and go on as if nothing had happened.

A state is a nest of dicts, lists and tuples that holds tensors and plain values: parameters,
moments, step counts, the position of a loader. The state of the random numbers is saved with it. A
file is a safetensors file whose metadata has the nest; nothing in it is run.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from weft.io.safetensors import parse_json, safe_load, safe_load_metadata, safe_save
from weft.io.source import Source
from weft.support.errors import ArgumentTypeError, ShapeError
from weft.tensor.core import realize_all
from weft.tensor.create.random_state import (
    random_state,
    require_random_state,
    restore_random_state,
)
from weft.tensor.tensor import Tensor

_KEY: Final = "weft_training_state"
_PLAIN: Final = (bool, int, float, str, type(None))
_MOST_NESTED: Final = 100


def save_training_state(fn: str | Path, state: Any, random: bool = True) -> None:
    """Save a nest of tensors and plain values, and the state of the random numbers.

    >>> import tempfile, os
    >>> from weft.tensor import Tensor
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "state")
    >>> save_training_state(path, {"weights": [Tensor([1.0])], "step": 7, "loader": (3, 128)})
    >>> saved = load_training_state(path)
    >>> saved["step"], saved["loader"], saved["weights"][0].tolist()
    (7, (3, 128), [1.0])
    >>> folder.cleanup()
    """
    tensors: dict[str, Tensor] = {}
    whole = {"state": state, "random": random_state() if random else None}
    nest = _packed(whole, "state", tensors, 0)
    safe_save(tensors, fn, {_KEY: json.dumps(nest)})


def load_training_state(fn: str | Path, into: Any = None, random: bool = True) -> Any:
    """What was saved; the random numbers go on from where they were.

    Without `into`, tensors are new ones on the default device. With a nest of the same form, the
    tensors in it are written, so that models and optimizers that hold them go on. Either way the
    values are in memory when this returns.
    """
    source = Source(fn, "training state")
    _, _, header = safe_load_metadata(fn)
    text = header.get("__metadata__", {}).get(_KEY)
    if not isinstance(text, str):
        raise source.fault("expected a training state", rule="save_training_state writes one")
    nest = parse_json(source, text.encode(), "the nest")
    whole = _Reader(source, safe_load(fn)).read(nest)
    if not isinstance(whole, dict) or whole.keys() != {"state", "random"}:
        raise source.fault("the nest is damaged")
    state, has_random = whole["state"], random and whole["random"] is not None
    # All that can be wrong is found before anything is written.
    if has_random:
        require_random_state(whole["random"])
    if into is not None:
        _matched(state, into, "state", _require_fit)
        state = _matched(state, into, "state", _written)
    if has_random:
        restore_random_state(whole["random"])
    # Writes that wait would be scheduled with the next step, which then rounds elsewhere.
    realize_all(_tensors(state))
    return state


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    is_nest = isinstance(value, (dict, list, tuple))
    return [tensor for part in parts for tensor in _tensors(part)] if is_nest else []


def _packed(value: Any, name: str, tensors: dict[str, Tensor], depth: int) -> Any:
    """A value as JSON: one letter that says what it is, and its parts."""
    if depth > _MOST_NESTED:
        raise ArgumentTypeError(f"training state: {name[:80]} is nested too deeply")
    if isinstance(value, Tensor):
        tensors[name] = value
        return ["t", name]
    if type(value) in _PLAIN:
        return ["v", value]
    if type(value) is bytes:
        return ["b", base64.b64encode(value).decode()]
    if type(value) in (list, tuple):
        parts = [_packed(x, f"{name}.{i}", tensors, depth + 1) for i, x in enumerate(value)]
        return ["l" if type(value) is list else "u", parts]
    if isinstance(value, dict) and all(type(key) in (str, int) for key in value):
        pairs = [
            [key, _packed(part, f"{name}.{key}", tensors, depth + 1)]
            for key, part in value.items()
        ]
        return ["d", pairs]
    raise ArgumentTypeError(
        f"training state: {name} is a {type(value).__name__}",
        rule="a state holds dicts with text or int keys, lists, tuples, tensors, numbers, text, "
        "bytes and None",
    )


class _Reader:
    """Turns JSON back into values; whatever does not fit is damage."""

    def __init__(self, source: Source, tensors: dict[str, Tensor]) -> None:
        self.source = source
        self.tensors = tensors

    def read(self, nest: Any, depth: int = 0) -> Any:
        is_pair = isinstance(nest, list) and len(nest) == 2 and isinstance(nest[0], str)
        letter, value = nest if is_pair else ("", None)
        if depth > _MOST_NESTED + 1:
            raise self.source.fault("the nest is too deep")
        if letter == "t" and isinstance(value, str) and value in self.tensors:
            # Each has a name of its own; one that is read again would be memory again.
            return self.tensors.pop(value).to(Tensor.empty(0).device)
        if letter == "v" and type(value) in _PLAIN:
            return value
        if letter == "b" and isinstance(value, str):
            return self._decoded(value)
        if letter in ("l", "u") and isinstance(value, list):
            parts = [self.read(part, depth + 1) for part in value]
            return parts if letter == "l" else tuple(parts)
        if letter == "d" and isinstance(value, list):
            return dict(self._pair(pair, depth) for pair in value)
        raise self.source.fault("the nest is damaged")

    def _decoded(self, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise self.source.fault("some bytes are damaged") from None

    def _pair(self, pair: Any, depth: int) -> tuple[Any, Any]:
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) not in (str, int):
            raise self.source.fault("the nest is damaged")
        return pair[0], self.read(pair[1], depth + 1)


def _matched(saved: Any, into: Any, name: str, write: Callable[[Any, Any, str], Any]) -> Any:
    """The saved values, with the tensors of `into` instead of theirs."""
    if isinstance(into, Tensor) or isinstance(saved, Tensor):
        return write(saved, into, name)
    if isinstance(saved, dict) and isinstance(into, dict):
        _require_same(sorted(map(str, saved)), sorted(map(str, into)), name)
        return {key: _matched(saved[key], into[key], f"{name}.{key}", write) for key in saved}
    if isinstance(saved, (list, tuple)) and isinstance(into, (list, tuple)):
        _require_same(len(saved), len(into), name)
        pairs = enumerate(zip(saved, into, strict=True))
        parts = [_matched(a, b, f"{name}.{i}", write) for i, (a, b) in pairs]
        return type(saved)(parts)
    return saved


def _written(saved: Any, into: Any, name: str) -> Tensor:
    result: Tensor = into.assign(saved.to(into.device))
    return result


def _require_fit(saved: Any, into: Any, name: str) -> None:
    if not isinstance(saved, Tensor) or not isinstance(into, Tensor):
        _require_same(type(saved).__name__, type(into).__name__, name)
    _require_same(saved.shape, into.shape, name)
    _require_same(saved.dtype.name, into.dtype.name, name)


def _require_same(saved: object, into: object, name: str) -> None:
    if saved != into:
        raise ShapeError(
            f"training state: {name} does not fit",
            facts=[("saved", saved), ("here", into)],
            rule="a state is loaded into one of the same form",
        )

"""A sequence of a cache as a safetensors file: what was read once is not read again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.io.safetensors import safe_load, safe_load_metadata, safe_save
from weft.support.errors import FileFormatError
from weft.tensor.core import realize_all
from weft.tensor.tensor import Tensor

if TYPE_CHECKING:
    from weft.llm.cache.paged import PagedCache, Sequence


def save_sequence(cache: PagedCache, sequence: Sequence, path: str | Path) -> None:
    """Keys and values (pages, size, kv_heads, head_size) of each layer, and the length."""
    tensors = {}
    for index in range(len(cache.spans)):
        if not sequence.pages[index]:
            continue
        pages = Tensor(sequence.pages[index])
        for layer in cache.layers_of(index):
            tensors[f"{layer}.keys"] = cache.keys[layer][pages]
            tensors[f"{layer}.values"] = cache.values[layer][pages]
    first = ",".join(map(str, sequence.first))
    safe_save(tensors, path, {"length": str(sequence.length), "first": first})


def load_sequence(cache: PagedCache, path: str | Path) -> Sequence:
    """A sequence with the content of a file."""
    stated = safe_load_metadata(path)[2].get("__metadata__", {})
    try:
        length = int(stated["length"])
        first = [int(each) for each in stated["first"].split(",")]
    except (KeyError, ValueError):
        raise FileFormatError("cache: expected the file of a saved sequence") from None
    if len(first) != len(cache.spans):
        raise FileFormatError("cache: the file was saved from a model with other windows")
    tensors = {name: tensor.to(cache.keys[0].device) for name, tensor in safe_load(path).items()}
    sequence = cache.allocate()
    sequence.first = first
    cache.extend(sequence, length)
    try:
        _fill(cache, sequence, tensors)
    except FileFormatError:
        cache.free(sequence)
        raise
    return sequence


def _fill(cache: PagedCache, sequence: Sequence, tensors: dict[str, Tensor]) -> None:
    writes = []
    for index in range(len(cache.spans)):
        held = sequence.pages[index]
        if not held:
            continue
        pages = Tensor(held)
        for layer in cache.layers_of(index):
            for kind, stored in (("keys", cache.keys), ("values", cache.values)):
                content, target = tensors.get(f"{layer}.{kind}"), stored[layer]
                if content is None or content.shape != (len(held), *target.shape[1:]):
                    raise FileFormatError(f"cache: {kind} of layer {layer} do not fit the model")
                target[pages] = content.cast(target.dtype)
                writes.append(target)
    realize_all(writes)

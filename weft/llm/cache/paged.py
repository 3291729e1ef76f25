"""A cache of keys and values in pages, which sequences share.

Memory is cut into pages of some positions. A sequence has a list of pages for each span: the
layers that attend to everything have one, the layers of a window another, so that a window gives
back what it has passed. Pages are counted: a fork shares the pages of its prefix, and a shared
page is copied before it is written. Page 0 belongs to nobody: padding is written there.
"""

from __future__ import annotations

from collections.abc import Sequence as Listed
from pathlib import Path
from typing import Any, Final

from weft.engine.contents import zero_buffer
from weft.ir.dtypes import DType, dtypes
from weft.llm.cache.pages import PagePool
from weft.llm.model.config import Config
from weft.support.errors import ArgumentError
from weft.tensor.core import realize_all
from weft.tensor.create.creation import constant, device_name
from weft.tensor.tensor import Tensor

PAGE: Final = 32


class Sequence:
    """What was read of one sequence: its length, and its pages for each span.

    `first` is the number of pages at the beginning that a window gave back.
    """

    def __init__(self, spans: int) -> None:
        self.length = 0
        self.pages: list[list[int]] = [[] for _ in range(spans)]
        self.first = [0] * spans
        self.is_free = False


class PagedCache:
    """Pages for the tokens of all sequences; `spans` are the windows of the layers."""

    def __init__(
        self, config: Config, tokens: int, dtype: DType = dtypes.float32, device: str | None = None
    ) -> None:
        if tokens < 1:
            raise ArgumentError(f"cache: expected room for at least a token, got {tokens}")
        self.config = config
        self.spans = config.spans()
        count = -(-tokens // PAGE)
        self.pools = [PagePool(count) for _ in self.spans]
        shape = (count + 1, PAGE, config.kv_heads, config.head_size)
        self.keys, self.values = (
            [_zeros(shape, dtype, device) for _ in range(config.layers)] for _ in range(2)
        )
        realize_all([*self.keys, *self.values])

    @property
    def free_tokens(self) -> int:
        """How many more tokens fit, if no page is shared."""
        return min(pool.free for pool in self.pools) * PAGE

    def allocate(self) -> Sequence:
        """A sequence of no tokens; it takes pages as it grows."""
        return Sequence(len(self.spans))

    def extend(self, sequence: Sequence, count: int) -> None:
        """Make room for `count` more tokens, and pages that are shared into own ones."""
        _require_used(sequence)
        length = sequence.length + count
        if length > self.config.context:
            raise ArgumentError(
                f"cache: a sequence of {length} tokens does not fit the context",
                rule=f"the model has {self.config.context} positions",
            )
        wanted = -(-length // PAGE)
        writes = sequence.length // PAGE  # the first page that is written
        for index, pool in enumerate(self.pools):
            held, first = sequence.pages[index], sequence.first[index]
            shared = sum(pool.is_shared(page) for page in held[max(writes - first, 0) :])
            pool.require(wanted - first - len(held) + shared)
        for index, pool in enumerate(self.pools):
            held, first = sequence.pages[index], sequence.first[index]
            for number in range(max(writes - first, 0), len(held)):
                if pool.is_shared(held[number]):
                    held[number] = self._copied(index, held[number])
            held.extend(pool.take(wanted - first - len(held)))
        sequence.length = length

    def truncate(self, sequence: Sequence, length: int) -> None:
        """Forget the tokens from `length` on: their pages are free again."""
        _require_used(sequence)
        if not 0 <= length <= sequence.length:
            raise ArgumentError(
                f"cache: cannot cut a sequence of {sequence.length} tokens to {length}"
            )
        wanted = -(-length // PAGE)
        for index, window in enumerate(self.spans):
            least = sequence.first[index] * PAGE
            if window and least > max(length - window, 0):
                raise ArgumentError(
                    "cache: a window gave back what the shorter sequence attends to",
                    fix="cut by less than was read at once, or read the sequence again",
                )
        for index, pool in enumerate(self.pools):
            held = sequence.pages[index]
            kept = max(wanted - sequence.first[index], 0)
            pool.give_back(held[kept:])
            del held[kept:]
        sequence.length = length

    def fork(self, sequence: Sequence, length: int | None = None) -> Sequence:
        """Another sequence with the same first tokens; their pages are shared until written."""
        _require_used(sequence)
        made = Sequence(len(self.spans))
        made.length, made.first = sequence.length, list(sequence.first)
        made.pages = [list(held) for held in sequence.pages]
        for pool, held in zip(self.pools, made.pages, strict=True):
            pool.share(held)
        if length is not None:
            try:
                self.truncate(made, length)
            except ArgumentError:
                self.free(made)
                raise
        return made

    def trim(self, sequence: Sequence, keep: int = 0) -> None:
        """Give back pages that no window reaches from the next token on, or `keep` before it."""
        _require_used(sequence)
        for index, window in enumerate(self.spans):
            if not window:
                continue
            least = max(sequence.length - keep - window + 1, 0) // PAGE
            passed = least - sequence.first[index]
            if passed > 0:
                held = sequence.pages[index]
                self.pools[index].give_back(held[:passed])
                del held[:passed]
                sequence.first[index] = least

    def free(self, sequence: Sequence) -> None:
        """Give all pages back; the sequence is of no use any more."""
        _require_used(sequence)
        for pool, held in zip(self.pools, sequence.pages, strict=True):
            pool.give_back(held)
            held.clear()
        sequence.is_free = True

    def save(self, sequence: Sequence, path: str | Path) -> None:
        """Write keys and values of a sequence into a safetensors file."""
        from weft.llm.cache.files import save_sequence

        save_sequence(self, sequence, path)

    def load(self, path: str | Path) -> Sequence:
        """A sequence that was saved, of a model with the same sizes."""
        from weft.llm.cache.files import load_sequence

        return load_sequence(self, path)

    def layers_of(self, index: int) -> Listed[int]:
        """The layers of a span."""
        window = self.spans[index]
        return [n for n, each in enumerate(self.config.windows) if each == window]

    def _copied(self, index: int, page: int) -> int:
        """A page of one's own with the content of a shared one."""
        (fresh,) = self.pools[index].take(1)
        writes: list[Any] = []
        for layer in self.layers_of(index):
            for stored in (self.keys[layer], self.values[layer]):
                stored[fresh] = stored[page].contiguous()
                writes.append(stored)
        realize_all(writes)
        self.pools[index].give_back([page])
        return fresh


def _zeros(shape: tuple[int, ...], dtype: DType, device: str | None) -> Tensor:
    """Memory of zeros. On a host, pages that no sequence uses take no time and no memory."""
    name = device_name(device)
    node = zero_buffer(dtype, shape, name)
    if node is None:
        return Tensor.zeros(*shape, dtype=dtype, device=device).contiguous()
    return constant(Tensor, node, name, None)


def _require_used(sequence: Sequence) -> None:
    if sequence.is_free:
        raise ArgumentError("cache: the sequence was freed", fix="allocate another one")

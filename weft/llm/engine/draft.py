"""A small model that proposes what a large one may say; both have the same tokens."""

from __future__ import annotations

from weft.llm.cache.paged import Sequence
from weft.llm.engine.prefixes import Prefixes
from weft.llm.model.batch import Batch
from weft.llm.model.transformer import Model
from weft.support.errors import ArgumentError, OutOfMemory

PIECE = 128


class DraftProposer:
    """The likeliest tokens of a draft model; a `Proposer`.

    It has a cache of its own, with a sequence for each answer that runs, found by its tokens.
    """

    def __init__(
        self, draft: Model, target: Model, count: int = 4, tokens: int = 0, streams: int = 1
    ) -> None:
        if draft.vocabulary != target.vocabulary:
            raise ArgumentError(
                f"draft: it has {draft.vocabulary} tokens and the model {target.vocabulary}",
                rule="both have the same vocabulary",
            )
        self.model = draft
        self.count = count
        longest = min(draft.config.context, target.config.context, 4096)
        self._cache = draft.new_cache(tokens or longest * streams)
        self._prefixes = Prefixes(self._cache)

    def propose(self, tokens: list[int], most: int) -> list[int]:
        wanted = min(self.count, most, self.model.config.context - len(tokens))
        if wanted < 1:
            return []
        sequence = self._prefixes.sequence_for(tokens, ())
        try:
            return self._proposed(sequence, tokens, wanted)
        finally:
            self._cache.truncate(sequence, min(sequence.length, len(tokens)))
            if sequence.length:
                self._prefixes.keep(tokens, sequence)
            else:
                self._cache.free(sequence)

    def _proposed(self, sequence: Sequence, tokens: list[int], wanted: int) -> list[int]:
        found: list[int] = []
        pending = tokens[sequence.length :]
        while len(found) < wanted:
            piece, pending = pending[:PIECE], pending[PIECE:]
            batch = self._batch(sequence, piece)
            if batch is None:
                return []
            logits = self.model.forward(batch)
            if not pending:
                found.append(int(logits.numpy()[0].argmax()))
                pending = found[-1:]
        return found

    def _batch(self, sequence: Sequence, tokens: list[int]) -> Batch | None:
        while True:
            try:
                return Batch.of(self._cache, [(sequence, tokens)])
            except OutOfMemory:
                if not self._prefixes.make_room():
                    return None

"""What every opt is: a pure rewrite of a kernel, and the reasons why it may not be taken.

`opts_of_loops` and `opts_of_values` have the opts, and `opts` lists them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft.ir.uop import UOp
from weft.support.errors import OptRefused
from weft.support.source_line import NOWHERE


@dataclass(frozen=True)
class Opt:
    """One opt: a pure rewrite of a kernel."""

    def reasons(self, kernel: UOp) -> Iterable[str]:
        """Why this is not legal, each reason in words; none if it is."""
        raise NotImplementedError

    def rewritten(self, kernel: UOp) -> UOp:
        """The kernel after this opt, which is legal."""
        raise NotImplementedError

    def apply(self, kernel: UOp) -> UOp:
        for reason in self.reasons(kernel):
            raise OptRefused(f"{self} refused: {reason}", where=NOWHERE)
        return self.rewritten(kernel)

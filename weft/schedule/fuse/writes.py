"""Writes of memory: which kernel makes a version, who reads it, and which writes replace it.

A write runs after the kernels that read what it replaces, where that is possible; `hazards` looks
at what is left when all kernels are known.
"""

from __future__ import annotations

from collections import defaultdict

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.views import unmoved, version_of
from weft.schedule.fuse.kernel import Kernel
from weft.schedule.fuse.order import depends_on, follow, need
from weft.schedule.fuse.uses import Use


class Writes:
    """The versions of memory that the walk has seen."""

    def __init__(self) -> None:
        self.makers: dict[UOp, Kernel] = {}  # STORE or CALL -> the kernel that does it
        self.readers: defaultdict[UOp, list[Use]] = defaultdict(list)  # of PARAM and AFTER
        self._replacing: defaultdict[UOp, list[UOp]] = defaultdict(list)  # version -> STOREs
        self._version_after: dict[UOp, UOp] = {}  # STORE -> the AFTER that reads it

    def see_store(self, store: UOp) -> None:
        """The walk comes to a STORE, before what it replaces."""
        self._replacing[version_of(store.src[0])].append(store)

    def see_version(self, version: UOp, uses: list[Use]) -> None:
        """The walk comes to memory or a version of it, which is read at these uses."""
        self.readers[version] = list(dict.fromkeys(self.readers[version] + uses))
        for store in self._replacing[version]:
            self._wait_for_readers(version, store)
        for effect in version.src[1:] if version.op == Op.AFTER else ():
            self._version_after[effect] = version

    def read(self, version: UOp, use: Use) -> None:
        """Let memory be read at one more use."""
        self.readers[version] = list(dict.fromkeys([*self.readers[version], use]))

    def readers_of(self, effect: UOp) -> list[Use]:
        """The uses of the version that a STORE or CALL makes."""
        version = self._version_after.get(effect)
        return [] if version is None else self.readers[version]

    def add(self, store: UOp, view: UOp, kernel: Kernel) -> None:
        """Let a kernel do a write, before its readers and after those of what it replaces."""
        self.makers[store] = kernel
        for use in self.readers_of(store):
            need(use.kernel, kernel)
        self._wait_for_readers(version_of(view), store)
        version = self._version_after.get(store)
        for later in self._replacing[version] if version is not None else ():
            if later in self.makers:  # the write that replaces what this one makes
                follow(self.makers[later], kernel)

    def lasts(self, store: UOp) -> bool:
        """Whether what a store writes is never overwritten, so that others can read it there.

        Index tensors may send two elements to one address, and some to none.
        """
        view = unmoved(store.src[0])
        version = self._version_after.get(store)
        return view.op != Op.INDEX and (version is None or not self._replacing[version])

    def _wait_for_readers(self, version: UOp, store: UOp) -> None:
        """A kernel that overwrites a version runs after those that read it, where it can."""
        kernel = self.makers.get(store)
        for use in self.readers[version] if kernel is not None else ():
            if kernel is not None and not depends_on(use.kernel, kernel):
                follow(kernel, use.kernel)

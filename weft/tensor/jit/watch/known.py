"""What is known of functions of C, which cannot be followed: what they look at, and whether they
depend on more than their arguments."""

from __future__ import annotations

import operator
import random
import weakref
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

import numpy as np

GENERATORS: Final = (random.Random, np.random.Generator, np.random.RandomState)
# They look at the items of their arguments, not below.
SHALLOW: Final = {
    all, any, enumerate, filter, iter, len, map, max, min, next, range, reversed, sorted, sum, zip,
    list, tuple, dict, set, frozenset,
}  # fmt: skip
SLOTS: Final = (MemberDescriptorType, GetSetDescriptorType)
# Functions of C that these may be handed, which look below.
LOOKERS: Final = (operator.attrgetter, operator.methodcaller)
# What these look for in the class of an argument, also where there is none of it yet.
SPECIAL: Final[dict[Any, tuple[str, ...]]] = {
    str: ("__str__", "__repr__"),
    repr: ("__repr__",),
    format: ("__format__", "__str__"),
    float: ("__float__", "__index__"),
    int: ("__int__", "__index__"),
    complex: ("__complex__", "__float__", "__index__"),
    bool: ("__bool__", "__len__"),
    hash: ("__hash__",),
    callable: ("__call__",),
    round: ("__round__",),
    divmod: ("__divmod__", "__rdivmod__"),
    pow: ("__pow__", "__rpow__"),
    iter: ("__iter__", "__getitem__"),
    reversed: ("__reversed__", "__len__", "__getitem__"),
    **dict.fromkeys((list, tuple, set, frozenset, dict), ("__iter__", "__len__")),
}
# The same, of the items of their arguments.
SPECIAL_OF_ITEMS: Final[dict[Any, tuple[str, ...]]] = {
    **dict.fromkeys((min, max, sorted), ("__lt__", "__gt__")),
    **dict.fromkeys((any, all, filter), ("__bool__", "__len__")),
    sum: ("__add__", "__radd__"),
}
BLIND: Final = {
    callable, id, type, object, super, property, classmethod, staticmethod,
    setattr, delattr, print, weakref.ref, slice, hash,
}  # fmt: skip
# Parts of Python and NumPy whose functions depend on their arguments alone.
PURE_HOMES: Final = [
    "builtins", "math", "cmath", "_operator", "operator", "itertools", "_functools",
    "functools", "_collections", "collections", "_struct", "_json", "_bisect", "_heapq",
    "binascii", "zlib", "_sre", "re", "unicodedata", "_weakref", "_abc", "_thread",
    "_decimal", "decimal", "_string", "_codecs", "array", "numpy", "_contextvars", "types",
    "typing", "_typing", "enum", "copy", "_statistics", "_warnings", "_imp", "_ast",
    "marshal", "fractions", "_datetime", "datetime", "_hashlib", "_md5", "_sha1", "_sha2",
    "_blake2", "_sha256", "_sha512", "_stat", "gc", "posix.fspath", "nt.fspath",
]  # fmt: skip
CHANGES: Final = [
    "append", "appendleft", "extend", "extendleft", "insert", "add", "update", "clear",
    "discard", "reverse", "sort", "remove", "__setitem__", "__delitem__", "setdefault", "pop",
    "popleft", "popitem", "rotate",
]  # fmt: skip
CHANGES_UNREAD: Final = [
    "append", "appendleft", "extend", "extendleft", "insert", "add", "update", "clear",
    "discard", "__setitem__", "__delitem__",
]  # fmt: skip
# How NumPy has been told to go about errors and text; threads, which are not followed; what the
# collector knows; copies of all context variables.
SETTINGS: Final = (
    "_get_extobj_dict", "geterrobj", "get_printoptions", "getbufsize", "get_ident",
    "get_native_id", "get_count", "get_stats", "get_objects", "get_referrers", "isenabled",
    "get_threshold", "get_debug", "copy_context", "start_new_thread", "start_joinable_thread",
)  # fmt: skip
# What the library of Python asks about the frames that run, which are those of the function.
OF_FRAMES: Final = (
    "exc_info",
    "getrecursionlimit",
    "_getframe",
    "_getframemodulename",
    "exception",
)
NOW: Final = ("now", "today", "utcnow", "default_rng", "RandomState", "Random", "SeedSequence")

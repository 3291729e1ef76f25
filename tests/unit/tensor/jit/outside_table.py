"""The table of ways to read state from outside of a jitted function, each with a change of it.

`CHANGES` has functions that set up one way and return a function of a tensor and a change; the
files `outside_*.py` fill it. `WARNED` has those whose state nobody can compare: they must warn.
"""

import operator

CHANGES = {}
WARNED = {}


def change(way):
    CHANGES[way.__name__] = way
    return way


def warned(way):
    WARNED[way.__name__] = way
    return way


class Box:
    """An object with an attribute."""

    rate: object = 2.0

    def __init__(self, rate=2.0):
        self.rate = rate

    def scale(self):
        return self.rate


def set_item(container, key, value):
    return lambda: operator.setitem(container, key, value)


def set_attribute(thing, name, value):
    return lambda: setattr(thing, name, value)


def rate_of(box):
    return box.rate

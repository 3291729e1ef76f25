"""Code that Python runs in the middle of a traced function is none of its own: nothing warns."""

import functools
import gc
import logging
import os
import signal
import sys
import weakref

import pytest

from weft import Tensor, jit


class Counted:
    """State that each interruption reads and changes."""

    count = 0


STATE = Counted()


def note(*_):
    STATE.count += 1
    os.getcwd()  # would warn


class Thing:
    def notice(self, _):
        note()

    def __call__(self, _):
        note()


class Closing:
    def __del__(self):
        self.close()

    def close(self):
        note()


THING = Thing()
KEPT = []


def in_a_cycle(made):
    """Garbage that the collector finds, not before."""
    made.itself = made
    return made


def weak_reference(callback):
    KEPT.append(weakref.ref(in_a_cycle(Thing()), callback))


def begun_generator():
    def generator():
        try:
            yield
        finally:
            note()

    made = generator()
    next(made)
    in_a_cycle(Thing()).made = made


GARBAGE = {
    "function": lambda: weak_reference(lambda reference: note()),
    "method": lambda: weak_reference(THING.notice),
    "object": lambda: weak_reference(THING),
    "partial function": lambda: weak_reference(functools.partial(lambda a, b: note(), 1)),
    "finalizer": lambda: weakref.finalize(in_a_cycle(Thing()), note, 1),
    "__del__": lambda: in_a_cycle(Closing()),
    "generator": begun_generator,
}


def traced_with(function):
    """Trace, and say how often an interruption came."""
    before = STATE.count
    jitted = jit(function)
    assert jitted(Tensor([1.5]).realize()).item() == 3.0
    came = STATE.count - before
    jitted(Tensor([1.5]).realize())
    assert jitted.traces == 1
    return came


def collected(x):
    gc.collect()
    return x * 2


@pytest.mark.parametrize("kind", GARBAGE)
def test_what_runs_when_an_object_goes(kind):
    gc.collect()
    gc.disable()
    try:
        GARBAGE[kind]()
        assert traced_with(collected) == 1
    finally:
        gc.enable()
        KEPT.clear()


def test_callbacks_of_the_collector():
    gc.callbacks.append(note)
    try:
        assert traced_with(collected) >= 2
    finally:
        gc.callbacks.remove(note)


def test_handlers_of_signals():
    def raised(x):
        signal.raise_signal(signal.SIGUSR1)  # which warns itself
        return x * 2

    before = signal.signal(signal.SIGUSR1, note)
    try:
        with pytest.warns(UserWarning, match="raise_signal") as caught:
            assert traced_with(raised) == 1
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(caught) == 1


def test_handlers_of_messages():
    class Handler(logging.Handler):
        def emit(self, record):
            note()

    logger = logging.getLogger("test_interruptions")
    logger.addHandler(Handler())
    logger.propagate = False

    def function(x):
        logger.warning("a message")
        return x * 2

    assert traced_with(function) == 1


def test_a_stream_that_is_printed_to(monkeypatch):
    class Stream:
        def write(self, text):
            note()

        def flush(self):
            note()

    def function(x):
        print("a message", flush=True)
        return x * 2

    monkeypatch.setattr(sys, "stdout", Stream())
    assert traced_with(function) >= 2


def test_a_dead_reference_that_is_handed_over_is_no_interruption():
    box = Counted()
    reference = weakref.ref(Thing())

    def looked_up(found):
        return found() or box.count

    def function(x):
        return x * looked_up(reference)

    jitted = jit(function)
    box.count = 2
    assert jitted(Tensor([1.5]).realize()).item() == 3.0
    box.count = 4
    assert jitted(Tensor([1.5]).realize()).item() == 6.0

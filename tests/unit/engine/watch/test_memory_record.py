"""Memory is listed with the line that made it: in a profile, on NULL, and where none is left."""

import gc
from pathlib import Path

import pytest

import weft
from weft import Tensor
from weft.engine.buffers import _alive
from weft.engine.counters import GlobalCounters
from weft.engine.devices import device


@pytest.fixture(autouse=True)
def no_garbage():
    """What earlier tests left goes before the profile, so that the peak is at its end."""
    gc.collect()


def location_of(mark):
    """The end of the name of a line of this file: other files have lines of the same number."""
    rows = Path(__file__).read_text().splitlines()
    row = 1 + next(i for i, text in enumerate(rows) if text.endswith(f"# {mark}"))
    return f"test_memory_record.py:{row}"


def is_whole(found, device="CPU"):
    return sum(row.size for row in found.alive_at_peak[device]) == found.peak_memory[device]


@pytest.mark.parametrize("name", ["CPU", "NULL"])
def test_a_memory_hog_is_found_by_its_line(name):
    x = Tensor.empty(300, 300, device=name)
    with weft.profile() as found:
        hog = (x.reshape(1, 300, 300).expand(20, 300, 300) + 1).contiguous().realize()  # the hog
        small = (x + 2).realize()
    (row,) = [r for r in found.alive_at_peak[name] if r.line.endswith(location_of("the hog"))]
    assert row.size == 20 * 300 * 300 * 4 and "[20, 300, 300]" in row.what
    assert f"alive at the peak of {name}" in str(found) and row.line in str(found)
    del hog, small


def test_what_is_alive_adds_up_to_the_peak():
    before = Tensor.ones(111, 111).contiguous().realize()
    with weft.profile() as found:
        kept = [(before * i).realize() for i in range(2, 5)]
        for _ in range(3):
            (before @ before).softmax(-1).realize()
    rows = found.alive_at_peak["CPU"]
    assert is_whole(found)
    assert any(row.tensors == 3 and "[111, 111]" in row.what for row in rows)
    del kept


def test_temporaries_of_jitted_functions_are_listed():
    step = weft.jit(lambda x: (x @ x).softmax(-1) @ x)
    x = Tensor.ones(77, 77).contiguous().realize()
    for _ in range(3):
        y = step(x)
    with weft.profile() as found:
        y = step(x).realize()
    rows = found.alive_at_peak["CPU"]
    assert is_whole(found)
    assert any(row.what == "temporaries of jitted functions" for row in rows)
    del y


def test_memory_of_before_that_is_given_back_comes_off():
    """Temporaries of a function that dies in the middle, and tensors in a cycle."""
    x = Tensor.ones(91, 91).contiguous().realize()
    step = weft.jit(lambda x: (x @ x).softmax(-1) @ x)
    for _ in range(3):
        step(x)
    cycle = [(x + 5).realize()]
    cycle.append(cycle)
    with weft.profile() as found:
        first = (x + 1).realize()
        del step, cycle
        gc.collect()
        # More than all that was given back, whatever other tests left: the peak is after it.
        given_back = GlobalCounters.peak_memory["CPU"] - GlobalCounters.mem_used_by["CPU"]
        hog = (
            Tensor.empty(given_back + (1 << 20), dtype=weft.uint8, device="CPU").zero_().realize()
        )
    assert is_whole(found)
    del first, hog


def test_a_collection_while_the_list_is_written_loses_nothing():
    """The first record lists all memory, which takes a while; garbage is given back after it."""
    x = Tensor.ones(33, 33).contiguous().realize()
    before = gc.get_threshold()
    cycles = []
    for _ in range(50):
        cycle = [(x + 5).realize()]
        cycle.append(cycle)
        cycles.append(cycle)
    try:
        gc.set_threshold(10, 1, 1)
        with weft.profile() as found:
            del cycles, cycle
            kept = [(x * i).realize() for i in range(2, 5)]
            hog = (x.reshape(1, 33, 33).expand(99, 33, 33) + 3).contiguous().realize()
    finally:
        gc.set_threshold(*before)
    assert is_whole(found)
    del kept, hog


def test_memory_that_was_given_back_is_not_alive():
    x = Tensor.ones(64, 64).contiguous().realize()
    with weft.profile() as found:
        gone = (x + 1).realize()  # gone
        del gone
        last = (x.reshape(1, 64, 64).expand(8, 64, 64) + 3).contiguous().realize()  # the last
    lines = [row.line for row in found.alive_at_peak["CPU"]]
    assert any(line.endswith(location_of("the last")) for line in lines)
    assert not any(line.endswith(location_of("gone")) for line in lines)
    del last


def test_the_message_of_full_memory_names_lines():
    one = Tensor.empty(3, 1, device="NULL")  # where memory is only counted
    hog = (one.expand(3, 100_000_000) + 1).contiguous().realize()  # in the message
    rows = list(_alive(device("NULL")))
    assert any(
        "[3, 100000000]" in what and location.endswith(location_of("in the message"))
        for _, what, _, location in rows
    )
    del hog

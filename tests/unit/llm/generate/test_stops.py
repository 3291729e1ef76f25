"""Stop strings end a text wherever the pieces are cut."""

import random

from weft.llm.generate.stops import StopWatch


def test_every_cut_gives_the_text_before_the_first_stop():
    source = random.Random(0)
    for _ in range(500):
        text = "".join(source.choice("abc") for _ in range(source.randint(0, 30)))
        stops = ["".join(source.choice("abc") for _ in range(source.randint(1, 4))) for _ in "12"]
        watch, found, rest = StopWatch(stops), "", text
        while rest and not watch.is_stopped:
            size = source.randint(1, 5)
            found, rest = found + watch.add(rest[:size]), rest[size:]
        found += watch.end()
        positions = [text.find(stop) for stop in stops if stop in text]
        # A stop that ends first is seen first; another may begin before it and end later.
        ends = [text.find(stop) + len(stop) for stop in stops if stop in text]
        assert watch.is_stopped == bool(positions)
        if not positions:
            assert found == text
        else:
            assert text.startswith(found) and len(found) <= min(ends)
            assert not any(stop in found for stop in stops)


def test_no_stops_hold_nothing_back():
    watch = StopWatch(["", ""])
    assert watch.add("abc") == "abc" and watch.end() == "" and not watch.is_stopped

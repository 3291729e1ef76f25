"""A table that keeps nothing alive, in the order in which things came."""

import gc

from weft.support.weak_table import WeakTable


class Thing:
    pass


def test_things_go_when_they_die():
    table: WeakTable[Thing] = WeakTable()
    first, second = Thing(), Thing()
    table.put(1, first)
    table.put(2, second)
    del first
    gc.collect()
    assert table.get(1) is None
    assert table.things() == [second]
    assert len(table) == 1


def test_a_key_that_has_another_thing_stays():
    table: WeakTable[Thing] = WeakTable()
    first, second = Thing(), Thing()
    table.put(1, first)
    table.put(1, second)
    del first
    gc.collect()
    assert table.get(1) is second
    table.pop(1)
    table.pop(1)
    assert len(table) == 0


def test_a_thing_keeps_its_entry_until_it_is_discarded():
    table: WeakTable[Thing] = WeakTable()
    things = [Thing() for _ in range(3)]
    for each in things:
        table.add(each)
    table.add(things[0])
    assert table.things() == things
    table.discard(things[0])
    table.add(things[0])
    assert table.things() == [things[1], things[2], things[0]]


def test_the_address_of_a_dead_thing_is_free():
    table: WeakTable[Thing] = WeakTable()
    for _ in range(100):  # at one address or another
        thing = Thing()
        table.add(thing)
        assert table.things() == [thing]
        del thing
    assert len(table) == 0

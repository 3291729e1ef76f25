"""Settings: the table, scopes that stay in their thread and task, and values in code."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from weft.support.errors import (
    ArgumentError,
    ArgumentTypeError,
    NotSupported,
    UnknownAttribute,
    UnknownName,
)
from weft.support.settings import Context, Settings, cache_key, settings, table


def debug() -> int:
    return settings.DEBUG


def in_new_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_every_row_is_complete():
    for row in table():
        assert row.name.isupper()
        assert row.variable in (row.name, "WEFT_" + row.name)
        assert row.meaning.endswith(".") and len(row.meaning) < 100
        assert row.kind in (bool, int, str)
        assert row.try_accept(row.default) == row.default
        assert type(getattr(settings, row.name)) is row.kind
        assert getattr(Settings, row.name) is row
        assert repr(row) == f"<Setting {row.name}>"


def test_annotations_agree_with_defaults():
    assert Settings.__annotations__ == {row.name: row.kind.__name__ for row in table()}


def test_variables_are_unique():
    assert len({row.variable for row in table()}) == len(table())


def test_context_changes_and_restores():
    before = settings.DEBUG
    with Context(DEBUG=7, NOOPT=1, DEVICE="CPU"):
        assert (settings.DEBUG, settings.NOOPT, settings.DEVICE) == (7, True, "CPU")
        assert settings.NOOPT is True
    assert debug() == before


def test_contexts_nest():
    with Context(DEBUG=1, BEAM=4):
        with Context(DEBUG=2):
            assert (settings.DEBUG, settings.BEAM) == (2, 4)
            with Context(BEAM=0):
                assert (settings.DEBUG, settings.BEAM) == (2, 0)
        assert (settings.DEBUG, settings.BEAM) == (1, 4)


def test_an_exception_restores():
    before = settings.DEBUG
    with pytest.raises(KeyError), Context(DEBUG=9):
        raise KeyError
    assert debug() == before


def test_one_context_is_entered_twice():
    before, twice = debug(), Context(DEBUG=3)
    with twice:
        with Context(DEBUG=4), twice:
            assert settings.DEBUG == 3
        assert settings.DEBUG == 3
    assert debug() == before


def test_scopes_that_end_out_of_order_leave_nothing_behind():
    before = settings.DEBUG

    def generator():
        with Context(DEBUG=5):
            yield

    steps = generator()
    next(steps)
    with Context(DEBUG=6):
        assert next(steps, None) is None
    assert debug() == before


def test_an_exit_elsewhere_is_harmless():
    before = settings.DEBUG
    contextvars.Context().run(Context(DEBUG=5).__exit__)
    assert debug() == before


@Context(DEBUG=8)
def debug_of(depth: int, *, bonus: int = 0) -> int:
    """Return the setting."""
    return settings.DEBUG + bonus if depth == 0 else debug_of(depth - 1, bonus=bonus)


def test_decorator():
    before = settings.DEBUG
    assert debug_of(0) == debug_of(5) == 8
    assert debug_of(1, bonus=1) == 9
    assert (debug_of.__name__, debug_of.__doc__) == ("debug_of", "Return the setting.")
    assert debug() == before
    assert in_new_thread(lambda: debug_of(2)) == 8


def test_decorator_of_a_coroutine():
    @Context(DEBUG=8)
    async def later() -> int:
        await asyncio.sleep(0)
        return settings.DEBUG

    assert asyncio.run(later()) == 8


def test_decorator_refuses_generators():
    def steps():
        yield settings.DEBUG

    with pytest.raises(NotSupported, match="steps is a generator function"):
        Context(DEBUG=8)(steps)


def test_a_builtin_can_be_decorated():
    assert Context(DEBUG=8)(len)("abc") == 3


def test_a_new_thread_starts_from_the_environment():
    before = settings.DEBUG
    with Context(DEBUG=before + 1):
        assert in_new_thread(debug) == before


def test_threads_do_not_see_each_other():
    everybody = threading.Barrier(4, timeout=60)
    shared = Context(NOOPT=True)

    def run(value: int) -> list[tuple[int, bool]]:
        seen = []
        for i in range(50):
            with Context(DEBUG=value), shared:
                everybody.wait()
                seen.append((settings.DEBUG, settings.NOOPT))
                if i % 7 == value:
                    with Context(DEBUG=100, NOOPT=False):
                        everybody.wait()
                else:
                    everybody.wait()
                seen.append((settings.DEBUG, settings.NOOPT))
        return seen

    with ThreadPoolExecutor(4) as pool:
        for value, seen in enumerate(pool.map(run, range(4))):
            assert set(seen) == {(value, True)}


def test_tasks_do_not_see_each_other():
    async def run(value: int) -> set[int]:
        seen = set()
        for _ in range(20):
            with Context(DEBUG=value):
                await asyncio.sleep(0)
                seen.add(settings.DEBUG)
        return seen

    async def run_all() -> list[set[int]]:
        return await asyncio.gather(*(run(value) for value in range(5)))

    assert asyncio.run(run_all()) == [{value} for value in range(5)]


@pytest.mark.parametrize(
    ("changes", "value"),
    [({"DEBUG": True}, 1), ({"BEAM": 0}, 0), ({"SPEC": 0}, False), ({"CHECK": "jit"}, "jit")],
)
def test_values_take_the_type_of_the_setting(changes, value):
    (name,) = changes
    with Context(**changes):
        assert getattr(settings, name) == value
        assert type(getattr(settings, name)) is type(value)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"DEBUG": -1}, ArgumentError),
        ({"DEBUG": "2"}, ArgumentTypeError),
        ({"DEBUG": 1.0}, ArgumentTypeError),
        ({"DEBUG": None}, ArgumentTypeError),
        ({"NOOPT": 2}, ArgumentError),
        ({"CHECK": "everything"}, ArgumentError),
        ({"CHECK": 1}, ArgumentTypeError),
        ({"DEFAULT_FLOAT": "int32"}, ArgumentError),
        ({"DBUG": 1}, UnknownName),
    ],
)
def test_bad_values_are_refused_before_anything_changes(changes, error):
    with pytest.raises(error):
        Context(**changes)


def test_unknown_setting_is_an_attribute_error():
    assert not hasattr(settings, "DBUG")
    with pytest.raises(UnknownAttribute):
        _ = settings.DBUG


def test_settings_cannot_be_assigned():
    with pytest.raises(UnknownAttribute, match=r"Context\(DEBUG=3\)"):
        settings.DEBUG = 3


def test_cache_key_has_exactly_the_flagged_settings():
    names = [row.name for row in table() if row.in_cache_key]
    assert (
        [name for name, _ in cache_key()]
        == names
        == ["NOOPT", "JOIN", "FUSE_PRODUCTS", "THREADS", "TARGET", "BEAM"]
    )
    with Context(NOOPT=True):
        noopt = cache_key()
    with Context(NOOPT=False):
        assert cache_key() != noopt
        with Context(DEBUG=4):
            assert cache_key() == (("NOOPT", False), *noopt[1:])
    hash(noopt)

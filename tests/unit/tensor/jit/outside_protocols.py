"""What Python asks of classes, modules and slots without a name in the source."""

import contextvars
import copy
import ctypes
import enum
import fractions
import functools
import operator
import re
import sys
import time
import types
import typing

import numpy as np

from tests.unit.tensor.jit.outside_table import Box, change, set_attribute, set_item, warned


def plain(**names):
    kind = type("Plain", (), names)
    return kind, kind()


@change
def getattr_that_a_module_is_given_anew():
    module = types.ModuleType("outside_lazy")
    module.__getattr__ = lambda name: 2.0
    return lambda x: x * module.rate, set_attribute(module, "__getattr__", lambda name: 3.0)


@change
def name_that_a_lazy_module_gets():
    module = types.ModuleType("outside_lazy")
    module.__getattr__ = lambda name: 2.0
    return lambda x: x * module.rate, set_attribute(module, "rate", 3.0)


@change
def object_in_an_array():
    box = Box()
    boxes = np.array([box], dtype=object)
    return lambda x: x * boxes[0].rate, set_attribute(box, "rate", 3.0)


def slotted():
    class Options:
        __slots__ = ("rate",)

    return Options, Options()


@change
def slot_by_its_descriptor():
    kind, options = slotted()
    options.rate = 2.0
    return lambda x: x * kind.rate.__get__(options), set_attribute(options, "rate", 3.0)


@change
def slot_that_is_filled_later():
    _, options = slotted()
    return lambda x: x * getattr(options, "rate", 2.0), set_attribute(options, "rate", 3.0)


@change
def slot_that_is_looked_for():
    _, options = slotted()
    return lambda x: x * (2.0 if hasattr(options, "rate") else 3.0), (
        set_attribute(options, "rate", 3.0)
    )


@change
def slot_that_is_caught():
    _, options = slotted()

    def function(x):
        try:
            return x * options.rate
        except AttributeError:
            return x * 2.0

    return function, set_attribute(options, "rate", 3.0)


@change
def operator_that_the_left_side_is_given():
    kind, left = plain()
    _, right = plain(__radd__=lambda self, other: 2.0)
    return lambda x: x * (left + right), set_attribute(kind, "__add__", lambda a, b: 3.0)


@change
def operator_in_place():
    kind, first = plain(__add__=lambda self, other: 2.0)

    def function(x):
        total = first
        total += 1
        return x * total

    return function, set_attribute(kind, "__iadd__", lambda self, other: 3.0)


@change
def operator_that_a_subclass_is_given():
    base = type("Base", (), {"__mul__": lambda self, other: 2.0})
    kind = type("Kind", (base,), {})
    thing = kind()
    return lambda x: x * (thing * 1), set_attribute(kind, "__mul__", lambda self, other: 3.0)


@change
def text_that_a_class_is_given():
    kind, thing = plain(__repr__=lambda self: "2.0")
    return lambda x: x * float(str(thing)), set_attribute(kind, "__str__", lambda self: "3.0")


@change
def text_in_a_format():
    kind, thing = plain(__repr__=lambda self: "2.0")
    return lambda x: x * float(f"{thing}"), set_attribute(kind, "__str__", lambda self: "3.0")


@change
def number_that_a_class_is_given():
    kind, thing = plain(__index__=lambda self: 2)
    return lambda x: x * float(thing), set_attribute(kind, "__float__", lambda self: 3.0)


@change
def order_that_a_class_is_given():
    kind = type("Item", (), {"__gt__": lambda self, other: self.key > other.key})
    items = [kind(), kind()]
    items[0].key, items[1].key = 1.0, 2.0
    change_class = set_attribute(kind, "__lt__", lambda self, other: self.key > other.key)
    return lambda x: x * min(items).key, change_class


@change
def call_that_a_class_is_given():
    kind, thing = plain()
    change_class = set_attribute(kind, "__call__", lambda self: None)
    return lambda x: x * (2.0 if callable(thing) else 3.0), change_class


@change
def class_of_an_object_by_isinstance():
    first, thing = plain()
    second, _ = plain()
    change_class = set_attribute(thing, "__class__", second)
    return lambda x: x * (2.0 if isinstance(thing, first) else 3.0), change_class


@change
def class_of_an_object_by_type():
    first, thing = plain()
    second, _ = plain()
    change_class = set_attribute(thing, "__class__", second)
    return lambda x: x * (2.0 if type(thing) is first else 3.0), change_class


@change
def bases_of_a_class():
    first, second = type("First", (), {"rate": 2.0}), type("Second", (), {"rate": 3.0})
    kind = type("Kind", (first,), {})
    thing = kind()
    return lambda x: x * thing.rate, set_attribute(kind, "__bases__", (second,))


@change
def classes_that_derive():
    base = type("Base", (), {})
    made = []
    return lambda x: x * (1 + len(base.__subclasses__())), (
        lambda: made.append(type("Derived", (base,), {}))
    )


@change
def order_of_the_classes():
    base = type("Base", (), {"rate": 2.0})
    kind = type("Kind", (base,), {})
    return lambda x: x * kind.mro()[1].rate, set_attribute(base, "rate", 3.0)


@change
def method_between_super_and_its_home():
    class Base:
        def rate(self):
            return 2.0

    class Middle(Base):
        pass

    class Kind(Middle):
        def rate(self):
            return super().rate()

    thing = Kind()
    return lambda x: x * thing.rate(), set_attribute(Middle, "rate", lambda self: 3.0)


@change
def method_of_a_class_with_a_metaclass():
    number = type("Number", (fractions.Fraction,), {})(2)
    change_class = set_attribute(type(number), "__float__", lambda self: 3.0)
    return lambda x: x * float(number), change_class


@change
def constructor_that_a_class_is_given():
    kind = type("Kind", (), {"rate": 2.0})

    def initialize(self):
        self.rate = 3.0

    return lambda x: x * kind().rate, set_attribute(kind, "__init__", initialize)


@change
def defaults_of_a_named_tuple():
    class Pair(typing.NamedTuple):
        first: float
        second: float = 2.0

    change_defaults = set_attribute(Pair.__new__, "__defaults__", (3.0,))
    return lambda x: x * Pair(1.0).second, change_defaults


@change
def positions_of_a_pattern():
    class Pair:
        __match_args__ = ("first", "second")
        first, second = 2.0, 3.0

    pair = Pair()

    def function(x):
        match pair:
            case Pair(value):
                return x * value

    return function, set_attribute(Pair, "__match_args__", ("second", "first"))


@change
def submodule_by_from():
    package, first, second = map(types.ModuleType, ["outside_package", "first", "second"])
    package.__path__, first.rate, second.rate = [], 2.0, 3.0
    sys.modules["outside_package"] = package
    sys.modules["outside_package.part"] = first

    def function(x):
        from outside_package import part

        return x * part.rate

    return function, set_item(sys.modules, "outside_package.part", second)


@change
def module_that_was_missing():
    sys.modules.pop("outside_missing", None)

    def function(x):
        try:
            import outside_missing  # noqa: F401
        except ImportError:
            return x * 2.0
        return x * 3.0

    return function, set_item(sys.modules, "outside_missing", types.ModuleType("found"))


@change
def keywords_of_a_format():
    rates = {"rate": [2.0]}
    return lambda x: x * float("{rate[0]}".format(**rates)), set_item(rates["rate"], 0, 3.0)


@change
def getter_of_c_of_a_class():
    kind, _ = plain(rate=2.0)
    getter = operator.attrgetter("rate")
    return lambda x: x * getter(kind), set_attribute(kind, "rate", 3.0)


@change
def getter_of_c_of_classes_in_a_map():
    kind, _ = plain(rate=2.0)
    getter = operator.attrgetter("rate")
    return lambda x: x * sum(map(getter, [kind])), set_attribute(kind, "rate", 3.0)


@change
def value_of_a_member():
    class Rates(enum.Enum):
        SMALL = 2.0

    return lambda x: x * Rates.SMALL.value, set_attribute(Rates.SMALL, "_value_", 3.0)


@change
def registered_method():
    class Scales:
        @functools.singledispatchmethod
        def of(self, value):
            return 2.0

    scales = Scales()
    dispatcher = Scales.__dict__["of"]
    return lambda x: x * scales.of("a"), lambda: dispatcher.register(str, lambda self, value: 3.0)


@change
def static_method_that_is_called_itself():
    box = Box()
    scale = staticmethod(lambda: box.rate)
    return lambda x: x * scale(), set_attribute(box, "rate", 3.0)


@change
def method_of_a_number_of_the_user():
    class Number(float):
        factor = 2.0

        def __mul__(self, other):
            return float.__mul__(self, other) * Number.factor

    number = Number(1.0)
    return lambda x: x * (number * 1.0), set_attribute(Number, "factor", 3.0)


@change
def copied_object():
    box = Box([2.0])
    return lambda x: x * copy.deepcopy(box).rate[0], set_item(box.rate, 0, 3.0)


@change
def pattern_that_the_library_keeps():
    words = ["a"]
    re.purge()
    return lambda x: x * len(re.split(words[0], "bab")), set_item(words, 0, "b")


@warned
def iterator_in_a_sum():
    numbers = iter([1.0, 2.0, 3.0])
    return lambda x: x * sum(numbers), lambda: None


@warned
def clock_that_is_handed_over():
    return lambda x: x * operator.call(time.perf_counter), lambda: None


@warned
def clock_in_an_iterator():
    return lambda x: x * next(iter(time.perf_counter, 0.0)), lambda: None


@warned
def counts_of_a_cache():
    cached = functools.lru_cache(float)
    return lambda x: x * cached.cache_info().currsize, lambda: None


@warned
def copy_of_the_context():
    variable = contextvars.ContextVar("outside_copy", default=2.0)
    return lambda x: x * contextvars.copy_context().run(variable.get), lambda: None


@warned
def item_behind_a_pointer():
    pointer = ctypes.pointer(ctypes.c_double(2.0))
    return lambda x: x * pointer[0], lambda: None


@warned
def memory_behind_an_address():
    data = np.ones(1)
    _, thing = plain(__array_interface__=data.__array_interface__)
    return lambda x: x * float(np.asarray(thing)[0]), lambda: None


@warned
def whether_the_collector_runs():
    import gc

    return lambda x: x * (2.0 if gc.isenabled() else 3.0), lambda: None


@warned
def thread_that_reads():
    import threading

    box, found = Box(), []

    def function(x):
        thread = threading.Thread(target=lambda: found.append(box.rate))
        thread.start()
        thread.join()
        return x * 2.0

    return function, lambda: None

"""What Python itself keeps for a function: its code, proxies, contexts, registries, subclasses."""

import abc
import builtins
import collections
import dataclasses
import decimal
import functools
import importlib
import logging
import operator
import sys
import types
import weakref

import numpy as np

from tests.unit.tensor.jit.outside_table import Box, change, set_attribute, set_item


@change
def code_of_a_function():
    def rate():
        return 2.0

    def other():
        return 3.0

    return lambda x: x * rate(), set_attribute(rate, "__code__", other.__code__)


@change
def keyword_defaults():
    def rate(*, by=2.0):
        return by

    return lambda x: x * rate(), set_item(rate.__kwdefaults__, "by", 3.0)


@change
def defaults_of_a_constructor():
    @dataclasses.dataclass
    class Options:
        rate: float = 2.0

    return lambda x: x * Options().rate, set_attribute(Options.__init__, "__defaults__", (3.0,))


@change
def state_of_a_partial_function():
    scaled = functools.partial(operator.mul, 2.0)
    return lambda x: x * scaled(1.0), lambda: scaled.__setstate__((scaled.func, (3.0,), {}, None))


@change
def weak_proxy():
    box = Box()
    proxy = weakref.proxy(box)
    return lambda x: x * proxy.rate, set_attribute(box, "rate", 3.0)


@change
def order_of_an_ordered_dict():
    rates = collections.OrderedDict(a=2.0, b=3.0)
    return lambda x: x * next(iter(rates.values())), lambda: rates.move_to_end("a")


@change
def field_of_a_format():
    box, pattern = Box(), "{0.rate}"
    return lambda x: x * float(pattern.format(box)), set_attribute(box, "rate", 3.0)


@change
def class_field_of_a_format():
    class Options:
        rate = 2.0

    options, pattern = Options(), "{0.rate}"
    return lambda x: x * float(pattern.format(options)), set_attribute(options, "rate", 3.0)


@change
def getter_of_c_in_a_map():
    boxes = [Box(1.0), Box(2.0)]
    getter = operator.attrgetter("rate")
    return lambda x: x * sum(map(getter, boxes)), set_attribute(boxes[0], "rate", 5.0)


@change
def getter_of_c_as_a_key():
    boxes = [Box(1.0), Box(2.0)]
    getter = operator.attrgetter("rate")

    def function(x):
        return x * boxes.index(min(boxes, key=getter))

    return function, set_attribute(boxes[1], "rate", 0.5)


@change
def getter_of_c_with_dots():
    outer = types.SimpleNamespace(inner=types.SimpleNamespace(rate=2.0))
    getter = operator.attrgetter("inner.rate")
    return lambda x: x * getter(outer), set_attribute(outer.inner, "rate", 3.0)


@change
def level_of_a_logger():
    logger = logging.getLogger("outside_python")
    logger.setLevel(30)
    return lambda x: x * logger.getEffectiveLevel(), lambda: logger.setLevel(10)


@change
def context_of_decimals():
    decimal.setcontext(decimal.Context(prec=28))
    third = lambda: float(decimal.Decimal(1) / decimal.Decimal(3))  # noqa: E731
    return lambda x: x * third(), set_attribute(decimal.getcontext(), "prec", 3)


@change
def class_that_is_registered():
    class Kind(abc.ABC):  # noqa: B024 -- classes are registered
        pass

    box = Box()
    return lambda x: x * (2.0 if isinstance(box, Kind) else 3.0), lambda: Kind.register(Box)


@change
def name_of_a_class():
    class Options:
        pass

    options = Options()
    change_name = set_attribute(Options, "__name__", "Longer")
    return lambda x: x * len(type(options).__name__), change_name


@change
def name_among_the_builtins():
    builtins.outside_rate = 2.0
    return lambda x: x * outside_rate, set_attribute(builtins, "outside_rate", 3.0)  # noqa: F821


@change
def module_by_a_computed_name():
    first, second = types.ModuleType("outside_swap"), types.ModuleType("outside_swap")
    first.rate, second.rate = 2.0, 3.0
    sys.modules["outside_swap"] = first

    def function(x):
        return x * importlib.import_module("outside_swap").rate

    return function, set_item(sys.modules, "outside_swap", second)


def with_attribute(kind, value):
    made = type("Made", (kind,), {})(value)
    made.rate = 2.0
    return lambda x: x * made.rate, set_attribute(made, "rate", 3.0)


@change
def attribute_of_an_int():
    return with_attribute(int, 2)


@change
def attribute_of_a_float():
    return with_attribute(float, 2)


@change
def attribute_of_a_string():
    return with_attribute(str, "a")


@change
def shape_of_an_array():
    array = np.zeros((2, 3))
    return lambda x: x * array.shape[0], lambda: array.resize((3, 2), refcheck=False)


@change
def mask_of_an_array():
    array = np.ma.array([2.0, 3.0], mask=[False, True])
    return lambda x: x * float(array.sum()), set_item(array.mask, 1, False)


@change
def method_of_a_metaclass():
    class Meta(type):
        rate = 2.0

        def __call__(cls):
            made = super().__call__()
            made.rate = Meta.rate
            return made

    kind = Meta("Kind", (), {})
    return lambda x: x * kind().rate, set_attribute(Meta, "rate", 3.0)


@change
def object_whose_attributes_are_items():
    class Items:
        def __init__(self):
            self.items = {"rate": 2.0}

        def __getattribute__(self, name):
            items = object.__getattribute__(self, "items")
            return items if name == "items" else items[name]

    thing = Items()
    return lambda x: x * thing.rate, set_item(thing.items, "rate", 3.0)


def plain_object():
    kind = type("Plain", (), {})
    return kind, kind()


@change
def truth_that_a_class_is_given():
    kind, thing = plain_object()
    return lambda x: x * (2.0 if thing else 3.0), set_attribute(kind, "__bool__", lambda s: False)


@change
def equality_that_a_class_is_given():
    kind, thing = plain_object()
    other = kind()
    change_class = set_attribute(kind, "__eq__", lambda self, other: True)
    return lambda x: x * (2.0 if thing == other else 3.0), change_class


@change
def equality_that_a_base_is_given():
    base = type("Base", (), {})
    thing, other = type("First", (base,), {})(), type("Second", (base,), {})()
    change_class = set_attribute(base, "__eq__", lambda self, other: True)
    return lambda x: x * (2.0 if thing == other else 3.0), change_class


@change
def membership_that_a_class_is_given():
    kind = type("Numbers", (), {"__iter__": lambda self: iter([2.0])})
    numbers = kind()
    change_class = set_attribute(kind, "__contains__", lambda self, number: True)
    return lambda x: x * (2.0 if 5 in numbers else 3.0), change_class


@change
def attribute_of_a_joined_name():
    box, parts = Box(), ["ra", "te"]
    return lambda x: x * getattr(box, "".join(parts)), set_attribute(box, "rate", 3.0)


@change
def method_of_a_dict_in_a_map():
    rates = {"a": 2.0}
    return lambda x: x * sum(map(rates.get, ["a"])), set_item(rates, "a", 3.0)


@change
def method_of_a_dict_as_a_key():
    rates = {"a": 1, "b": 2}
    function = lambda x: x * ord(sorted(["a", "b"], key=rates.get)[0])  # noqa: E731
    return function, set_item(rates, "a", 9)

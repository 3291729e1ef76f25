"""Ways to read state from outside of a jitted function, each with a change of that state.

`CHANGES` has functions that set up one way and return a function of a tensor and a change.
`WARNED` has those whose state nobody can compare: they must warn.
"""

import array
import collections
import contextvars
import copy
import dataclasses
import datetime
import enum
import functools
import io
import itertools
import json
import operator
import os
import string
import threading
import time
import types
import weakref

import numpy as np

from weft import Tensor, nn

CHANGES = {}
WARNED = {}
RATE = 2.0
TABLE = {"rate": 2.0, "deep": {"rate": [1.0, 2.0]}}


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


# Names.


@change
def global_number():
    global RATE
    RATE = 2.0
    return lambda x: x * RATE, lambda: globals().update(RATE=3.0)


@change
def global_negative_zero():
    global RATE
    RATE = 0.0
    return lambda x: x / RATE, lambda: globals().update(RATE=-0.0)


@change
def global_kind_of_number():
    global RATE
    RATE = 1
    return lambda x: (x * 0 + RATE) / 2, lambda: globals().update(RATE=1.5)


@change
def global_made_later():
    globals().pop("LATER", None)

    def function(x):
        return x * globals().get("LATER", 2.0)

    return function, lambda: globals().update(LATER=3.0)


@change
def name_that_hides_a_builtin():
    globals().pop("abs", None)
    change = lambda: globals().update(abs=lambda y: 3.0)  # noqa: E731
    return lambda x: x * abs(-2.0), change


@change
def closure_number():
    rate = 2.0

    def function(x):
        return x * rate

    def change():
        nonlocal rate
        rate = 3.0

    return function, change


@change
def closure_of_a_called_function():
    rate = 2.0

    def inner():
        return rate

    def change():
        nonlocal rate
        rate = 3.0

    return lambda x: x * inner(), change


@change
def closure_of_an_inner_function():
    rate = 2.0

    def function(x):
        return (lambda y: y * rate)(x)

    def change():
        nonlocal rate
        rate = 3.0

    return function, change


@change
def helper_that_is_replaced():
    globals()["helper"] = lambda: 2.0
    return lambda x: x * helper(), lambda: globals().update(helper=lambda: 3.0)  # noqa: F821


@change
def default_that_is_changed():
    def inner(x, table={"rate": 2.0}):  # noqa: B006
        return x * table["rate"]

    return lambda x: inner(x), set_item(inner.__defaults__[0], "rate", 3.0)


@change
def defaults_that_are_replaced():
    def inner(x, rate=2.0):
        return x * rate

    return lambda x: inner(x), set_attribute(inner, "__defaults__", (3.0,))


@change
def own_default():
    def function(x, table={"rate": 2.0}):  # noqa: B006
        return x * table["rate"]

    return function, set_item(function.__defaults__[0], "rate", 3.0)


# Attributes.


@change
def attribute():
    box = Box()
    return lambda x: x * box.rate, set_attribute(box, "rate", 3.0)


@change
def attribute_of_an_attribute():
    box = Box(Box())
    return lambda x: x * box.rate.rate, set_attribute(box.rate, "rate", 3.0)


@change
def object_that_is_replaced():
    box = Box(Box())
    return lambda x: x * box.rate.rate, set_attribute(box, "rate", Box(3.0))


@change
def method():
    box = Box()
    return lambda x: x * box.scale(), set_attribute(box, "rate", 3.0)


@change
def method_of_the_class():
    class Own(Box):
        def scale(self):
            return 2.0

    box = Own()
    return lambda x: x * box.scale(), set_attribute(Own, "scale", lambda self: 3.0)


@change
def method_of_a_base_class():
    class Base:
        def scale(self):
            return 2.0

    class Own(Base):
        def scale(self):
            return super().scale()

    box = Own()
    return lambda x: x * box.scale(), set_attribute(Base, "scale", lambda self: 3.0)


@change
def method_that_a_subclass_gets():
    class Base:
        def scale(self):
            return 2.0

    class Own(Base):
        pass

    box = Own()
    return lambda x: x * box.scale(), set_attribute(Own, "scale", lambda self: 3.0)


@change
def method_of_the_object():
    box = Box()
    return lambda x: x * box.scale(), set_attribute(box, "scale", lambda: 3.0)


@change
def class_that_is_changed():
    class Other(Box):
        def scale(self):
            return 3.0

    box = Box()
    return lambda x: x * box.scale(), set_attribute(box, "__class__", Other)


@change
def class_method():
    class Own:
        rate = 2.0

        @classmethod
        def scale(cls):
            return cls.rate

    return lambda x: x * Own.scale(), set_attribute(Own, "rate", 3.0)


@change
def class_method_that_is_replaced():
    class Own:
        @classmethod
        def scale(cls):
            return 2.0

    change = set_attribute(Own, "scale", classmethod(lambda cls: 3.0))
    return lambda x: x * Own.scale(), change


@change
def static_method_that_is_replaced():
    class Own:
        @staticmethod
        def scale():
            return 2.0

    return lambda x: x * Own.scale(), set_attribute(Own, "scale", staticmethod(lambda: 3.0))


@change
def attribute_of_the_class():
    class Own:
        rate = 2.0

    own = Own()
    return lambda x: x * own.rate, set_attribute(Own, "rate", 3.0)


@change
def attribute_of_the_metaclass():
    class Meta(type):
        rate = 2.0

    class Own(metaclass=Meta):
        pass

    return lambda x: x * Own.rate, set_attribute(Meta, "rate", 3.0)


@change
def property_of_an_object():
    class Own(Box):
        @property
        def twice(self):
            return self.rate

    box = Own()
    return lambda x: x * box.twice, set_attribute(box, "rate", 3.0)


@change
def property_that_is_replaced():
    class Own:
        @property
        def twice(self):
            return 2.0

    own = Own()
    return lambda x: x * own.twice, set_attribute(Own, "twice", property(lambda self: 3.0))


@change
def cached_property():
    class Own:
        @functools.cached_property
        def twice(self):
            return 2.0

    own = Own()
    return lambda x: x * own.twice, set_attribute(own, "twice", 3.0)


@change
def descriptor():
    class Field:
        rate = 2.0

        def __get__(self, thing, kind):
            return self.rate

    class Own:
        field = Field()

    own = Own()
    return lambda x: x * own.field, set_attribute(Own.__dict__["field"], "rate", 3.0)


@change
def slots():
    class Own:
        __slots__ = ("rate",)

    own = Own()
    own.rate = 2.0
    return lambda x: x * own.rate, set_attribute(own, "rate", 3.0)


@change
def own_getattr():
    class Own:
        def __init__(self):
            self.table = {"rate": 2.0}

        def __getattr__(self, name):
            return self.table[name]

    own = Own()
    return lambda x: x * own.rate, set_item(own.table, "rate", 3.0)


@change
def own_getattribute():
    class Own(Box):
        def __getattribute__(self, name):
            return object.__getattribute__(self, name)

    own = Own()
    return lambda x: x * own.rate, set_attribute(own, "rate", 3.0)


@change
def computed_getattr():
    box = Box()
    return lambda x: x * getattr(box, "ra" + "te"), set_attribute(box, "rate", 3.0)


@change
def getattr_in_a_loop():
    box = Box()
    names = ["rate"]

    def function(x):
        for name in names:
            x = x * getattr(box, name)
        return x

    return function, set_attribute(box, "rate", 3.0)


@change
def getattr_with_a_formatted_name():
    box = Box()
    box.rate_1 = 2.0
    return lambda x: x * getattr(box, f"rate_{len('a')}"), set_attribute(box, "rate_1", 3.0)


@change
def getattr_default():
    box = Box()
    return lambda x: x * getattr(box, "other", 2.0), set_attribute(box, "other", 3.0)


@change
def hasattr_of_an_object():
    box = Box()
    return lambda x: x * 3 if hasattr(box, "other") else x, set_attribute(box, "other", 1)


@change
def vars_of_an_object():
    box = Box()
    return lambda x: x * vars(box)["rate"], set_attribute(box, "rate", 3.0)


@change
def dict_of_an_object():
    box = Box()
    return lambda x: x * box.__dict__["rate"], set_attribute(box, "rate", 3.0)


@change
def all_vars():
    box = Box()
    return lambda x: x * sum(vars(box).values()), set_attribute(box, "other", 3.0)


@change
def attrgetter():
    box = Box(Box())
    get = operator.attrgetter("rate.rate")
    return lambda x: x * get(box), set_attribute(box.rate, "rate", 3.0)


@change
def attribute_of_a_function():
    def helper():
        return helper.rate

    helper.rate = 2.0
    return lambda x: x * helper(), set_attribute(helper, "rate", 3.0)


@change
def simple_namespace():
    names = types.SimpleNamespace(rate=2.0)
    return lambda x: x * names.rate, set_attribute(names, "rate", 3.0)


@change
def enumeration():
    class Kind(enum.Enum):
        ONE = 2.0

    box = Box(Kind.ONE)
    return lambda x: x * (2.0 if box.rate is Kind.ONE else 3.0), set_attribute(box, "rate", None)


@change
def data_class():
    @dataclasses.dataclass
    class Options:
        rate: float = 2.0

    options = Options()
    return lambda x: x * options.rate, set_attribute(options, "rate", 3.0)


@change
def data_class_as_dict():
    @dataclasses.dataclass
    class Options:
        rate: float = 2.0

    options = Options()
    return lambda x: x * dataclasses.asdict(options)["rate"], set_attribute(options, "rate", 3.0)


@change
def object_from_a_list_by_max():
    boxes = [Box(1.0), Box(2.0)]
    return lambda x: x * max(boxes, key=rate_of).rate, set_attribute(boxes[1], "rate", 3.0)


@change
def object_from_next():
    boxes = [Box(2.0)]
    return lambda x: x * next(iter(boxes)).rate, set_attribute(boxes[0], "rate", 3.0)


@change
def object_from_a_tuple():
    box, other = Box(), Box(1.0)
    return lambda x: x * (box, other)[0].rate, set_attribute(box, "rate", 3.0)


@change
def object_from_a_condition():
    box = Box()
    return lambda x: x * (box if box else None).rate, set_attribute(box, "rate", 3.0)


# Modules and packages.


@change
def attribute_of_a_module():
    module = types.ModuleType("options")
    module.rate = 2.0
    return lambda x: x * module.rate, set_attribute(module, "rate", 3.0)


@change
def dict_of_a_module():
    module = types.ModuleType("options")
    module.table = {"rate": 2.0}
    return lambda x: x * module.table["rate"], set_item(module.table, "rate", 3.0)


@change
def function_of_a_module():
    module = types.ModuleType("options")
    exec("rate = 2.0\ndef scale(): return rate", module.__dict__)
    return lambda x: x * module.scale(), set_attribute(module, "rate", 3.0)


@change
def function_of_a_module_that_is_replaced():
    module = types.ModuleType("options")
    exec("def scale(): return 2.0", module.__dict__)
    return lambda x: x * module.scale(), set_attribute(module, "scale", lambda: 3.0)


@change
def getattr_of_a_module():
    module = types.ModuleType("options")
    exec("table = {'rate': 2.0}\ndef __getattr__(name): return table[name]", module.__dict__)
    return lambda x: x * module.rate, set_item(module.table, "rate", 3.0)


@change
def import_inside():
    import sys

    module = sys.modules["weft_test_options"] = types.ModuleType("weft_test_options")
    module.rate = 2.0

    def function(x):
        import weft_test_options

        return x * weft_test_options.rate

    return function, set_attribute(module, "rate", 3.0)


@change
def import_from_inside():
    import sys

    module = sys.modules["weft_test_options"] = types.ModuleType("weft_test_options")
    module.rate = 2.0

    def function(x):
        from weft_test_options import rate

        return x * rate

    return function, set_attribute(module, "rate", 3.0)


@change
def object_of_an_installed_package():
    table = string.Template("2")  # of the standard library
    return lambda x: x * float(table.template), set_attribute(table, "template", "3")


@change
def global_of_an_installed_package():
    original = string.digits

    def function(x):
        return x * len(string.digits)

    def change():
        string.digits = original + "0" if len(string.digits) == 10 else original

    return function, change


# Items.


@change
def item_of_a_dict():
    table = {"rate": 2.0}
    return lambda x: x * table["rate"], set_item(table, "rate", 3.0)


@change
def item_of_a_dict_by_get():
    table = {}
    return lambda x: x * table.get("rate", 2.0), set_item(table, "rate", 3.0)


@change
def item_by_setdefault():
    table = {}
    return lambda x: x * table.setdefault("rate", 2.0), set_item(table, "rate", 3.0)


@change
def item_of_a_dict_in_a_dict():
    table = {"deep": {"rate": [1.0, 2.0]}}
    return lambda x: x * table["deep"]["rate"][1], set_item(table["deep"]["rate"], 1, 3.0)


@change
def key_in_a_dict():
    table = {}
    return lambda x: x * (3.0 if "rate" in table else 2.0), set_item(table, "rate", 1)


@change
def items_of_a_dict():
    table = {"rate": 2.0}

    def function(x):
        for _, value in table.items():
            x = x * value
        return x

    return function, set_item(table, "other", 3.0)


@change
def lists_in_items():
    pairs = [["rate", 2.0]]

    def function(x):
        for _, value in pairs:
            x = x * value
        return x

    return function, set_item(pairs[0], 1, 3.0)


@change
def keywords_from_a_dict():
    table = {"rate": 2.0}

    def scale(rate):
        return rate

    return lambda x: x * scale(**table), set_item(table, "rate", 3.0)


@change
def arguments_from_a_list():
    values = [2.0]

    def scale(rate):
        return rate

    return lambda x: x * scale(*values), set_item(values, 0, 3.0)


@change
def merged_dicts():
    table = {"rate": 2.0}
    return lambda x: x * {"rate": 1.0, **table}["rate"], set_item(table, "rate", 3.0)


@change
def item_of_a_default_dict():
    table = collections.defaultdict(lambda: 2.0)
    return lambda x: x * table["rate"], set_item(table, "rate", 3.0)


@change
def item_of_an_ordered_dict():
    table = collections.OrderedDict(rate=2.0)
    return lambda x: x * table["rate"], set_item(table, "rate", 3.0)


@change
def item_of_a_counter():
    table = collections.Counter(a=2)
    return lambda x: x * table["a"], set_item(table, "a", 3)


@change
def item_of_a_chain_map():
    table = collections.ChainMap({}, {"rate": 2.0})
    return lambda x: x * table["rate"], set_item(table, "rate", 3.0)


@change
def item_of_a_mapping_proxy():
    table = {"rate": 2.0}
    proxy = types.MappingProxyType(table)
    return lambda x: x * proxy["rate"], set_item(table, "rate", 3.0)


@change
def dict_with_its_own_getitem():
    class Own(dict):
        def __getitem__(self, key):
            return super().__getitem__(key)

    table = Own(rate=2.0)
    return lambda x: x * table["rate"], set_item(table, "rate", 3.0)


@change
def item_of_a_list():
    values = [1.0, 2.0]
    return lambda x: x * values[-1], set_item(values, 1, 3.0)


@change
def item_of_a_long_list():
    values = [2.0] * 5000
    return lambda x: x * values[4000], set_item(values, 4000, 3.0)


@change
def sum_of_a_long_list():
    values = [2.0] * 5000
    return lambda x: x * sum(values), set_item(values, 4000, 3.0)


@change
def tensor_of_a_long_list():
    values = [2.0] * 5000
    return lambda x: x * Tensor(values).sum(), set_item(values, 4000, 3.0)


@change
def slice_of_a_list():
    values = [1.0, 2.0]
    return lambda x: x * sum(values[1:]), lambda: values.append(3.0)


@change
def length_of_a_list():
    values = [1.0, 2.0]
    return lambda x: x * len(values), lambda: values.append(3.0)


@change
def list_that_is_true():
    values = []
    return lambda x: x * 2 if values else x, lambda: values.append(3.0)


@change
def unpacked_list():
    values = [1.0, 2.0]

    def function(x):
        first, second = values
        return x * first + second

    return function, set_item(values, 1, 3.0)


@change
def comprehension():
    values = [1.0, 2.0]

    def function(x):
        return x * max([value + 1 for value in values])

    return function, set_item(values, 1, 3.0)


@change
def generator_expression():
    boxes = [Box(1.0), Box(2.0)]
    return lambda x: x * sum(box.rate for box in boxes), set_attribute(boxes[1], "rate", 3.0)


@change
def zipped_lists():
    boxes, values = [Box(1.0)], [2.0]

    def function(x):
        for box, value in zip(boxes, values, strict=True):
            x = x * box.rate * value
        return x

    return function, set_item(values, 0, 3.0)


@change
def enumerated_objects():
    boxes = [Box(1.0)]

    def function(x):
        for number, box in enumerate(boxes):
            x = x * box.rate + number
        return x

    return function, set_attribute(boxes[0], "rate", 3.0)


@change
def mapped_objects():
    boxes = [Box(1.0)]
    return lambda x: x * sum(map(rate_of, boxes)), set_attribute(boxes[0], "rate", 3.0)


@change
def itemgetter():
    table = {"rate": 2.0}
    get = operator.itemgetter("rate")
    return lambda x: x * get(table), set_item(table, "rate", 3.0)


@change
def deque():
    values = collections.deque([1.0, 2.0])
    return lambda x: x * values[1], set_item(values, 1, 3.0)


@change
def iterated_deque():
    values = collections.deque([1.0, 2.0])
    return lambda x: x * sum(values), lambda: values.append(3.0)


@change
def set_of_numbers():
    values = {1.0, 2.0}
    return lambda x: x * sum(values), lambda: values.add(3.0)


@change
def member_of_a_set():
    values = {1.0, 2.0}
    return lambda x: x * (3.0 in values), lambda: values.add(3.0)


@change
def array_of_python():
    values = array.array("d", [1.0, 2.0])
    return lambda x: x * values[1], set_item(values, 1, 3.0)


@change
def byte_array():
    values = bytearray(b"ab")
    return lambda x: x * values[1], set_item(values, 1, 3)


@change
def array_of_numpy():
    values = np.array([1.0, 2.0])
    return lambda x: x * float(values[1]), set_item(values, 1, 3.0)


@change
def long_array_of_numpy():
    values = np.ones(5000)
    return lambda x: x * float(values.sum()), set_item(values, 1, 3.0)


@change
def long_array_by_a_function_of_numpy():
    values = np.ones(5000)
    return lambda x: x * float(np.mean(values)), set_item(values, 1, 3.0)


@change
def formatted_list():
    values = [2.0]
    return lambda x: x * float(f"{values}"[1:-1]), set_item(values, 0, 3.0)


@change
def nested_list_as_json():
    table = {"rate": [2.0]}
    return lambda x: x * json.loads(json.dumps(table))["rate"][0], set_item(table["rate"], 0, 3.0)


@change
def copied_dict():
    table = {"rate": [2.0]}
    return lambda x: x * copy.deepcopy(table)["rate"][0], set_item(table["rate"], 0, 3.0)


@change
def matched_dict():
    table = {"rate": 2.0}

    def function(x):
        match table:
            case {"rate": rate}:
                return x * rate
        return x

    return function, set_item(table, "rate", 3.0)


# Objects that behave like others.


@change
def own_getitem():
    class Own:
        def __init__(self):
            self.values = [2.0]

        def __getitem__(self, key):
            return self.values[key]

    own = Own()
    return lambda x: x * own[0], set_item(own.values, 0, 3.0)


@change
def own_iter():
    class Own:
        def __init__(self):
            self.values = [2.0]

        def __iter__(self):
            return iter(self.values)

    own = Own()
    return lambda x: x * sum(own), set_item(own.values, 0, 3.0)


@change
def own_generator():
    class Own(Box):
        def __iter__(self):
            yield self.rate

    own = Own()
    return lambda x: x * list(own)[0], set_attribute(own, "rate", 3.0)


@change
def own_float():
    class Own(Box):
        def __float__(self):
            return self.rate

    own = Own()
    return lambda x: x * float(own), set_attribute(own, "rate", 3.0)


@change
def own_len():
    class Own(Box):
        def __len__(self):
            return self.rate

    own = Own(2)
    return lambda x: x * len(own), set_attribute(own, "rate", 3)


@change
def own_len_that_is_replaced():
    class Own:
        def __len__(self):
            return 2

    own = Own()
    return lambda x: x * len(own), set_attribute(Own, "__len__", lambda self: 3)


@change
def own_bool():
    class Own(Box):
        def __bool__(self):
            return self.rate > 2

    own = Own()
    return lambda x: x * 3 if own else x, set_attribute(own, "rate", 3)


@change
def own_index():
    class Own(Box):
        def __index__(self):
            return self.rate

    own = Own(0)
    return lambda x: x.reshape(1, 1).expand(2, 1)[own] + [1, 2][own], set_attribute(own, "rate", 1)


@change
def own_contains():
    class Own(Box):
        def __contains__(self, item):
            return self.rate == item

    own = Own()
    return lambda x: x * (3.0 in own), set_attribute(own, "rate", 3.0)


@change
def own_operator():
    class Own(Box):
        def __add__(self, other):
            return self.rate + other

    own = Own()
    return lambda x: x * (own + 1), set_attribute(own, "rate", 3.0)


@change
def own_call():
    class Own(Box):
        def __call__(self, x):
            return x * self.rate

    own = Own()
    return lambda x: own(x), set_attribute(own, "rate", 3.0)


@change
def own_context():
    class Own(Box):
        def __enter__(self):
            return self.rate

        def __exit__(self, *_):
            pass

    own = Own()

    def function(x):
        with own as rate:
            return x * rate

    return function, set_attribute(own, "rate", 3.0)


# Things around functions.


@change
def partial_with_keywords():
    scale = functools.partial(lambda x, rate: x * rate, rate=2.0)
    return lambda x: scale(x), set_item(scale.keywords, "rate", 3.0)


@change
def decorated():
    table = {"rate": 2.0}

    def scaled(function):
        @functools.wraps(function)
        def inner(x):
            return function(x) * table["rate"]

        return inner

    return scaled(lambda x: x + 1), set_item(table, "rate", 3.0)


@change
def callback_in_a_list():
    box = Box()
    calls = [box.scale]
    return lambda x: x * calls[0](), set_attribute(box, "rate", 3.0)


@change
def bound_method_of_a_dict():
    table = {"rate": 2.0}
    get = table.get
    return lambda x: x * get("rate"), set_item(table, "rate", 3.0)


@change
def cached_function():
    table = {"rate": 2.0}

    @functools.lru_cache
    def scale():
        return table["rate"]

    scale()

    def change():
        table["rate"] = 3.0
        scale.cache_clear()

    return lambda x: x * scale(), change


@change
def cached_object():
    @functools.cache
    def options():
        return Box()

    return lambda x: x * options().rate, set_attribute(options(), "rate", 3.0)


@change
def singledispatch():
    @functools.singledispatch
    def scale(value):
        return 2.0

    return lambda x: x * scale(1), lambda: scale.register(int, lambda value: 3.0)


@change
def context_variable():
    variable = contextvars.ContextVar("rate", default=2.0)
    return lambda x: x * variable.get(), lambda: variable.set(3.0)


@change
def context_variable_that_was_not_set():
    variable = contextvars.ContextVar("rate")
    return lambda x: x * variable.get(2.0), lambda: variable.set(3.0)


@change
def thread_local():
    local = threading.local()
    local.rate = 2.0
    return lambda x: x * local.rate, set_attribute(local, "rate", 3.0)


@change
def weak_reference():
    boxes = [Box()]
    reference = weakref.ref(boxes[0])
    return lambda x: x * (2.0 if reference() is not None else 3.0), boxes.clear


@change
def weak_dict():
    box = Box()
    table = weakref.WeakKeyDictionary({box: 2.0})
    return lambda x: x * table[box], set_item(table, box, 3.0)


@change
def environment():
    os.environ["WEFT_TEST_RATE"] = "2"
    return lambda x: x * float(os.environ["WEFT_TEST_RATE"]), set_item(
        os.environ, "WEFT_TEST_RATE", "3"
    )


@change
def environment_by_getenv():
    os.environ.pop("WEFT_TEST_RATE", None)
    return lambda x: x * float(os.getenv("WEFT_TEST_RATE", "2")), set_item(
        os.environ, "WEFT_TEST_RATE", "3"
    )


# Tensors and layers.


@change
def tensor_that_is_replaced():
    box = Box(Tensor([2.0]).realize())
    kept = box.rate
    return lambda x: x * box.rate, lambda: (kept, setattr(box, "rate", Tensor([3.0]).realize()))


@change
def tensor_that_is_written():
    tensor = Tensor([2.0]).realize()
    return lambda x: x * tensor, lambda: tensor.assign(Tensor([3.0]))


@change
def weight_of_a_layer():
    layer = nn.Linear(1, 1)
    return lambda x: layer(x.reshape(1, 1)), set_attribute(layer, "weight", Tensor([[7.0]]))


@change
def layer_in_a_list():
    layers = [nn.Linear(1, 1), nn.Linear(1, 1)]

    def function(x):
        x = x.reshape(1, 1)
        for layer in layers:
            x = layer(x)
        return x

    return function, set_attribute(layers[1], "bias", Tensor([7.0]))


@change
def layers_in_a_sequence():
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1)) if hasattr(nn, "Sequential") else Box()
    layers = [nn.Linear(1, 1)]
    model.layers = layers
    return lambda x: model.layers[0](x.reshape(1, 1)), set_attribute(
        layers[0], "bias", Tensor([7.0])
    )


@change
def tensors_from_a_list():
    tensors = [Tensor([2.0]).realize()]
    return lambda x: Tensor.cat(x, *tensors), lambda: tensors.append(Tensor([3.0]))


@change
def list_for_a_method_of_tensors():
    shape = [1, 1]
    return lambda x: x.reshape(shape), lambda: shape.append(1)


# What nobody can compare.


@warned
def clock():
    return lambda x: x * time.perf_counter(), lambda: None


@warned
def time_of_day():
    return lambda x: x * datetime.datetime.now().timestamp(), lambda: None


@warned
def counter_of_itertools():
    numbers = itertools.count()
    return lambda x: x * next(numbers), lambda: None


@warned
def generator_that_goes_on():
    numbers = (n for n in range(10))
    return lambda x: x * next(numbers), lambda: None


@warned
def iterator_in_a_loop():
    numbers = iter([1.0, 2.0, 3.0, 4.0])

    def function(x):
        for number in numbers:
            return x * number
        return x

    return function, lambda: None


@warned
def file():
    handle = io.StringIO("a text")
    return lambda x: x * len(handle.read()), lambda: None


@warned
def file_that_is_opened():
    def function(x):
        with open(os.devnull) as handle:
            return x * len(handle.read())

    return function, lambda: None


@warned
def folder():
    return lambda x: x * len(os.getcwd()), lambda: None


@warned
def own_counter():
    box = Box(1)

    def function(x):
        box.rate += 1
        return x * box.rate

    return function, lambda: None


@warned
def list_that_grows():
    values = []

    def function(x):
        values.append(1)
        return x * len(values)

    return function, lambda: None


@warned
def deque_that_is_emptied():
    values = collections.deque([1.0, 2.0, 3.0])
    return lambda x: x * values.popleft(), lambda: None


@warned
def generator_without_a_seed():
    return lambda x: x * np.random.default_rng().random(), lambda: None

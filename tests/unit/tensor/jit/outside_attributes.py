"""Attributes of objects and classes, however they are found."""

import dataclasses
import enum
import functools
import operator
import types

from tests.unit.tensor.jit.outside_table import Box, change, rate_of, set_attribute, set_item


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

"""Modules, packages, and things around functions: caches, contexts, the environment."""

import contextvars
import functools
import importlib
import os
import string
import sys
import tempfile
import threading
import types
import weakref

from tests.unit.tensor.jit.outside_table import Box, change, set_attribute, set_item


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
    module = sys.modules["weft_test_options"] = types.ModuleType("weft_test_options")
    module.rate = 2.0

    def function(x):
        import weft_test_options

        return x * weft_test_options.rate

    return function, set_attribute(module, "rate", 3.0)


@change
def import_from_inside():
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


@change
def function_inside_of_an_installed_package():
    path = os.path.join(tempfile.mkdtemp(), "site-packages")
    os.makedirs(path)
    with open(os.path.join(path, "weft_test_package.py"), "w") as file:
        file.write("rate = 2.0\ndef helper(): return rate\ndef scale(): return helper()\n")
    sys.path.insert(0, path)
    sys.modules.pop("weft_test_package", None)
    package = importlib.import_module("weft_test_package")
    sys.path.remove(path)
    return lambda x: x * package.scale(), set_attribute(package, "helper", lambda: 3.0)

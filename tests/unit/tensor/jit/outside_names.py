"""Names: globals, closures, defaults."""

from tests.unit.tensor.jit.outside_table import change, set_attribute, set_item

RATE = 2.0


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

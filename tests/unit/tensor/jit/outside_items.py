"""Items of containers, one or all of them."""

import array
import collections
import copy
import json
import operator
import types

import numpy as np

from tests.unit.tensor.jit.outside_table import Box, change, rate_of, set_attribute, set_item
from weft import Tensor


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


@change
def view_of_a_dict():
    table = {"rate": 2.0}
    view = table.values()
    return lambda x: x * sum(view), set_item(table, "other", 3.0)


@change
def item_that_is_missing():
    table = {}

    def function(x):
        try:
            return x * table["rate"]
        except KeyError:
            return x

    return function, set_item(table, "rate", 3.0)


@change
def index_that_is_missing():
    values = []

    def function(x):
        try:
            return x * values[0]
        except IndexError:
            return x

    return function, lambda: values.append(3.0)

"""Objects that behave like others by methods of their own; tensors and layers."""

import ctypes
import operator

from tests.unit.tensor.jit.outside_table import Box, change, set_attribute, set_item
from weft import Tensor, nn, vmap
from weft import function as weft_function


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
    return lambda x: x * max(list(own)), set_attribute(own, "rate", 3.0)


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


@change
def matched_object():
    box = Box()

    def function(x):
        match box:
            case Box(rate=rate):
                return x * rate
        return x

    return function, set_attribute(box, "rate", 3.0)


@change
def formatted_attribute():
    box = Box()
    return lambda x: x * float(f"{box.rate}"), set_attribute(box, "rate", 3.0)


@change
def method_caller():
    box = Box()
    scale = operator.methodcaller("scale")
    return lambda x: x * scale(box), set_attribute(box, "rate", 3.0)


@change
def structure_of_c():
    class Pair(ctypes.Structure):
        _fields_ = (("rate", ctypes.c_double),)

    pair = Pair(2.0)
    return lambda x: x * pair.rate, set_attribute(pair, "rate", 3.0)


@change
def array_of_c():
    values = (ctypes.c_double * 2)(1.0, 2.0)
    return lambda x: x * values[1], set_item(values, 1, 3.0)


@change
def evaluated_text():
    box = Box()
    return lambda x: x * eval("box.rate", {"box": box}), set_attribute(box, "rate", 3.0)


@change
def function_in_vmap():
    box = Box()
    return lambda x: vmap(lambda y: y * box.rate)(x), set_attribute(box, "rate", 3.0)


@change
def function_in_a_call():
    box = Box()
    inner = weft_function(lambda y: y * box.rate)
    return lambda x: inner(x), set_attribute(box, "rate", 3.0)

"""Functions made into bodies: what they read from outside becomes an argument."""

from weft import Tensor, function, jit
from weft.ir.ops import Op
from weft.ir.walk import bodies, topological


def test_a_copy_from_another_device_is_made_before_the_call():
    far = Tensor([1.0, 2.0], device="CPU:1").realize()
    near = Tensor([5.0, 5.0])

    @function
    def add(x):
        return x + (far * 2).to("CPU")

    made = add(near)
    assert not any(node.op == Op.COPY for node in topological(*bodies(made.uop)))
    assert made.tolist() == [7.0, 9.0]
    assert jit(add)(near).tolist() == [7.0, 9.0]
    assert add(near).sum().gradient(far)[0].tolist() == [2.0, 2.0]


def test_an_argument_may_travel_inside():
    there_and_back = function(lambda x: (x.to("CPU:1") * 2).to("CPU"))
    assert there_and_back(Tensor([1.0, 2.0])).tolist() == [2.0, 4.0]

"""Storages: what becomes memory, and which graphs read it from then on."""

import pytest

from weft.ir.ops import Op
from weft.ir.walk import topological
from weft.tensor import Tensor
from weft.tensor.trace.function import function

KINDS = {
    "number": lambda device: Tensor(2, device=device),
    "full": lambda device: Tensor.full((3,), 2, device=device),
    "range": lambda device: Tensor.arange(3, device=device),
}


@pytest.mark.parametrize("kind", KINDS)
def test_memory_of_a_value_without_a_device_stays_on_its_own(kind):
    make = KINDS[kind]
    elsewhere = Tensor([5, 6, 7], device="CPU:1").realize() + make("CPU:1")
    there_and_back = (make("CPU").to("CPU:1") * 2).to("CPU")
    wanted = [(5, 6, 7), (2, 2, 2) if kind != "range" else (0, 1, 2)]
    make("CPU").realize()
    assert elsewhere.tolist() == [x + y for x, y in zip(*wanted, strict=True)]
    assert there_and_back.tolist() == (Tensor(make("CPU").tolist()) * 2).tolist()


def test_a_number_stays_a_number():
    x = Tensor([1, 2, 3]).realize()
    doubled = x * 2
    Tensor(2).realize()
    memory = [node for node in topological(doubled.uop) if node.op == Op.BUFFER]
    assert len(memory) == 1


def test_equal_values_on_one_device_are_computed_once():
    ones = Tensor.ones(4, 4)
    later = ones.sum() + 1
    ones.sum().realize()
    assert any(node.op == Op.BUFFER for node in topological(later.uop))
    assert later.item() == 17


def test_a_version_that_a_copy_needed_survives_the_next_write():
    w = Tensor([1.0, 2.0]).realize()
    w.assign(w + 1)
    kept = function(lambda x: x * 10)(w)  # a call is not computed in passing
    there_and_back = (w.to("CPU:1") * 2).to("CPU")
    w.assign(w + 1)
    assert there_and_back.tolist() == [4.0, 6.0]
    assert kept.tolist() == [20.0, 30.0]
    assert w.tolist() == [3.0, 4.0]

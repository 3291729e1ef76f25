"""Building a graph is cheap, remembers the user's line, and computes nothing."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from weft.ir.ops import Op
from weft.ir.spec.tensor import TENSOR_SPEC
from weft.tensor import Tensor
from weft.tensor import realize as realize_module


def python_calls(function: Any) -> list[str]:
    """The Python functions that a call runs, itself included."""
    names: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            names.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return names[1:]


def test_an_addition_takes_few_calls():
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    assert a.shape == b.shape
    _ = a * b  # which files are the user's is found out once
    kept = []
    names = python_calls(lambda: kept.append(a + b))
    assert len(names) < 15, names


def test_a_node_remembers_the_users_line():
    a = Tensor([1.0, 2.0])
    total = (a + 1).sum()
    assert total.uop.line is not None
    assert total.uop.line.text == "total = (a + 1).sum()"
    assert total.uop.line.file.endswith("test_building.py")
    view = a[1:]
    assert view.uop.line.text == "view = a[1:]"


def everything(x: Tensor) -> list[Tensor]:
    y = Tensor.arange(4)
    x = x.reshape(2, 2)
    results = [
        x.softmax(),
        x @ x,
        x.var(),
        x[[1, 0]],
        x.gather(0, y[:2].reshape(1, 2)),
        x.T.tril(),
    ]
    results += [x.dropout(), x.cross_entropy(y[:2]), x.argmax(), x.cat(x), x.layernorm()]
    results += [
        x.unsqueeze(0).unsqueeze(0).conv2d(x.reshape(1, 1, 2, 2)),
        x.max_pool2d(1),
        x.gelu(),
    ]
    x[0] = 5
    x[y[:1]] = 7
    x += 1
    results += [
        x,
        x.atan(),
        x.sinh(),
        x.pad((1, 1), mode="reflect"),
        Tensor.randn(2),
        x.roll(1, 0),
    ]
    return results


def test_nothing_is_realized_by_building(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: Any) -> None:
        raise AssertionError("something was realized")

    Tensor.rand(1).realize()
    monkeypatch.setattr(realize_module, "realize_graphs", refuse)
    for each in everything(Tensor([1.0, 2.0, 3.0, 4.0]) + 0):
        assert "lazy" in repr(each)


def test_graphs_keep_the_invariants():
    from weft.ir.spec.spec import verify

    for each in everything(Tensor([1.0, 2.0, 3.0, 4.0])):
        verify(each.uop, TENSOR_SPEC)


def test_nothing_is_simplified():
    x = Tensor([1.0])
    assert (x * 1).uop.op == Op.MUL
    assert (x + 0).uop.op == Op.ADD


def test_values_are_computed_once(monkeypatch: pytest.MonkeyPatch):
    x = Tensor(np.arange(4)) * 3
    y = x + 1
    x.realize()
    assert not any(node.op == Op.MUL for node in _below(y))
    assert y.tolist() == [1, 4, 7, 10]


def _below(tensor: Tensor) -> list[Any]:
    from weft.ir.walk import topological

    return topological(tensor.uop)


def test_memory_is_freed_with_the_last_tensor():
    from weft.engine.counters import GlobalCounters

    before = GlobalCounters.mem_used
    x = Tensor(np.zeros(1000))
    y = (x + 1).realize()
    assert GlobalCounters.mem_used == before + 16000
    del x, y
    assert GlobalCounters.mem_used == before


def test_tensors_are_hashable_and_compare_elementwise():
    x = Tensor([1, 2])
    assert {x: 1}[x] == 1
    assert (x == Tensor([1, 3])).tolist() == [True, False]


def test_import_of_the_package_brings_no_tensor():
    program = "import sys, weft; print('numpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout.strip() == "False"

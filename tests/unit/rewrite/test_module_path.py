"""A line knows the part of the model that it runs in, while a trace is written."""

import json

from weft import Tensor, nn
from weft.ir.walk import topological
from weft.rewrite.module_path import is_module, module_path, name_in, part
from weft.rewrite.trace_file import recording
from weft.support.source_line import MODULES, LineInModule


class Block:
    def __init__(self):
        self.inner = nn.Linear(5, 5)

    def __call__(self, x):
        return self.inner(x).relu()


class Model:
    def __init__(self):
        self.blocks = [Block(), Block()]

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return x + 1


def test_lines_name_plain_classes_lists_and_layers(tmp_path):
    path = tmp_path / "t.jsonl"
    model = Model()
    with recording(path):
        model(Tensor.ones(3, 5).contiguous().realize()).realize()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    modules = {r.get("module", "") for r in records if r["kind"] == "line"}
    assert {"Model", "Model.blocks.0.inner", "Model.blocks.1", "Model.blocks.1.inner"} <= modules


def test_nobody_looks_for_modules_without_a_trace(tmp_path):
    assert MODULES == []
    with recording(tmp_path / "t.jsonl"):
        assert len(MODULES) == 1
    assert MODULES == []
    line = Model()(Tensor.ones(2, 5)).uop.line
    assert not isinstance(line, LineInModule) and line.module == ""


def test_a_gradient_is_for_the_line_and_module_of_its_value(tmp_path):
    model = Model()
    x = Tensor.ones(3, 5).contiguous().realize()
    x.requires_grad = True
    with recording(tmp_path / "t.jsonl"):
        (gradient,) = (model(x) * 2).sum().gradient(x)
        assert gradient.uop.line.module == ""  # it is of the line that asks for it
        modules = {node.line.module for node in topological(gradient.uop) if node.line}
        assert {"Model.blocks.1.inner", "Model.blocks.0.inner"} <= modules


def test_names():
    block = Block()
    assert name_in(block, block.inner) == "inner"
    assert name_in(block, Model()) == ""


class Caller:
    """Calls others, as a trainer or a test runner does; it is not part of a model."""

    def __call__(self, function):
        return function()


def test_who_merely_calls_a_model_is_no_module(tmp_path):
    model, x = Model(), Tensor.ones(3, 5).contiguous().realize()
    with recording(tmp_path / "t.jsonl"):
        assert Caller()(lambda: model(x)).uop.line.module == "Model"
        assert Caller()(lambda: x * 3).uop.line.module == ""
    assert is_module(model) and is_module(model.blocks[0].inner) and not is_module(Caller())


def test_parts_that_a_program_names_stand_before_modules():
    with part("Model.layers.3"):
        with part("attention"):
            assert module_path(None) == "Model.layers.3.attention"
        assert module_path(None) == "Model.layers.3"
    assert module_path(None) == ""

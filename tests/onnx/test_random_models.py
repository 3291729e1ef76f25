"""Random models beside onnxruntime and the reference evaluator: a sample of `fuzz.onnx_graphs`."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from fuzz.onnx_graphs import OPSETS, fault_of, model_of


@pytest.mark.parametrize("block", range(4))
def test_random_models_give_the_same(block: int) -> None:
    faults = [fault_of(random.Random(f"sample-{block}-{n}"), "PYTHON") for n in range(25)]
    assert not any(faults), "\n".join(filter(None, faults))


def test_the_sample_has_all_opsets_and_many_operators() -> None:
    models = [model_of(random.Random(f"variety-{number}"))[0] for number in range(60)]
    opsets = {model.opset_import[0].version for model in models}
    operators = {node.op_type for model in models for node in model.graph.node}
    assert len(opsets) > len(OPSETS) * 0.8 and len(operators) > 70

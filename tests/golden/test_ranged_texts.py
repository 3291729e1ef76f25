"""The ranged graph of small programs, as text; parsed, checked and interpreted."""

import difflib

import numpy as np
import pytest

from tests.golden.ranged_programs import FOLDER, NAMES, graph_of, ranged_graph
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.spec.ranged import RANGED_SPEC
from weft.ir.spec.spec import verify
from weft.ir.text import dump, parse
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.reference.memory import ElementMemory
from weft.reference.ranged import run_ranged
from weft.reference.tensor import evaluate_stores


@pytest.mark.parametrize("name", NAMES)
def test_the_text_of_a_ranged_graph(name: str):
    want = (FOLDER / f"{name}.txt").read_text().splitlines()
    have = dump(ranged_graph(graph_of(name))).splitlines()
    changed = difflib.unified_diff(want, have, f"ranged/{name}.txt", "now", lineterm="")
    text = "\n".join(changed)
    assert not text, f"{text}\npython -m tests.golden.ranged_programs writes the files anew"


def test_every_file_belongs_to_a_program():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_text_is_the_graph(name: str):
    root = ranged_graph(graph_of(name))
    assert parse((FOLDER / f"{name}.txt").read_text()) is root
    verify(root, RANGED_SPEC)


def parameters(root: UOp) -> dict[int, UOp]:
    return {node.arg[0]: node for node in topological(root) if node.op == Op.PARAM}


@pytest.mark.parametrize("name", NAMES)
def test_a_ranged_graph_means_what_its_program_means(name: str):
    graph = graph_of(name)
    root = ranged_graph(graph)
    generator = np.random.default_rng(1)
    given = parameters(graph)
    arrays = []
    for slot in range(1 + max(given)):  # one that nobody reads may be anything
        shape = shape_of(given[slot]) if slot in given else (1,)
        if slot in given and given[slot].dtype is dtypes.int32:
            arrays.append(generator.integers(0, 3, shape).astype(np.int32))
        else:
            arrays.append(generator.standard_normal(shape).astype(np.float32))
    memories = [
        ElementMemory(
            dtypes.int32 if array.dtype == np.int32 else dtypes.float32, array.size, array.flat
        )
        for array in arrays
    ]
    wanted = evaluate_stores(graph, arrays)
    run_ranged(root, memories)
    for slot, (memory, array) in enumerate(zip(memories, wanted, strict=True)):
        close = np.allclose(memory.values, array.reshape(-1), rtol=1e-4, atol=1e-5)
        assert close, f"slot {slot}"

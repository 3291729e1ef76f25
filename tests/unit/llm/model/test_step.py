"""The jitted step: what it says that it reads is all that it reads, so that it may be closed."""

from dataclasses import fields

import pytest

from tests.unit.llm.tiny_model import write_tiny
from weft import Context, dtypes
from weft.engine import compile as compiling
from weft.engine import work
from weft.llm import Batch, load
from weft.llm.model.config import Config, Experts, Rope
from weft.llm.model.step import Step
from weft.llm.weights.layer import LayerWeights, Weight
from weft.support.cache import forget_memory
from weft.tensor.jit.closed import name_of
from weft.tensor.jit.jit import Jit
from weft.tensor.jit.signature import read_arguments
from weft.tensor.jit.watch.guards import unwrapped

# What a step may read of an object, by its class: what `closed` speaks of.
DECLARED = {
    Step: {"config", "windows", "ropes", "weights", "memory"},
    LayerWeights: {"_prefix", "_weights"},
    Weight: {"graph", "_make"},
    **{kind: {field.name for field in fields(kind)} for kind in (Config, Rope, Experts)},
}


@pytest.fixture
def mixed_path(tmp_path):
    return write_tiny(tmp_path / "tiny.gguf", window=8)


def logits(model, tokens=(1, 2, 3), dtype=dtypes.float32):
    cache = model.new_cache(64, dtype)
    return model.forward(Batch.of(cache, [(cache.allocate(), list(tokens))])).tolist()


@pytest.mark.parametrize("wanted", ["last", "every"])
@pytest.mark.parametrize("tokens", [(1,), (1, 2, 3)])
def test_a_step_reads_its_declared_facts_alone(mixed_path, monkeypatch, wanted, tokens):
    watched = Jit(Step.step.function)
    monkeypatch.setattr(Step, "step", watched)
    model = load(mixed_path)
    cache = model.new_cache(64)
    model.forward(Batch.of(cache, [(cache.allocate(), list(tokens))], wanted))
    (program,) = watched.programs
    read = [(unwrapped(each.owner), each) for each in program.state.guards]
    owners = {type(owner) for owner, _ in read}
    assert {Step, Config, Rope, LayerWeights, Weight} <= owners  # it was watched
    for owner, guard in read:
        if type(owner) in DECLARED and guard.kind == "attribute":
            assert guard.name in DECLARED[type(owner)], guard.name
    weights = model.weights._weights
    known = [weights, *map(vars, weights.values())]
    contents = [owner for owner, each in read if each.kind == "content" and type(owner) is dict]
    assert contents and all(any(each is one for one in known) for each in contents)
    others = {type(owner).__name__ for owner, each in read if each.kind in ("attribute", "cell")}
    code = {"type", "function", "module", "cached_property", "cell", "Tensor"}
    assert others <= {kind.__name__ for kind in DECLARED} | code


def test_a_step_cannot_be_changed(tiny_model):
    step = Step(tiny_model.config, tiny_model.weights, tiny_model.new_cache(32))
    with pytest.raises(AttributeError, match="never changes"):
        step.config = None


def names(path, context=0, room=64, dtype=dtypes.float32, tokens=3):
    model = load(path, context)
    step = Step(model.config, model.weights, cache := model.new_cache(room, dtype))
    found = []
    jitted = Jit(lambda *arguments: found.append(arguments))
    vars(step)["step"] = jitted.function
    step.run(Batch.of(cache, [(cache.allocate(), list(range(tokens)))]))
    arguments = read_arguments((step, *found[0]), {})
    return name_of(Step.step.function, step.closed(), arguments, ())


def test_what_changes_a_step_changes_its_name(mixed_path, tmp_path):
    with Context(SPEC=0):
        first = names(mixed_path)
        assert first is not None and first == names(mixed_path)
        others = [
            names(mixed_path, context=32),
            names(mixed_path, room=96),
            names(mixed_path, dtype=dtypes.float16),
            names(mixed_path, tokens=9),
            names(write_tiny(tmp_path / "b.gguf", window=16)),
            names(write_tiny(tmp_path / "c.gguf")),
        ]
        assert len({first, *others}) == 7


def another_process():
    """Forget what a new process would not know."""
    Step.step.reset()
    for table in (work._PREPARED, work._WORK, compiling._LOADED, compiling._KEYS):
        table.clear()
    forget_memory()


def test_another_process_answers_alike(mixed_path, tmp_path):
    with Context(SPEC=0, CACHE=1, CACHE_DIR=str(tmp_path / "cache")):
        another_process()
        wanted = logits(load(mixed_path))
        another_process()
        model = load(mixed_path)
        assert logits(model) == wanted
        made = [name for name, each in model.weights._weights.items() if "graph" in vars(each)]
        assert made == ["token_embd.weight"]  # for its shape: nothing was traced
        # The same shapes with other weights are the same step over other memory.
        assert logits(load(write_tiny(tmp_path / "d.gguf", window=8, seed=1))) != wanted

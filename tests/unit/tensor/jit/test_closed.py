"""Closed functions: what comes from disk is what a trace would make, and only then."""

import dataclasses
import json

import pytest

from weft import Context, Tensor, dtypes, jit, load_function, save_function
from weft.engine import compile as compiling
from weft.engine import work
from weft.ir.build import variable
from weft.support.cache import forget_memory
from weft.support.errors import InternalError, NotSupported
from weft.tensor.jit import closed as closed_module
from weft.tensor.jit.closed import Closed


@dataclasses.dataclass
class _Plain:
    """The facts that tests change."""

    scale: float = 2.0
    others: bool = False  # whether it reads memory that it does not declare
    calls: int = 0


class Model:
    """Adds what it is given to its memory, and scales it by its weight."""

    def __init__(self, facts=None, shape=(4,), dtype=dtypes.float32):
        self.facts = facts or _Plain()
        self.total = Tensor.zeros(*shape, dtype=dtype).contiguous().realize()
        self.weight = Tensor.full(shape, 3.0, dtype=dtype).contiguous().realize().uop
        self.other = Tensor.ones(*shape).contiguous().realize()

    def closed(self):
        return Closed(f"scale {self.facts.scale}", (self.weight,), (self.total,))

    @jit(closed=closed)
    def add(self, x, factor=1, count=None):
        self.facts.calls += 1
        self.total += x * factor
        if self.facts.others:
            self.total += self.other
        scaled = self.total * Tensor(self.weight) * self.facts.scale
        return scaled if count is None else scaled.sum() * Tensor.arange(count).sum()


@pytest.fixture(autouse=True)
def own_disk(tmp_path):
    with Context(CACHE_DIR=str(tmp_path), CACHE=1, SPEC=0):
        another_process()
        yield
    another_process()


def another_process():
    """Forget what a new process would not know."""
    Model.add.reset()
    for table in (work._PREPARED, work._WORK, compiling._LOADED, compiling._KEYS):
        table.clear()
    forget_memory()


def values(number=1.0):
    return Tensor.full((4,), number).contiguous().realize()


def run(model, *args):
    """Two calls, so that the writes of the first are seen."""
    return [model.add(*args).tolist() for _ in range(2)]


def test_another_process_does_not_call_the_function():
    first = Model()
    wanted = run(first, values())
    assert wanted == [[6.0] * 4, [12.0] * 4] and first.facts.calls == 1
    another_process()
    second = Model()
    assert run(second, values()) == wanted and second.facts.calls == 0
    assert second.total.tolist() == [2.0] * 4


def test_symbolic_sizes_are_given_anew():
    size = variable("size", 1, 8)
    assert Model().add(values(), 1, size.bind(3)).item() == 72.0
    another_process()
    model = Model()
    found = [model.add(values(0.0 if n else 1.0), 1, size.bind(3 + n)).item() for n in (0, 1)]
    assert found == [72.0, 144.0] and model.facts.calls == 0


@pytest.mark.parametrize(
    ("model", "args", "scope"),
    [
        (lambda: Model(_Plain(scale=5.0)), (), {}),
        (lambda: Model(shape=(2, 4)), (), {}),
        (lambda: Model(dtype=dtypes.float64), (), {}),
        (Model, (2,), {}),
        (Model, (1.0,), {}),
        (Model, (True,), {}),
        (Model, (1, variable("size", 1, 4).bind(2)), {}),
        (Model, (), {"THREADS": 1}),
        (Model, (), {"NOOPT": 1}),
        (Model, (), {"DEFAULT_INT": "int64"}),
        (Model, (), {"AUTOCAST": "bfloat16"}),
        (Model, (), {"FUSE_PRODUCTS": "never"}),
    ],
)
def test_what_differs_is_traced(model, args, scope):
    with Context(THREADS=2):
        Model().add(values(), 1)
        another_process()
        with Context(**scope):
            other = model()
            other.add(values(), *args)
    assert other.facts.calls == 1


def _name(model):
    from weft.support.settings import cache_key
    from weft.tensor.jit.signature import read_arguments

    arguments = read_arguments((model, values()), {})
    return closed_module.name_of(Model.add.function, model.closed(), arguments, cache_key())


def test_other_code_and_targets_are_other_names(monkeypatch):
    model = Model()
    name = _name(model)
    assert name is not None and name == _name(Model())
    with Context(TARGET="CPU:LLVM:x86_64,avx2"):
        assert name != _name(model)
    monkeypatch.setattr(closed_module, "code_version", lambda packages: "another")
    assert name != _name(model)


def test_memory_that_is_not_declared_is_refused():
    with pytest.raises(InternalError, match="does not declare"):
        Model(_Plain(others=True)).add(values())


def test_an_argument_that_is_the_written_memory_is_traced():
    Model().add(values())
    another_process()
    model = Model()
    assert model.add(model.total).tolist() == [0.0] * 4 and model.facts.calls >= 1


def test_results_know_that_gradients_are_wanted():
    Model().add(values())
    another_process()
    model, x = Model(), values()
    x.requires_grad = True
    with pytest.raises(NotSupported, match="whose graph is not kept"):
        model.add(x).sum().backward()
    assert model.facts.calls == 1


@pytest.mark.parametrize("kind", ["schedules", "traces", "programs"])
def test_what_the_disk_forgot_is_made_again(tmp_path, kind):
    Model().add(values())
    another_process()
    entries = [each for each in tmp_path.rglob("*.weft") if f"/{kind}-" in str(each)]
    assert entries
    for each in entries:
        each.unlink()
    model = Model()
    assert run(model, values()) == [[6.0] * 4, [12.0] * 4] and model.facts.calls == 1


def test_a_torn_entry_is_a_miss(tmp_path):
    Model().add(values())
    another_process()
    for each in tmp_path.rglob("*.weft"):
        if "/traces-" in str(each):
            each.write_bytes(each.read_bytes()[:-3])
    model = Model()
    assert run(model, values()) == [[6.0] * 4, [12.0] * 4] and model.facts.calls == 1


def test_the_graph_is_traced_for_who_asks(tmp_path, capsys):
    Model().add(values())
    another_process()
    model = Model()
    model.add(values())
    with Context(DEBUG=2):
        model.add(values())
    assert "test_closed.py" in capsys.readouterr().out  # the lines of the kernels
    assert model.facts.calls == 1 and model.total.tolist() == [2.0] * 4
    save_function(Model.add, tmp_path / "add.weft", model, values())
    assert load_function(tmp_path / "add.weft") is not None


def test_who_watches_gets_a_trace():
    Model().add(values())
    another_process()
    model = Model()
    with Context(CHECK="jit"):
        assert model.add(values()).tolist() == [6.0] * 4
    assert model.facts.calls >= 1


def test_entries_are_plain_text(monkeypatch):
    kept = []
    monkeypatch.setattr(closed_module._CACHE.__class__, "put", lambda *a: kept.append(a[1:]))
    Model().add(values())
    (data,) = [data for key, data in kept if "Model.add" in str(key)]
    assert json.loads(data)["roles"]

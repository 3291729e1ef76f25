"""The executable tour stays short, right and runnable: `docs/tour/tiny_weft.py`."""

import ast
import importlib.util
import itertools
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

PATH = Path(__file__).resolve().parents[2] / "docs" / "tour" / "tiny_weft.py"


def load_tour() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tiny_weft", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tw = load_tour()


def run(node: "tw.UOp") -> np.ndarray:
    return tw.Schedule(node).run()[0]


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def softmax(x: "tw.UOp") -> "tw.UOp":
    e = (x - x.max(1)).exp()
    return e * e.sum(1).reciprocal()


def index_value(node: "tw.UOp", values: dict["tw.UOp", int]) -> int:
    """Evaluate an index expression in Python: the oracle of the rules."""
    if not node.src:
        return node.arg if node.op == "CONST" else values[node]
    a, b = (index_value(source, values) for source in node.src)
    return {"ADD": a + b, "MUL": a * b, "DIV": a // (b or 1), "MOD": a % (b or 1)}[node.op]


def assert_same_index(before: "tw.UOp", after: "tw.UOp") -> None:
    ranges = sorted(before.free | after.free, key=repr)
    for point in itertools.product(*(range(r.arg[1]) for r in ranges)):
        values = dict(zip(ranges, point, strict=True))
        assert index_value(before, values) == index_value(after, values)


def fill(pattern: "tw.UOp", bound: dict[str, object]) -> "tw.UOp":
    """Replace the holes of a pattern by what they are bound to."""
    if pattern.op == "ANY":
        return bound[pattern.arg]
    if pattern.op == "ANY_CONST":
        return tw.UOp("CONST", tw.index, (), bound[pattern.arg])
    src = tuple(fill(source, bound) for source in pattern.src)
    return tw.UOp(pattern.op, pattern.dtype, src, pattern.arg)


def numeric_gradient(function: Callable, point: np.ndarray) -> np.ndarray:
    out = np.zeros_like(point)
    for i in np.ndindex(point.shape):
        delta = np.zeros_like(point)
        delta[i] = 1e-5
        out[i] = (function(point + delta) - function(point - delta)) / 2e-5
    return out


# ---- the file


def test_tour_is_at_most_400_lines_under_100_columns() -> None:
    lines = PATH.read_text().splitlines()
    assert len(lines) <= 400
    assert max(map(len, lines)) < 100


def test_functions_are_under_40_lines() -> None:
    functions = [
        n for n in ast.walk(ast.parse(PATH.read_text())) if isinstance(n, ast.FunctionDef)
    ]
    assert all(function.end_lineno - function.lineno < 40 for function in functions)


def test_tour_imports_only_numpy_and_llvmlite() -> None:
    imported = set()
    for node in ast.walk(ast.parse(PATH.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module.split(".")[0])
    standard = {"__future__", "collections", "ctypes", "functools", "itertools", "math"}
    assert imported <= standard | {"llvmlite", "numpy"}


# ---- nodes


def test_equal_nodes_are_the_same_object() -> None:
    a, b = tw.tensor([1, 2]), tw.tensor([1, 2])
    assert a is not b  # other storage
    assert a + b is a + b
    assert a + b is not b + a


def test_constants_that_compare_equal_keep_apart() -> None:
    plus, minus = (tw.UOp("CONST", tw.float32, (), value) for value in (0.0, -0.0))
    assert plus is not minus
    assert tw.UOp("CONST", tw.index, (), 0) is not plus


def test_a_node_is_immutable() -> None:
    with pytest.raises(TypeError):
        tw.tensor([1]).op = "MUL"


def test_impossible_shapes_are_refused() -> None:
    x = tw.tensor(normal(0, 2, 3))
    for build in (
        lambda: x.reshape(4),
        lambda: x.reshape(4),  # the failure left no half-made node behind
        lambda: x.sum(-1),
        lambda: x.sum(2),
        lambda: x @ x,
        lambda: x + tw.tensor([1, 2]),
        lambda: tw.tensor(np.zeros((0, 3))),
    ):
        with pytest.raises(ValueError):
            build()


# ---- rules


@pytest.mark.parametrize("rule", tw.INDEX_RULES, ids=lambda rule: rule[0])
def test_every_rule_holds_by_brute_force(rule: tuple) -> None:
    name, pattern, replacement, when = rule
    random.seed(name)
    fired = 0
    for _ in range(400):
        x, y, z = (
            tw.UOp("RANGE", tw.index, (), (letter, random.randint(1, 6))) for letter in "xyz"
        )
        bound = {"x": x, "y": y, "z": z, "c0": random.randint(1, 6), "c1": random.randint(1, 6)}
        scope = {**vars(tw), **bound}
        if eval(when, scope):
            fired += 1
            assert_same_index(fill(pattern, bound), eval(replacement, scope))
    assert fired > 10


def test_random_indices_keep_their_value() -> None:
    random.seed(0)
    ranges = [tw.UOp("RANGE", tw.index, (), (f"q{i}", i + 2)) for i in range(3)]
    for _ in range(300):
        node = random.choice(ranges)
        for _ in range(6):
            c = random.randint(1, 8)
            node = random.choice(
                [node + random.choice(ranges), node * c, node // c, node % c, ranges[0] * c + node]
            )
        new = tw.rewrite(node, tw.INDEX_RULES)
        assert_same_index(node, new)
        assert tw.rewrite(new, tw.INDEX_RULES) is new


def test_rewrites_are_traced() -> None:
    i = tw.UOp("RANGE", tw.index, (), ("traced", 5))
    tw.TRACE.clear()
    assert tw.rewrite(i * 1 + 0, tw.INDEX_RULES) is i
    wanted = [("mul-one", i * 1, i), ("add-zero", i + 0, i)]
    assert wanted == tw.TRACE


def test_reshape_there_and_back_leaves_no_arithmetic() -> None:
    x = tw.tensor(normal(0, 3, 4, 5))
    direct, round_trip = tw.Schedule(x), tw.Schedule(x.reshape(12, 5).reshape(60).reshape(3, 4, 5))
    loads = [kernel.src[2] for schedule in (direct, round_trip) for kernel in schedule.kernels]
    assert loads[0] is loads[1]


# ---- tensor, schedule, codegen, run


def test_elementwise_and_broadcast() -> None:
    a, b = normal(0, 3, 1, 5), normal(1, 7, 1)
    x, y = tw.tensor(a), tw.tensor(b)
    np.testing.assert_allclose(run((x - y) * 2.0 + x.exp()), (a - b) * 2 + np.exp(a), rtol=1e-5)
    np.testing.assert_array_equal(run((x < y).where(x, y)), np.minimum(a, b))
    np.testing.assert_array_equal(run(x.maximum(y)), np.maximum(a, b))


@pytest.mark.parametrize("shape", [(1,), (7,), (1, 1), (3, 5, 7), (2, 1, 4, 1)])
def test_movement(shape: tuple[int, ...]) -> None:
    a = normal(0, *shape)
    x, order = tw.tensor(a), tuple(reversed(range(len(shape))))
    np.testing.assert_array_equal(run(x.permute(*order)), a.transpose(order))
    np.testing.assert_array_equal(
        run(x.permute(*order).reshape(a.size)), a.transpose(order).ravel()
    )
    np.testing.assert_array_equal(run(x.expand(3, *shape)), np.broadcast_to(a, (3, *shape)))


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_reductions(axes: tuple[int, ...]) -> None:
    a = normal(0, 3, 5, 7)
    x = tw.tensor(a)
    np.testing.assert_allclose(run(x.sum(*axes)), a.sum(axes, keepdims=True), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(run(x.max(*axes)), a.max(axes, keepdims=True))


def test_max_keeps_nan_and_infinity() -> None:
    a = np.array([[1, np.nan, 2], [-np.inf, -np.inf, -np.inf]], np.float32)
    np.testing.assert_array_equal(run(tw.tensor(a).max(1)), a.max(1, keepdims=True))


@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (3, 5, 7), (1, 9, 4), (17, 13, 1)])
def test_matmul_is_one_kernel(m: int, k: int, n: int) -> None:
    a, b = normal(0, m, k), normal(1, k, n)
    schedule = tw.Schedule(tw.tensor(a) @ tw.tensor(b))
    assert len(schedule.kernels) == 1
    np.testing.assert_allclose(schedule.run()[0], a @ b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 5), (1, 9), (7, 1), (13, 17)])
def test_softmax_is_one_kernel(shape: tuple[int, int]) -> None:
    a = normal(0, *shape)
    schedule = tw.Schedule(softmax(tw.tensor(a)))
    assert len(schedule.kernels) == 1
    e = np.exp(a - a.max(1, keepdims=True))
    np.testing.assert_allclose(schedule.run()[0], e / e.sum(1, keepdims=True), rtol=1e-5)


def test_softmax_loops_hold_dependent_reductions() -> None:
    (kernel,) = tw.Schedule(softmax(tw.tensor(normal(0, 4, 5), "x"))).kernels
    loops = [line for line in tw.render(kernel, tw.PSEUDO).splitlines() if "for" in line]
    assert [len(line) - len(line.lstrip()) for line in loops] == [0, 2, 2, 2]


@pytest.mark.parametrize(
    "build, kernels",
    [
        (lambda x: x @ x @ x, 2),  # the inner product would be repeated per column
        (lambda x: softmax(x).reshape(36), 3),  # per element of a row, when rows are not a loop
        (lambda x: x * x.sum(0), 2),  # per row
        (lambda x: x * x.sum(1), 1),  # once per row, where it is needed
        (lambda x: softmax(x).sum(0, 1), 1),
        (lambda x: x.sum(1) + x.sum(1).permute(1, 0), 2),  # at two indices
    ],
)
def test_a_reduction_is_staged_exactly_when_it_would_repeat(build: Callable, kernels: int) -> None:
    schedule = tw.Schedule(build(tw.tensor(normal(0, 6, 6))))
    assert len(schedule.kernels) == kernels
    assert np.isfinite(schedule.run()[0]).all()


def test_staged_programs_compute_the_right_values() -> None:
    a = normal(0, 6, 6)
    x = tw.tensor(a)
    e = np.exp(a - a.max(1, keepdims=True))
    rows = e / e.sum(1, keepdims=True)
    sums = a.sum(1, keepdims=True)
    for node, wanted in (
        (x @ x @ x, a @ a @ a),
        (softmax(x).reshape(36), rows.reshape(36)),
        (x * x.sum(0), a * a.sum(0, keepdims=True)),
        (softmax(x).sum(0, 1), rows.sum(keepdims=True)),
        (x.sum(1) + x.sum(1).permute(1, 0), sums + sums.T),
        (softmax(x @ x) @ softmax(x), None),
    ):
        if wanted is None:
            p = np.exp(a @ a - (a @ a).max(1, keepdims=True))
            wanted = p / p.sum(1, keepdims=True) @ rows
        np.testing.assert_allclose(run(node), wanted, rtol=1e-3, atol=1e-4)


def test_an_output_is_computed_once_and_read_by_others() -> None:
    a = normal(0, 4, 3)
    x = tw.tensor(a)
    total = x.sum(0)
    schedule = tw.Schedule(x, total, total * 2.0, tw.UOp("CONST", tw.float32, (), 5.0))
    assert len(schedule.kernels) == 4
    copy, once, twice, five = schedule.run()
    np.testing.assert_array_equal(copy, a)
    np.testing.assert_allclose(once, a.sum(0, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(twice, once * 2)
    assert five == 5


def random_program(rng: random.Random) -> tuple["tw.UOp", np.ndarray]:
    """Build a graph and, line by line, its value in NumPy."""
    made = []
    for i in range(2):
        shape = [rng.choice([1, 2, 3, 4]) for _ in range(rng.choice([2, 3]))]
        a = np.random.default_rng(rng.randrange(1000) + i).normal(size=shape).astype(np.float32)
        made.append((tw.tensor(a), a))
    for _ in range(8):
        x, a = rng.choice(made)
        axis = rng.randrange(a.ndim)
        order = rng.sample(range(a.ndim), a.ndim)
        partners = [(y, b) for y, b in made if b.shape == a.shape or b.size == 1]
        y, b = rng.choice(partners)
        made.append(
            rng.choice(
                [
                    (x + y, a + b),
                    (x * y * 0.5, a * b * 0.5),
                    (x.maximum(0.1), np.maximum(a, 0.1)),
                    (x - x.sum(axis), a - a.sum(axis, keepdims=True)),
                    (x * x.max(axis), a * a.max(axis, keepdims=True)),
                    (x.sum(axis), a.sum(axis, keepdims=True)),
                    (x.permute(*order), a.transpose(order)),
                    (x.reshape(a.size, 1), a.reshape(-1, 1)),
                    (x.reshape(*a.shape[::-1]), a.reshape(a.shape[::-1])),
                ]
            )
        )
    return made[-1]


def test_random_programs_agree_with_numpy(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        with np.errstate(all="ignore"):
            node, wanted = random_program(rng)
        if not np.isfinite(wanted).all():
            continue
        scale = max(1.0, float(abs(wanted).max()))
        np.testing.assert_allclose(run(node) / scale, wanted / scale, rtol=1e-3, atol=1e-4)


# ---- gradient


@pytest.mark.parametrize(
    "build, reference",
    [
        (lambda x: x * x + x, lambda a: a * a + a),
        (lambda x: (x * 0.5).exp(), lambda a: np.exp(a * 0.5)),
        (lambda x: (x * x + 1.0).reciprocal(), lambda a: 1 / (a * a + 1)),
        (lambda x: x.maximum(0.25) * x, lambda a: np.maximum(a, 0.25) * a),
        (lambda x: x.sum(0) * x.sum(1), lambda a: a.sum(0) * a.sum(1, keepdims=True)),
        (lambda x: x.max(1) * x, lambda a: a.max(1, keepdims=True) * a),
        (lambda x: x.permute(1, 0) @ x, lambda a: a.T @ a),
        (lambda x: x.reshape(2, 6) * x.reshape(2, 6), lambda a: a * a),
        (lambda x: x.expand(2, 3, 4) * 3.0, lambda a: a * 6),
        (lambda x: softmax(x) * x, lambda a: np.exp(a) / np.exp(a).sum(1, keepdims=True) * a),
    ],
)
def test_gradient_agrees_with_a_difference_quotient(build: Callable, reference: Callable) -> None:
    a = normal(5, 3, 4)
    weights = np.random.default_rng(6).normal(size=reference(a.astype(float)).shape)
    x = tw.tensor(a)
    out = build(x)
    if out.shape == weights.shape:
        weighted = out * tw.tensor(weights)
    else:  # the reference has another shape: weigh all elements alike
        weights, weighted = np.ones(()), out
    (grad,) = tw.gradient(weighted.sum(*range(len(out.shape))), x)
    wanted = numeric_gradient(lambda p: (reference(p) * weights).sum(), a.astype(float))
    np.testing.assert_allclose(run(grad), wanted, rtol=1e-3, atol=1e-3)


def test_equal_largest_elements_share_the_gradient() -> None:
    x = tw.tensor([[1, 3, 3, 2]])
    (grad,) = tw.gradient(x.max(1).sum(0, 1), x)
    np.testing.assert_array_equal(run(grad), [[0, 0.5, 0.5, 0]])


def test_gradient_of_a_gradient() -> None:
    x = tw.tensor([0.5, -1.0])
    (first,) = tw.gradient((x * x * x).sum(0), x)
    (second,) = tw.gradient(first.sum(0), x)
    np.testing.assert_allclose(run(second), [3, -6])


def test_mlp_gradients_and_training() -> None:
    a, labels = normal(0, 12, 3), normal(1, 12, 2)
    values = [normal(2, 3, 8), normal(3, 8), normal(4, 8, 2)]
    x, y = tw.tensor(a), tw.tensor(labels)
    parameters = [tw.tensor(value) for value in values]
    w1, b1, w2 = parameters
    error = (x @ w1 + b1).maximum(0.0) @ w2 - y
    loss = (error * error).sum(0, 1) * (1 / 12)

    def numpy_loss(*p: np.ndarray) -> float:
        return np.square(np.maximum(a @ p[0] + p[1], 0) @ p[2] - labels).sum() / 12

    grads = tw.gradient(loss, *parameters)
    value, *slopes = tw.Schedule(loss, *grads).run()
    exact = [value.astype(float) for value in values]
    np.testing.assert_allclose(value.item(), numpy_loss(*exact), rtol=1e-5)
    for i, slope in enumerate(slopes):
        wanted = numeric_gradient(
            lambda p, i=i: numpy_loss(*exact[:i], p, *exact[i + 1 :]), exact[i]
        )
        np.testing.assert_allclose(slope, wanted, rtol=1e-3, atol=1e-3)

    pairs = zip(parameters, grads, strict=True)
    step = tw.Schedule(loss, *(p - g * 0.02 for p, g in pairs))
    losses = []
    for _ in range(100):
        value, *updated = step.run()
        losses.append(value.item())
        for parameter, new in zip(parameters, updated, strict=True):
            tw.MEMORY[parameter][:] = new
    assert losses[-1] < 0.2 * losses[0]
    assert losses == sorted(losses, reverse=True)


def test_main_prints_what_it_computed(capsys: pytest.CaptureFixture[str]) -> None:
    load_tour().main()
    printed = capsys.readouterr().out
    assert "number of kernels: 1\n" in printed
    assert "div-of-sum" in printed
    losses = [float(line.split()[-1]) for line in printed.splitlines() if "  loss " in line]
    assert len(losses) == 6
    assert losses[-1] < 0.2 * losses[0]

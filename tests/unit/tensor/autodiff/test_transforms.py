"""Transforms of functions: values, structures, nesting, and what they cost."""

from typing import Any

import numpy as np
import pytest

from weft import checkpoint, function, grad, hessian, jacobian, jvp, value_and_grad, vjp, vmap
from weft.engine.counters import GlobalCounters
from weft.support.errors import ArgumentError, ArgumentTypeError, DTypeError, NotSupported
from weft.support.errors import ShapeError as Shape
from weft.support.settings import Context
from weft.tensor import Tensor


def array(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def close(ours: Any, expected: Any) -> None:
    got = ours.numpy() if isinstance(ours, Tensor) else ours
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


def test_grad_has_the_structure_of_the_argument():
    tree = {"w": Tensor(array(2, 3)), "b": [Tensor(array(3)), 7]}
    x = array(4, 2)

    def loss(p: Any, x: Tensor) -> Tensor:
        return ((x @ p["w"] + p["b"][0]) ** 2).sum() * p["b"][1]

    slopes = grad(loss)(tree, Tensor(x))
    rest = 14 * (x @ tree["w"].numpy() + tree["b"][0].numpy())
    close(slopes["w"], x.T @ rest)
    close(slopes["b"][0], rest.sum(0))
    assert slopes["b"][1] == 7
    of_both = grad(loss, argnums=(1, 0))(tree, Tensor(x))
    close(of_both[0], rest @ tree["w"].numpy().T)


def test_only_arguments_count():
    x = Tensor([3.0])
    slope = grad(lambda y: (x * y).sum())(x)
    assert slope.tolist() == [3.0]
    assert grad(lambda y: x.sum())(x).tolist() == [0.0]


def test_value_aux_and_writes():
    count = Tensor([0.0]).realize()

    def f(x: Tensor) -> tuple[Tensor, Any]:
        count.assign(count + x.sum())
        return (x * x).sum(), {"twice": x * 2}

    (value, other), slope = value_and_grad(f, has_aux=True)(Tensor([1.0, 2.0]))
    assert value.item() == 5.0 and slope.tolist() == [2.0, 4.0]
    assert other["twice"].tolist() == [2.0, 4.0] and count.tolist() == [3.0]
    slope, other = grad(f, has_aux=True)(Tensor([1.0, 2.0]))
    assert other["twice"].tolist() == [2.0, 4.0] and count.tolist() == [6.0]


def test_grad_nests():
    cube = lambda x: x * x * x  # noqa: E731
    assert grad(grad(grad(cube)))(Tensor(5.0)).item() == 6.0
    # The inner function's variable is not the outer's: d/dx of x * (d/dy of x + y) is 1.
    assert grad(lambda x: x * grad(lambda y: x + y)(Tensor(1.0)))(Tensor(1.0)).item() == 1.0


def test_vjp_and_jvp_are_transposes():
    x, y = Tensor(array(3)), Tensor(array(3, seed=1))
    tangents = (Tensor(array(3, seed=2)), Tensor(array(3, seed=3)))
    cotangents = {"a": Tensor(array(3, seed=4)), "b": Tensor(np.float64(2.0))}

    def f(x: Tensor, y: Tensor) -> dict[str, Tensor]:
        return {"a": x.sin() * y, "b": (x * y).sum()}

    value, pull = vjp(f, x, y)
    back = pull(cotangents)
    same, forward = jvp(f, (x, y), tangents)
    close(value["a"], np.sin(x.numpy()) * y.numpy())
    close(same["b"], (x.numpy() * y.numpy()).sum())
    close(
        forward["a"],
        np.cos(x.numpy()) * y.numpy() * tangents[0].numpy()
        + np.sin(x.numpy()) * tangents[1].numpy(),
    )
    left = sum((cotangents[k].numpy() * forward[k].numpy()).sum() for k in "ab")
    right = sum((t.numpy() * b.numpy()).sum() for t, b in zip(tangents, back, strict=True))
    assert left == pytest.approx(right)


def test_jvp_of_what_does_not_depend():
    value, change = jvp(lambda x: (x.detach(), x > 0), (Tensor([1.0]),), (Tensor([1.0]),))
    assert [each.tolist() for each in change] == [[0.0], [False]]
    assert value[1].tolist() == [True]


def test_jacobian_and_hessian():
    x = array(3)
    a = array(4, 3, seed=1)
    close(jacobian(lambda v: (Tensor(a) @ v).exp())(Tensor(x)), np.exp(a @ x)[:, None] * a)
    both = jacobian(lambda u, v: {"p": u * v}, argnums=(0, 1))(Tensor(x), Tensor(x + 1))
    close(both["p"][0], np.diag(x + 1))
    close(both["p"][1], np.diag(x))
    quadratic = a.T @ a
    found = hessian(lambda v: (v * (Tensor(quadratic) @ v)).sum())(Tensor(x))
    close(found, 2 * quadratic)
    assert jacobian(lambda v: v.reshape(3, 1) * v)(Tensor(x)).shape == (3, 3, 3)


def test_second_derivatives_of_decompositions():
    """Against differences of first derivatives, which are compared with torch elsewhere."""
    rows = array(3, 3) * 0.3 + np.diag([1.0, 2.0, 4.0])
    x = rows @ rows.T
    functions = (
        lambda t: t.inv()[0, 1],
        lambda t: t.det(),
        lambda t: t.slogdet()[1],
        lambda t: t.solve(Tensor([1.0, 2.0, 3.0], dtype="float64")).sum(),
        lambda t: ((t + t.T) * 0.5).cholesky()[2, 0],
        lambda t: ((t + t.T) * 0.5).eigh()[0][1],
        lambda t: t.svd()[1][0],
        lambda t: t.qr()[1][1, 1],
    )
    step = 1e-5
    direction = array(3, 3, seed=5)
    for f in functions:
        along = lambda t, f=f: (grad(f)(t) * Tensor(direction)).sum()  # noqa: E731
        ours = grad(along)(Tensor(x)).numpy()
        up, down = (grad(f)(Tensor(x + s * step * direction)).numpy() for s in (1, -1))
        np.testing.assert_allclose(ours, (up - down) / (2 * step), rtol=1e-4, atol=1e-6)


CASES: dict[str, Any] = {
    "arithmetic": lambda x: x * 2 - x.sum() / 3,
    "matmul": lambda x: x @ x.T,
    "softmax": lambda x: x.softmax(-1),
    "shapes": lambda x: x.T.reshape(-1)[1:7:2].flip(0).pad((1, 0)),
    "cat": lambda x: x.cat(x + 1, dim=1).roll(1, 0),
    "gather": lambda x: x.gather(1, Tensor([[0, 2], [1, 1]])),
    "index": lambda x: x[Tensor([1, 0, 1]), Tensor([0, 1, 2])],
    "index by value": lambda x: x[x.argmax(0)],
    "where": lambda x: (x > 0).where(x, -1.0),
    "scalar": lambda x: x.mean() * Tensor([1.0, 2.0], dtype="float64"),
    "constant": lambda x: Tensor([1.0, 2.0]),
    "call": function(lambda x: (x * x).sum(0)),
    "call of several": lambda x: function(lambda y: {"a": y + 1, "b": Tensor.arange(3)})(x)["b"],
    "gradient": lambda x: grad(lambda y: (y.tanh() * x).sum())(x),
    "solve": lambda x: (x @ x.T).inv(),
    "var": lambda x: x.var(1),
}


@pytest.mark.parametrize("name", CASES)
def test_vmap_is_the_loop(name: str):
    x = array(4, 2, 3)
    one = CASES[name]
    expected = np.stack([one(Tensor(part)).numpy() for part in x])
    close(vmap(one)(Tensor(x)), expected)
    moved = np.moveaxis(x, 0, 2)
    found = vmap(one, in_dims=2, out_dims=-1)(Tensor(moved))
    close(found, np.moveaxis(expected, 0, -1))


def test_vmap_structures_and_nesting():
    x, y = array(3, 4), array(5, seed=1)
    outer = vmap(vmap(lambda a, b: a * b, (None, 0)), (0, None))
    close(outer(Tensor(x[:, 0]), Tensor(y)), np.outer(x[:, 0], y))
    tree = {"x": Tensor(x), "w": Tensor(array(4, seed=2))}
    found = vmap(lambda t: {"dot": (t["x"] * t["w"]).sum(), "w": t["w"]}, ({"x": 0, "w": None},))
    result = found(tree)
    close(result["dot"], x @ tree["w"].numpy())
    assert result["w"].shape == (3, 4)
    per_example = vmap(grad(lambda w, a: (a @ w).tanh()), (None, 0))
    close(
        per_example(tree["w"], tree["x"]),
        (1 - np.tanh(x @ tree["w"].numpy()) ** 2)[:, None] * x,
    )


def test_vmap_is_one_vectorized_graph():
    """As many kernels for a batch as for one example."""
    weight = Tensor(array(8, 8)).realize()
    one = lambda x: (x @ weight).relu().sum()  # noqa: E731
    counts = []
    for call in (lambda: one(Tensor(array(8))), lambda: vmap(one)(Tensor(array(16, 8)))):
        GlobalCounters.reset()
        call().realize()
        counts.append(GlobalCounters.kernel_count)
    assert counts[1] <= counts[0] + 1


def test_random_numbers_are_the_same_for_all_examples():
    noise = vmap(lambda x: x * 0 + Tensor.rand(3))(Tensor([1.0, 2.0])).numpy()
    np.testing.assert_array_equal(noise[0], noise[1])
    assert len(set(noise[0])) == 3


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: grad(lambda x: x)(Tensor([1.0, 2.0])), Shape, "float32 (2,)"),
        (lambda: grad(lambda x: x.sum())(Tensor([1, 2])), DTypeError, "int32"),
        (lambda: grad(lambda x: x)(2.0), ArgumentTypeError, "argument 0 is float"),
        (lambda: grad(lambda x: 1.0)(Tensor(2.0)), ArgumentTypeError, "returned float"),
        (lambda: grad(lambda x: x, argnums=1)(Tensor(2.0)), ArgumentError, "no argument 1"),
        (lambda: vjp(lambda x: x, Tensor([1.0]))[1](Tensor(1.0)), Shape, "does not fit"),
        (lambda: vmap(lambda x: x)(Tensor(1.0)), Shape, "without axes"),
        (lambda: vmap(lambda x: x, None)(Tensor([1.0])), ArgumentError, "no argument"),
        (
            lambda: vmap(lambda x, y: x + y)(Tensor([1.0]), Tensor([1.0, 2.0])),
            Shape,
            "batches differ in size (1 and 2)",
        ),
        (lambda: vmap(lambda x: x, (0, 0))(Tensor([1.0])), ArgumentError, "structure"),
    ],
)
def test_mistakes_are_named(call: Any, error: type[Exception], text: str):
    with pytest.raises(error) as found:
        call()
    assert text in str(found.value)


def test_vmap_writes_to_no_memory_of_others():
    total = Tensor([0.0]).realize()
    with pytest.raises(NotSupported, match="differs between examples"):
        vmap(lambda x: total.assign(x))(Tensor([[1.0], [2.0]]))


def peak(wrap: Any) -> int:
    """Bytes at the peak of a training step of several layers, on a device that runs nothing."""
    with Context(DEVICE="NULL"):
        weights = [Tensor.empty(64, 64, requires_grad=True) for _ in range(6)]
        x = Tensor.empty(256, 64)
        layer = wrap(lambda x, w: (((x @ w).exp().sum(1, keepdim=True) + x) @ w).tanh() @ w + x)
        for weight in weights:
            x = layer(x, weight)
        found = (x * x).sum().gradient(*weights)
        GlobalCounters.reset()
        before = GlobalCounters.peak_memory.get("NULL", 0)
        found[0].realize(*found[1:])
        return GlobalCounters.peak_memory["NULL"] - before


def test_checkpoint_keeps_less_and_computes_the_same():
    x, w = Tensor(array(4, 3)), Tensor(array(3, 3, seed=1))
    plain = lambda x, w: ((x @ w).tanh() @ w).exp()  # noqa: E731
    for ours, expected in zip(
        grad(lambda *a: checkpoint(plain)(*a).sum(), (0, 1))(x, w),
        grad(lambda *a: plain(*a).sum(), (0, 1))(x, w),
        strict=True,
    ):
        close(ours, expected.numpy())
    assert peak(checkpoint) < 0.75 * peak(lambda f: f)


def test_vmap_of_a_function_with_a_gradient_of_its_own() -> None:
    @function(gradient=lambda inputs, outputs, gradients: (gradients[0] * 10 * inputs[0],))
    def square(x: Tensor) -> Tensor:
        return x * x

    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(vmap(square)(x).numpy(), [[1, 4], [9, 16]])
    slope = vmap(grad(lambda row: square(row).sum()))(x)
    np.testing.assert_allclose(slope.numpy(), [[10, 20], [30, 40]])
    summed = grad(lambda rows: vmap(square)(rows).sum())(x)
    np.testing.assert_allclose(summed.numpy(), [[10, 20], [30, 40]])


def test_vmap_of_a_scan() -> None:
    x = array(3, 4)
    close(vmap(lambda row: row.cumsum(0))(Tensor(x)), x.cumsum(1))
    close(vmap(grad(lambda row: (row.cumsum(0) * row).sum()))(Tensor(x)), _scan_slope(x))


def _scan_slope(x: Any) -> Any:
    return x.cumsum(1) + x[:, ::-1].cumsum(1)[:, ::-1]

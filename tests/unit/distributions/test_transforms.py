"""Transforms: inverses, volumes and the sets that they lead to."""

from typing import Any

import numpy as np
import pytest

from weft import NotSupported, Tensor, func
from weft import distributions as D  # noqa: N812

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float64)


def affine(d: Any) -> Any:
    return d.transforms.AffineTransform(0.5, -2.0)


CASES: dict[str, tuple[Any, Any]] = {
    "affine": (affine, X),
    "exp": (lambda d: d.transforms.ExpTransform(), X),
    "power": (lambda d: d.transforms.PowerTransform(d_tensor(d, 1.5)), np.abs(X)),
    "sigmoid": (lambda d: d.transforms.SigmoidTransform(), X),
    "softplus": (lambda d: d.transforms.SoftplusTransform(), X),
    "tanh": (lambda d: d.transforms.TanhTransform(), X),
    "cdf": (lambda d: d.transforms.CumulativeDistributionTransform(d.Normal(0.0, 1.0)), X),
    "stick": (lambda d: d.transforms.StickBreakingTransform(), X),
    "reshape": (lambda d: d.transforms.ReshapeTransform((4,), (2, 2)), X),
    "triangle": (lambda d: d.transforms.LowerCholeskyTransform(), np.tril(X[:, :3])),
    "definite": (lambda d: d.transforms.PositiveDefiniteTransform(), np.tril(X[:, :3])),
    "correlation": (lambda d: d.transforms.CorrCholeskyTransform(), X[:, :3]),
    "cat": (
        lambda d: d.transforms.CatTransform(
            [affine(d), d.transforms.ExpTransform()], dim=-1, lengths=[1, 3]
        ),
        X,
    ),
    "stack": (
        lambda d: d.transforms.StackTransform([affine(d), d.transforms.ExpTransform()], dim=-1),
        X[:, :2],
    ),
    "independent": (lambda d: d.transforms.IndependentTransform(affine(d), 1), X),
    "inverse": (lambda d: affine(d).inv, X),
    "several": (
        lambda d: d.transforms.ComposeTransform(
            [affine(d), d.transforms.StickBreakingTransform(), d.transforms.SigmoidTransform()]
        ),
        X,
    ),
}


def d_tensor(d: Any, value: Any) -> Any:
    if d is D:
        return Tensor(value)
    import torch

    return torch.tensor(value)


@pytest.mark.parametrize("name", CASES)
def test_the_inverse_leads_back(name: str):
    make, x = CASES[name]
    transform = make(D)
    y = transform(Tensor(x))
    np.testing.assert_allclose(transform.inv(y).numpy(), x, rtol=1e-6, atol=1e-6)
    assert transform.inv.inv(Tensor(x)).shape == y.shape
    shape = transform.forward_shape(x.shape)
    assert shape == y.shape and transform.inverse_shape(y.shape) == x.shape


@pytest.mark.parametrize("name", ["stick", "correlation", "several"])
def test_volumes_are_determinants(name: str):
    make, x = CASES[name]
    transform, at = make(D), Tensor(x[0])
    kept = np.tril_indices(3, -1) if name == "correlation" else slice(0, -1)

    def free(v: Tensor) -> Tensor:  # the results that determine the others
        return transform(v)[kept]

    wanted = np.linalg.slogdet(func.jacrev(free)(at).numpy())[1]
    found = transform.log_abs_det_jacobian(at, transform(at))
    if name == "several":  # which goes on with all elements of the simplex
        found = D.transforms.ComposeTransform(transform.parts[:2]).log_abs_det_jacobian(at, at)
        wanted = np.linalg.slogdet(
            func.jacrev(lambda v: transform.parts[1](transform.parts[0](v))[:-1])(at).numpy()
        )[1]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


def test_constraints():
    c = D.constraints
    for constraint, x in (
        (c.real, X), (c.positive, X), (c.greater_than(2.0), X), (c.less_than(-1.0), X),
        (c.unit_interval, X), (c.interval(-1.0, 3.0), X), (c.simplex, X),
        (c.lower_cholesky, X[:, :3]), (c.positive_definite, X[:, :3]),
        (c.corr_cholesky, X[:, :3]),
    ):  # fmt: skip
        for table in (D.biject_to, D.transform_to):
            assert constraint.check(table(constraint)(Tensor(x))).all().item(), constraint
    assert c.boolean.check(Tensor([0.0, 1.0, 2.0])).tolist() == [True, True, False]
    with pytest.raises(NotSupported, match="no transform to boolean"):
        D.biject_to(c.boolean)


@pytest.mark.peers("torch")
@pytest.mark.parametrize("name", CASES)
def test_values_and_volumes_are_those_of_torch(name: str):
    torch = pytest.importorskip("torch")
    make, x = CASES[name]
    ours, theirs = make(D), make(torch.distributions)
    y, wanted = ours(Tensor(x)), theirs(torch.tensor(x))
    np.testing.assert_allclose(y.numpy(), wanted.numpy(), rtol=1e-6, atol=1e-9)
    if name in ("triangle", "definite"):
        return
    found = ours.log_abs_det_jacobian(Tensor(x), y)
    volume = theirs.log_abs_det_jacobian(torch.tensor(x), wanted)
    np.testing.assert_allclose(found.numpy(), volume.numpy(), rtol=1e-6, atol=1e-9)

"""Distributions that few programs need: moments of draws, and PyTorch's densities."""

import math
from typing import Any

import numpy as np
import pytest

from weft import ArgumentError, NotSupported, Tensor
from weft import distributions as D  # noqa: N812


def tensor(d: Any, values: Any) -> Any:
    if d is D:
        return Tensor(values)
    import torch

    return torch.tensor(values)


# A distribution, and whether its draws have a mean and a variance to compare with.
CASES: dict[str, tuple[Any, bool]] = {
    "pareto": (lambda d: d.Pareto(tensor(d, [1.0, 2.0]), 5.0), True),
    "generalized pareto": (
        lambda d: d.GeneralizedPareto(1.0, 2.0, tensor(d, [-0.3, 0.0, 0.1])), True,
    ),
    "half cauchy": (lambda d: d.HalfCauchy(tensor(d, [1.0, 2.0])), False),
    "weibull": (lambda d: d.Weibull(2.0, tensor(d, [1.5, 3.0])), True),
    "kumaraswamy": (lambda d: d.Kumaraswamy(tensor(d, [0.5, 2.0]), 3.0), True),
    "inverse gamma": (lambda d: d.InverseGamma(tensor(d, [6.0, 8.0]), 4.0), True),
    "f": (lambda d: d.FisherSnedecor(tensor(d, [5.0, 3.0]), 20.0), True),
    "negative binomial": (lambda d: d.NegativeBinomial(4.0, logits=tensor(d, [0.2, -1.0])), True),
    "multinomial": (lambda d: d.Multinomial(6, tensor(d, [0.2, 0.3, 0.5])), True),
    "relaxed coin": (lambda d: d.RelaxedBernoulli(tensor(d, 0.5), tensor(d, [0.3, 0.8])), False),
    "relaxed classes": (
        lambda d: d.RelaxedOneHotCategorical(tensor(d, 0.7), tensor(d, [0.2, 0.3, 0.5])), False,
    ),
    "straight through": (
        lambda d: d.OneHotCategoricalStraightThrough(tensor(d, [0.2, 0.3, 0.5])), True,
    ),
    "continuous coin": (lambda d: d.ContinuousBernoulli(tensor(d, [0.1, 0.5, 0.9])), True),
    "von mises": (lambda d: d.VonMises(tensor(d, [0.5, -1.0]), tensor(d, [4.0, 0.3])), False),
    "mixture": (
        lambda d: d.MixtureSameFamily(
            d.Categorical(tensor(d, [0.25, 0.75])), d.Normal(tensor(d, [-1.0, 2.0]), 0.5)
        ),
        True,
    ),
    "mixture of vectors": (
        lambda d: d.MixtureSameFamily(
            d.Categorical(tensor(d, [0.25, 0.75])),
            d.Independent(d.Normal(tensor(d, [[-1.0, 1.0], [2.0, 0.0]]), 0.5), 1),
        ),
        True,
    ),
    "low rank": (
        lambda d: d.LowRankMultivariateNormal(
            tensor(d, [1.0, 2.0]), tensor(d, [[1.0], [0.5]]), tensor(d, [0.5, 1.0])
        ),
        True,
    ),
    "wishart": (
        lambda d: d.Wishart(tensor(d, 4.0), tensor(d, [[2.0, 0.5], [0.5, 1.0]])), True,
    ),
    "correlations": (lambda d: d.LKJCholesky(3, tensor(d, 1.5)), False),
    "logistic normal": (lambda d: d.LogisticNormal(tensor(d, [0.1, 0.5]), 0.6), False),
    "exp of normal": (
        lambda d: d.TransformedDistribution(
            d.Normal(tensor(d, [0.1, 0.5]), 0.6),
            [d.transforms.AffineTransform(0.5, -2.0), d.transforms.ExpTransform()],
        ),
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][1]])
def test_draws_have_the_mean_and_the_variance(name: str):
    Tensor.manual_seed(0)
    distribution = CASES[name][0](D)
    drawn = distribution.sample((20_000,)).numpy()
    mean, variance = distribution.mean.numpy(), distribution.variance.numpy()
    assert drawn.shape == (20_000, *distribution.batch_shape, *distribution.event_shape)
    np.testing.assert_array_less(np.abs(drawn.mean(0) - mean), 5 * np.sqrt(variance / 20_000))
    np.testing.assert_allclose(drawn.var(0), variance, rtol=0.2)


def test_angles_are_around_their_mean():
    Tensor.manual_seed(0)
    drawn = D.VonMises(Tensor([0.5, 3.0]), Tensor([4.0, 0.3])).sample((20_000,)).numpy()
    assert (np.abs(drawn) <= math.pi + 1e-6).all()
    center = np.exp(1j * drawn).mean(0)
    variance = D.VonMises(Tensor([0.5, 3.0]), Tensor([4.0, 0.3])).variance.numpy()
    np.testing.assert_allclose(1 - np.abs(center), variance, atol=0.02)
    np.testing.assert_allclose(np.angle(center)[0], 0.5, atol=0.02)


def test_factors_of_correlations():
    Tensor.manual_seed(0)
    drawn = D.LKJCholesky(4, 2.0).sample((500,)).numpy()
    whole = drawn @ drawn.swapaxes(-1, -2)
    np.testing.assert_allclose(np.diagonal(whole, 0, 1, 2), 1, atol=1e-5)
    assert (np.triu(drawn, 1) == 0).all() and np.abs(whole[:, 0, 3].mean()) < 0.1


def test_gradients_of_draws():
    probs = Tensor([0.2, 0.3, 0.5], requires_grad=True)
    drawn = D.OneHotCategoricalStraightThrough(probs).rsample((4,))
    assert set(drawn.detach().flatten().tolist()) <= {0.0, 1.0}
    (drawn * Tensor([1.0, 2.0, 3.0])).sum().backward()
    assert probs.grad.abs().sum().item() > 0
    logits = Tensor([0.1, 0.2], requires_grad=True)
    D.RelaxedBernoulli(0.5, logits=logits).rsample((3,)).sum().backward()
    assert (logits.grad > 0).all().item()


def test_what_is_refused():
    with pytest.raises(ArgumentError, match="df is 1"):
        D.Wishart(1.0, Tensor.eye(2))
    with pytest.raises(NotSupported, match="kl_divergence: HalfNormal and Normal"):
        D.kl_divergence(D.HalfNormal(1.0), D.Normal(0.0, 1.0))
    with pytest.raises(NotSupported, match="rsample"):
        D.MixtureSameFamily(
            D.Categorical(Tensor([0.5, 0.5])), D.Normal(Tensor([0.0, 1.0]), 1.0)
        ).rsample()


@pytest.mark.peers("torch")
@pytest.mark.filterwarnings("ignore:Singular sample")
@pytest.mark.parametrize("name", CASES)
def test_densities_are_those_of_torch(name: str):
    torch = pytest.importorskip("torch")
    ours, theirs = CASES[name][0](D), CASES[name][0](torch.distributions)
    torch.manual_seed(0)
    value = theirs.sample((4,))
    assert ours.batch_shape == tuple(theirs.batch_shape)
    assert ours.event_shape == tuple(theirs.event_shape)
    pairs = {"log_prob": [ours.log_prob(Tensor(value.numpy())), theirs.log_prob(value)]}
    for key in ("mean", "mode", "variance", "stddev", "entropy", "cdf"):
        try:
            wanted = getattr(theirs, key)
            wanted = wanted(value) if key == "cdf" else wanted() if key == "entropy" else wanted
        except NotImplementedError:
            continue
        if name == "kumaraswamy" and key == "mode":
            continue  # which is NaN there where it is 0
        found = getattr(ours, key)
        found = found(Tensor(value.numpy())) if key == "cdf" else found
        pairs[key] = [found() if key == "entropy" else found, wanted]
    for key, (found, wanted) in pairs.items():
        np.testing.assert_allclose(
            found.numpy(), wanted.numpy(), rtol=2e-4, atol=1e-5, err_msg=f"{name} {key}"
        )


KL: dict[str, Any] = {
    "binomials": lambda d: (d.Binomial(5, tensor(d, [0.2])), d.Binomial(5, tensor(d, [0.6]))),
    "geometrics": lambda d: (d.Geometric(tensor(d, 0.3)), d.Geometric(tensor(d, 0.6))),
    "cauchies": lambda d: (d.Cauchy(0.0, tensor(d, 2.0)), d.Cauchy(1.0, tensor(d, 1.0))),
    "gumbels": lambda d: (d.Gumbel(0.0, tensor(d, 2.0)), d.Gumbel(1.0, tensor(d, 1.5))),
    "paretos": lambda d: (d.Pareto(tensor(d, 2.0), 3.0), d.Pareto(tensor(d, 1.0), 2.0)),
    "continuous": lambda d: (
        d.ContinuousBernoulli(tensor(d, 0.3)), d.ContinuousBernoulli(tensor(d, 0.8)),
    ),
    "coin, count": lambda d: (d.Bernoulli(tensor(d, 0.3)), d.Poisson(tensor(d, 0.8))),
    "exponential, gamma": lambda d: (d.Exponential(tensor(d, 2.0)), d.Gamma(tensor(d, 3.0), 2.0)),
    "gamma, exponential": lambda d: (d.Gamma(tensor(d, 3.0), 2.0), d.Exponential(tensor(d, 2.0))),
    "exponential, normal": lambda d: (
        d.Exponential(tensor(d, 2.0)), d.Normal(tensor(d, 1.0), 2.0),
    ),
    "laplace, normal": lambda d: (d.Laplace(tensor(d, 0.5), 2.0), d.Normal(tensor(d, 1.0), 2.0)),
    "normal, laplace": lambda d: (d.Normal(tensor(d, 0.5), 2.0), d.Laplace(tensor(d, 1.0), 2.0)),
    "normal, gumbel": lambda d: (d.Normal(tensor(d, 0.5), 0.7), d.Gumbel(tensor(d, 1.0), 2.0)),
    "uniform, normal": lambda d: (d.Uniform(tensor(d, 0.5), 0.7), d.Normal(tensor(d, 1.0), 2.0)),
    "uniform, exponential": lambda d: (
        d.Uniform(tensor(d, 0.5), 0.7), d.Exponential(tensor(d, 1.0)),
    ),
    "half normals": lambda d: (d.HalfNormal(tensor(d, 0.5)), d.HalfNormal(tensor(d, 1.0))),
    "half cauchies": lambda d: (d.HalfCauchy(tensor(d, 0.5)), d.HalfCauchy(tensor(d, 1.0))),
    "log normals": lambda d: (d.LogNormal(tensor(d, 0.5), 1.0), d.LogNormal(tensor(d, 1.0), 2.0)),
    "low rank": lambda d: (CASES["low rank"][0](d), d.LowRankMultivariateNormal(
        tensor(d, [0.0, 1.0]), tensor(d, [[0.3], [1.5]]), tensor(d, [1.5, 1.0])
    )),
}  # fmt: skip


@pytest.mark.peers("torch")
@pytest.mark.parametrize("name", [name for name in KL if name != "half cauchies"])
def test_divergences_are_those_of_torch(name: str):
    torch = pytest.importorskip("torch")
    found = D.kl_divergence(*KL[name](D))
    wanted = torch.distributions.kl_divergence(*KL[name](torch.distributions))
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", KL)
def test_divergences_are_means_of_differences(name: str):
    Tensor.manual_seed(0)
    p, q = KL[name](D)
    drawn = p.sample((20_000,))
    apart = (p.log_prob(drawn) - q.log_prob(drawn)).numpy()
    limit = 6 * apart.std() / np.sqrt(20_000) + 1e-3
    assert np.abs(apart.mean() - D.kl_divergence(p, q).numpy()).max() < limit

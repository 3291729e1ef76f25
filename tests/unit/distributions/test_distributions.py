"""Draws have the moments of their distribution; densities and divergences are PyTorch's."""

import numpy as np
import pytest

from weft import ArgumentError, NotSupported, Tensor
from weft import distributions as D  # noqa: N812

SAMPLED = {
    "normal": lambda d: d.Normal(1.0, 2.0),
    "laplace": lambda d: d.Laplace(1.0, 2.0),
    "gumbel": lambda d: d.Gumbel(1.0, 2.0),
    "exponential": lambda d: d.Exponential(2.0),
    "gamma": lambda d: d.Gamma(0.5, 2.0),
    "beta": lambda d: d.Beta(2.0, 3.0),
    "geometric": lambda d: d.Geometric(0.4),
    "binomial": lambda d: d.Binomial(5, 0.4),
    "poisson": lambda d: d.Poisson(3.0),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_draws_have_the_mean_and_the_variance(name: str):
    Tensor.manual_seed(0)
    distribution = SAMPLED[name](D)
    drawn = distribution.sample((20_000,)).numpy()
    mean, variance = distribution.mean.item(), distribution.variance.item()
    assert abs(drawn.mean() - mean) < 5 * np.sqrt(variance / len(drawn))
    assert abs(drawn.var() / variance - 1) < 0.1


def test_gradients_go_through_rsample_alone():
    loc = Tensor([1.0, 2.0], requires_grad=True)
    D.Normal(loc, 1.0).rsample((3,)).sum().backward()
    assert loc.grad.tolist() == [3.0, 3.0]
    with pytest.raises(NotSupported, match="rsample has no gradient"):
        D.Categorical(probs=Tensor([0.5, 0.5])).rsample()
    with pytest.raises(ArgumentError, match="scale is not above 0"):
        D.Normal(0.0, 0.0)


@pytest.mark.peers
def test_densities_entropies_and_divergences():
    torch = pytest.importorskip("torch")
    makers = {
        **{name: SAMPLED[name] for name in SAMPLED if name not in ("binomial", "poisson")},
        "categorical": lambda d: d.Categorical(logits=_tensor(d, [[0.1, 2.0], [0.0, -1.0]])),
        "bernoulli": lambda d: d.Bernoulli(probs=_tensor(d, [0.2, 0.9])),
        "dirichlet": lambda d: d.Dirichlet(_tensor(d, [0.5, 2.0, 3.0])),
        "uniform": lambda d: d.Uniform(_tensor(d, [0.0, 1.0]), 3.0),
        "half normal": lambda d: d.HalfNormal(_tensor(d, [1.0, 2.0])),
        "log normal": lambda d: d.LogNormal(0.5, 0.7),
        "vectors": lambda d: d.MultivariateNormal(
            _tensor(d, [1.0, 2.0]), _tensor(d, [[2.0, 0.5], [0.5, 1.0]])
        ),
    }
    for name, make in makers.items():
        ours, theirs = make(D), make(torch.distributions)
        torch.manual_seed(0)
        value = theirs.sample((4,))
        for found, expected in (
            (ours.log_prob(Tensor(value.numpy())), theirs.log_prob(value)),
            (ours.entropy(), theirs.entropy()),
            (ours.mean, theirs.mean),
            (ours.variance, theirs.variance),
        ):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), 2e-4, 2e-5, err_msg=name)
    pairs = [
        lambda d: (d.Gamma(2.0, 3.0), d.Gamma(1.0, 0.5)),
        lambda d: (d.Beta(2.0, 3.0), d.Beta(1.0, 0.5)),
        lambda d: (d.Laplace(0.0, 1.0), d.Laplace(1.0, 2.0)),
        lambda d: (d.Bernoulli(0.3), d.Bernoulli(0.6)),
        lambda d: (d.Poisson(0.3), d.Poisson(0.6)),
        lambda d: (d.Uniform(1.0, 2.0), d.Uniform(0.0, 3.0)),
        lambda d: (
            d.Categorical(probs=_tensor(d, [0.2, 0.8])),
            d.Categorical(probs=_tensor(d, [0.5, 0.5])),
        ),
    ]
    for pair in pairs:
        ours = D.kl_divergence(*pair(D)).numpy()
        theirs = torch.distributions.kl_divergence(*pair(torch.distributions)).numpy()
        np.testing.assert_allclose(ours, theirs, 2e-4, 2e-5)


def _tensor(package, values):
    if package is D:
        return Tensor(values)
    import torch

    return torch.tensor(values)

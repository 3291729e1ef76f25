"""Probability distributions with the names of torch.distributions.

A distribution has a batch of parameters, and events of one shape. `sample` draws without a
gradient, `rsample` with one; `log_prob`, `entropy`, `mean` and `variance` are tensors as others.
Values are not looked at unless `validate_args=True` asks for it: that would compute them.
"""

from weft.distributions.bernoulli import Bernoulli, Binomial, Geometric, Poisson
from weft.distributions.categorical import Categorical, OneHotCategorical
from weft.distributions.distribution import Distribution
from weft.distributions.gamma import Beta, Chi2, Dirichlet, Gamma, StudentT
from weft.distributions.independent import Independent
from weft.distributions.kl import kl_divergence, register_kl
from weft.distributions.multivariate_normal import MultivariateNormal
from weft.distributions.normal import HalfNormal, LogNormal, Normal
from weft.distributions.uniform import Cauchy, Exponential, Gumbel, Laplace, Uniform
from weft.support.module_names import missing_name

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfNormal",
    "Independent",
    "Laplace",
    "LogNormal",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "Poisson",
    "StudentT",
    "Uniform",
    "kl_divergence",
    "register_kl",
]


def __getattr__(name: str) -> object:
    return missing_name(__name__)(name)

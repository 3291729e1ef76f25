"""Probability distributions with the names of torch.distributions.

A distribution has a batch of parameters, and events of one shape. `sample` draws without a
gradient, `rsample` with one; `log_prob`, `entropy`, `mean` and `variance` are tensors as others.
Values are not looked at unless `validate_args=True` asks for it: that would compute them.
"""

from weft.distributions import constraints, transforms
from weft.distributions.bernoulli import Bernoulli, Binomial, Geometric, Poisson
from weft.distributions.categorical import Categorical, OneHotCategorical
from weft.distributions.constraint_registry import biject_to, transform_to
from weft.distributions.counts import Multinomial, NegativeBinomial
from weft.distributions.distribution import Distribution, ExponentialFamily
from weft.distributions.gamma import Beta, Chi2, Dirichlet, Gamma, StudentT
from weft.distributions.independent import Independent
from weft.distributions.kl import kl_divergence, register_kl
from weft.distributions.low_rank import LowRankMultivariateNormal
from weft.distributions.matrices import LKJCholesky, Wishart
from weft.distributions.mixture import MixtureSameFamily
from weft.distributions.multivariate_normal import MultivariateNormal
from weft.distributions.normal import HalfNormal, LogNormal, Normal
from weft.distributions.ratios import FisherSnedecor, InverseGamma
from weft.distributions.relaxed import (
    ContinuousBernoulli,
    OneHotCategoricalStraightThrough,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from weft.distributions.tails import GeneralizedPareto, HalfCauchy, Kumaraswamy, Pareto, Weibull
from weft.distributions.transform import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from weft.distributions.transformed import LogisticNormal, TransformedDistribution
from weft.distributions.uniform import Cauchy, Exponential, Gumbel, Laplace, Uniform
from weft.distributions.vector_transforms import (
    CatTransform,
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    ReshapeTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)
from weft.distributions.von_mises import VonMises
from weft.support.module_names import missing_name

# isort: split
# Last: it enters pairs of the above in the table of `kl_divergence`.
from weft.distributions import kl_further as _kl_further  # noqa: F401

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]


def __getattr__(name: str) -> object:
    return missing_name(__name__)(name)

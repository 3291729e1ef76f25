"""Divergences of pairs of which one is of another class, or is made of others."""

from __future__ import annotations

import math

from weft.distributions.bernoulli import Bernoulli, Binomial, Geometric, Poisson
from weft.distributions.distribution import Distribution
from weft.distributions.gamma import Gamma
from weft.distributions.kl import _TABLE, kl_divergence, register_kl
from weft.distributions.low_rank import LowRankMultivariateNormal
from weft.distributions.multivariate_normal import MultivariateNormal
from weft.distributions.normal import HalfNormal, LogNormal, Normal
from weft.distributions.relaxed import ContinuousBernoulli
from weft.distributions.tails import HalfCauchy, Pareto
from weft.distributions.transformed import TransformedDistribution
from weft.distributions.uniform import Cauchy, Exponential, Gumbel, Laplace, Uniform
from weft.support.errors import NotSupported
from weft.tensor.tensor import Tensor

_EULER = 0.57721566490153286


@register_kl(Binomial, Binomial)
def _binomials(p: Binomial, q: Binomial) -> Tensor:
    same = p.total_count * (
        p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    )
    return (p.total_count > q.total_count).where(math.inf, same)


@register_kl(Geometric, Geometric)
def _geometrics(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Cauchy, Cauchy)
def _cauchies(p: Cauchy, q: Cauchy) -> Tensor:
    top = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return top.log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbels(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, of_q, of_p = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    away = (of_q + (1 + ratio).lgamma() - of_p).exp()
    return -ratio.log() - of_q + of_p + ratio * _EULER + away - (1 + _EULER)


@register_kl(Pareto, Pareto)
def _paretos(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    value = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return (p.scale < q.scale).where(math.inf, value)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_coins(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    of_p = p._log_norm() + (-p.probs).log1p()
    of_q = q._log_norm() + (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + of_p - of_q


@register_kl(Bernoulli, Poisson)
def _coin_and_count(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Exponential, Gamma)
def _exponential_and_gamma(p: Exponential, q: Gamma) -> Tensor:
    ratio = q.rate / p.rate
    alpha = q.concentration
    return ratio - alpha * ratio.log() + alpha.lgamma() + alpha * _EULER - (1 + _EULER)


@register_kl(Gamma, Exponential)
def _gamma_and_exponential(p: Gamma, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Exponential, Normal)
def _exponential_and_normal(p: Exponential, q: Normal) -> Tensor:
    width = q.scale.square()
    first, square = 1 / p.rate, 2 / p.rate.square()
    power = (square - 2 * q.loc * first + q.loc.square()) / (2 * width)
    return power + 0.5 * (2 * math.pi * width).log() - p.entropy()


@register_kl(Laplace, Normal)
def _laplace_and_normal(p: Laplace, q: Normal) -> Tensor:
    width = q.scale.square()
    square = 2 * p.scale.square() + (p.loc - q.loc).square()
    return square / (2 * width) + 0.5 * (2 * math.pi * width).log() - p.entropy()


@register_kl(Normal, Laplace)
def _normal_and_laplace(p: Normal, q: Laplace) -> Tensor:
    away = p.loc - q.loc
    unit = away / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * (-0.5 * unit.square()).exp()
    distance = near + away * (unit * math.sqrt(0.5)).erf()
    return distance / q.scale + (2 * q.scale).log() - p.entropy()


@register_kl(Normal, Gumbel)
def _normal_and_gumbel(p: Normal, q: Gumbel) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc) / q.scale
    power = (-away + 0.5 * ratio.square()).exp() + away
    return power + q.scale.log() - p.entropy()


@register_kl(Uniform, Normal)
def _uniform_and_normal(p: Uniform, q: Normal) -> Tensor:
    away = (p.mean - q.loc).square() + p.variance
    return 0.5 * (away / q.scale.square() + (2 * math.pi * q.scale.square()).log()) - p.entropy()


@register_kl(Uniform, Exponential)
def _uniform_and_exponential(p: Uniform, q: Exponential) -> Tensor:
    value = q.rate * p.mean - q.rate.log() - p.entropy()
    return (p.low < 0).where(math.inf, value)


def _whole(x: LowRankMultivariateNormal) -> MultivariateNormal:
    return MultivariateNormal(x.loc, x.covariance_matrix)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_ranks(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    return kl_divergence(_whole(p), _whole(q))


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _whole_and_low_rank(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    return kl_divergence(p, _whole(q))


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_and_whole(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    return kl_divergence(_whole(p), q)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    kinds = [[type(each) for each in x.transforms] for x in (p, q)]
    if kinds[0] != kinds[1] or p.event_shape != q.event_shape:
        raise NotSupported("kl_divergence: distributions of different transforms")
    return kl_divergence(p.base_dist, q.base_dist)


def _different(p: Distribution, q: Distribution) -> Tensor:
    """Classes that inherit from each other and whose numbers are others."""
    raise NotSupported(f"kl_divergence: {type(p).__name__} and {type(q).__name__}")


def _of_bases(p: Distribution, q: Distribution) -> Tensor:
    """Both are the same function of numbers of one class, whose divergence stays."""
    whole = Cauchy if isinstance(p, Cauchy) else Normal
    return _TABLE[whole, whole](p, q)


for _own, _base in ((HalfNormal, Normal), (LogNormal, Normal), (HalfCauchy, Cauchy)):
    register_kl(_own, _base)(_different)
    register_kl(_base, _own)(_different)
    register_kl(_own, _own)(_of_bases)
register_kl(HalfNormal, LogNormal)(_different)
register_kl(LogNormal, HalfNormal)(_different)

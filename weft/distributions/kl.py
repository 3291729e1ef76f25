"""The Kullback-Leibler divergence of two distributions, a table by their classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.distributions.bernoulli import Bernoulli, Poisson
from weft.distributions.categorical import Categorical
from weft.distributions.distribution import Distribution
from weft.distributions.gamma import Beta, Dirichlet, Gamma
from weft.distributions.independent import Independent, sum_last
from weft.distributions.multivariate_normal import MultivariateNormal
from weft.distributions.normal import Normal
from weft.distributions.uniform import Exponential, Laplace, Uniform
from weft.support.errors import NotSupported
from weft.tensor.tensor import Tensor

Divergence = Callable[[Any, Any], Tensor]
_TABLE: dict[tuple[type, type], Divergence] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Enter a function of two distributions in the table."""

    def entered(function: Divergence) -> Divergence:
        _TABLE[type_p, type_q] = function
        return function

    return entered


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """What is lost, in nats, where p is described by q.

    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0)).item()
    0.5
    """
    for first in type(p).__mro__:
        for second in type(q).__mro__:
            found = _TABLE.get((first, second))
            if found is not None:
                return found(p, q)
    raise NotSupported(
        f"kl_divergence: {type(p).__name__} and {type(q).__name__}",
        fix="enter a function with @register_kl, or take the mean of p.log_prob - q.log_prob",
    )


@register_kl(Normal, Normal)
def _normals(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    distance = ((p.loc - q.loc) / q.scale).square()
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(Categorical, Categorical)
def _categoricals(p: Categorical, q: Categorical) -> Tensor:
    part = p.probs * (p.logits - q.logits)
    part = (q.probs == 0).where(math.inf, part)
    return (p.probs == 0).where(0.0, part).sum(-1)


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p: Bernoulli, q: Bernoulli) -> Tensor:
    hit = p.probs * ((-q.logits).softplus() - (-p.logits).softplus())
    miss = (1 - p.probs) * (q.logits.softplus() - p.logits.softplus())
    return hit + miss


@register_kl(Poisson, Poisson)
def _poissons(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Exponential, Exponential)
def _exponentials(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Laplace, Laplace)
def _laplaces(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Uniform, Uniform)
def _uniforms(p: Uniform, q: Uniform) -> Tensor:
    value = ((q.high - q.low) / (p.high - p.low)).log()
    return ((q.low > p.low) | (q.high < p.high)).where(math.inf, value)


@register_kl(Gamma, Gamma)
def _gammas(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    powers = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return powers + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Dirichlet, Dirichlet)
def _dirichlets(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    totals = a.sum(-1).lgamma() - b.sum(-1).lgamma()
    each = b.lgamma() - a.lgamma()
    slopes = (a - b) * (a.digamma() - a.sum(-1, keepdim=True).digamma())
    return totals + (each + slopes).sum(-1)


@register_kl(Beta, Beta)
def _betas(p: Beta, q: Beta) -> Tensor:
    return _dirichlets(p._both(), q._both())


@register_kl(MultivariateNormal, MultivariateNormal)
def _vectors(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    def half_log_det(x: MultivariateNormal) -> Tensor:
        return x.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    ratio = q.scale_tril.solve_triangular(p.scale_tril, upper=False)
    away = q.scale_tril.solve_triangular((q.loc - p.loc).unsqueeze(-1), upper=False)
    squares = ratio.square().sum((-2, -1)) + away.square().sum((-2, -1))
    return half_log_det(q) - half_log_det(p) + 0.5 * (squares - p.event_shape[0])


@register_kl(Independent, Independent)
def _independents(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotSupported("kl_divergence: Independent of different numbers of axes")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)

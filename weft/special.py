"""Special functions with the names of torch.special: methods of `Tensor`, as functions."""

from __future__ import annotations

from typing import Any

from weft.support.module_names import missing_name
from weft.tensor.tensor import Tensor

airy_ai = Tensor.airy_ai
bessel_j0 = Tensor.bessel_j0
bessel_j1 = Tensor.bessel_j1
bessel_y0 = Tensor.bessel_y0
bessel_y1 = Tensor.bessel_y1
chebyshev_polynomial_t = Tensor.chebyshev_polynomial_t
chebyshev_polynomial_u = Tensor.chebyshev_polynomial_u
chebyshev_polynomial_v = Tensor.chebyshev_polynomial_v
chebyshev_polynomial_w = Tensor.chebyshev_polynomial_w
digamma = Tensor.digamma
entr = Tensor.entr
erf = Tensor.erf
erfc = Tensor.erfc
erfcx = Tensor.erfcx
erfinv = Tensor.erfinv
exp2 = Tensor.exp2
expm1 = Tensor.expm1
hermite_polynomial_h = Tensor.hermite_polynomial_h
hermite_polynomial_he = Tensor.hermite_polynomial_he
i0 = Tensor.i0
i0e = Tensor.i0e
i1 = Tensor.i1
i1e = Tensor.i1e
laguerre_polynomial_l = Tensor.laguerre_polynomial_l
legendre_polynomial_p = Tensor.legendre_polynomial_p
log1p = Tensor.log1p
log_ndtr = Tensor.log_ndtr
logit = Tensor.logit
modified_bessel_i0 = Tensor.modified_bessel_i0
modified_bessel_i1 = Tensor.modified_bessel_i1
modified_bessel_k0 = Tensor.modified_bessel_k0
modified_bessel_k1 = Tensor.modified_bessel_k1
ndtr = Tensor.ndtr
ndtri = Tensor.ndtri
polygamma = Tensor.polygamma
round = Tensor.round
scaled_modified_bessel_k0 = Tensor.scaled_modified_bessel_k0
scaled_modified_bessel_k1 = Tensor.scaled_modified_bessel_k1
shifted_chebyshev_polynomial_t = Tensor.shifted_chebyshev_polynomial_t
shifted_chebyshev_polynomial_u = Tensor.shifted_chebyshev_polynomial_u
shifted_chebyshev_polynomial_v = Tensor.shifted_chebyshev_polynomial_v
shifted_chebyshev_polynomial_w = Tensor.shifted_chebyshev_polynomial_w
sinc = Tensor.sinc
spherical_bessel_j0 = Tensor.spherical_bessel_j0
xlog1py = Tensor.xlog1py
xlogy = Tensor.xlogy
zeta = Tensor.zeta
expit = Tensor.sigmoid
gammainc = Tensor.igamma
gammaincc = Tensor.igammac
gammaln = Tensor.lgamma
multigammaln = Tensor.mvlgamma
psi = Tensor.digamma


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """exp(x) / Σ exp(x) along an axis."""
    return input.softmax(dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of softmax."""
    return input.log_softmax(dim, dtype)


def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """log Σ exp(x) along axes."""
    return input.logsumexp(dim, keepdim)


__getattr__ = missing_name(__name__)

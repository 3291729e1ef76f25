"""The special functions by their public names, which `Tensor` inherits."""

from __future__ import annotations

from weft.tensor.special import bessel, float_parts, gamma, normal, polynomials


class SpecialMethods:
    """Bessel functions, functions of the normal distribution, the gamma family, polynomials."""

    __slots__ = ()

    frexp, nextafter = float_parts.frexp, float_parts.nextafter
    bessel_j0 = bessel.bessel_j0
    bessel_j1 = bessel.bessel_j1
    bessel_y0 = bessel.bessel_y0
    bessel_y1 = bessel.bessel_y1
    i0 = bessel.i0
    i0e = bessel.i0e
    i1 = bessel.i1
    i1e = bessel.i1e
    modified_bessel_k0 = bessel.modified_bessel_k0
    modified_bessel_k1 = bessel.modified_bessel_k1
    scaled_modified_bessel_k0 = bessel.scaled_modified_bessel_k0
    scaled_modified_bessel_k1 = bessel.scaled_modified_bessel_k1
    spherical_bessel_j0 = bessel.spherical_bessel_j0
    airy_ai = bessel.airy_ai
    erfcx = normal.erfcx
    ndtr = normal.ndtr
    log_ndtr = normal.log_ndtr
    ndtri = normal.ndtri
    entr = normal.entr
    xlog1py = normal.xlog1py
    zeta = gamma.zeta
    polygamma = gamma.polygamma
    igamma = gamma.igamma
    igammac = gamma.igammac
    chebyshev_polynomial_t = polynomials.chebyshev_polynomial_t
    chebyshev_polynomial_u = polynomials.chebyshev_polynomial_u
    chebyshev_polynomial_v = polynomials.chebyshev_polynomial_v
    chebyshev_polynomial_w = polynomials.chebyshev_polynomial_w
    shifted_chebyshev_polynomial_t = polynomials.shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u = polynomials.shifted_chebyshev_polynomial_u
    shifted_chebyshev_polynomial_v = polynomials.shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w = polynomials.shifted_chebyshev_polynomial_w
    hermite_polynomial_h = polynomials.hermite_polynomial_h
    hermite_polynomial_he = polynomials.hermite_polynomial_he
    laguerre_polynomial_l = polynomials.laguerre_polynomial_l
    legendre_polynomial_p = polynomials.legendre_polynomial_p
    modified_bessel_i0, modified_bessel_i1 = bessel.i0, bessel.i1
    mvlgamma = normal.multigammaln

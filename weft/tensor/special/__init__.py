"""Special functions: Bessel's, of the normal distribution, of the gamma family, polynomials."""

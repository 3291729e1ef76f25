"""Rows of linear algebra. Matrices are made well conditioned, so that errors can be in ulp.

What a decomposition leaves open, the signs of vectors, is taken out before it is compared.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tests.end_to_end.op_row import FLOATS, INTS, PRECISE, SUM, Row, Shape, pt

# Errors of elimination and of rotations are a few roundings for each row.
LINALG = 64.0


def la(name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """A function of torch.linalg."""
    return lambda *x: getattr(import_module("torch.linalg"), name)(*x, *args, **kwargs)


def row(
    name: str,
    ours: Callable[..., Any],
    *shapes: tuple[Shape, ...],
    theirs: Callable[..., Any] | None = None,
    dtypes: tuple[str, ...] = PRECISE,
    ulps: float = LINALG,
    kind: str = "unit",
    numpy: Callable[..., Any] | None = None,
) -> Row:
    kinds = (kind,) * len(shapes[0])
    return Row(name, ours, kinds, shapes, theirs, dtypes, True, ulps, True, False, numpy)


def dominant(x: Any) -> Any:
    """Rows whose diagonal outweighs the rest, with signs that differ."""
    size = x.shape[-1]
    grown = x * 0 + 1.0
    return x + (grown.tril() - grown.tril(-1)) * (size + 1.0)


def positive(x: Any) -> Any:
    """Symmetric, with positive eigenvalues that differ."""
    grown = x * 0 + 1.0
    ones = grown.tril() - grown.tril(-1)
    steps = (grown.tril() @ grown.tril()) * ones  # 1, 1, … on the diagonal
    return x @ x.transpose(-1, -2) * 0.25 + steps


def spread(x: Any) -> Any:
    """Symmetric, with a diagonal 0, 3, 6, … that keeps eigenvalues apart."""
    grown = x * 0 + 1.0
    ones = grown.tril() - grown.tril(-1)
    numbers = grown.tril().sum(-1, keepdim=True) * ones
    return (x + x.transpose(-1, -2)) * 0.5 + numbers * 3.0


def apart(x: Any) -> Any:
    """Not symmetric, with singular values that differ: a diagonal is added to a tall matrix."""
    grown = x * 0 + 1.0
    ones = grown.tril() - grown.tril(-1)
    numbers = grown.tril().sum(-1, keepdim=True) * ones
    return x + numbers * 3.0


MATRIX: tuple[tuple[Shape, ...], ...] = (((5, 5),), ((2, 3, 3),), ((1, 1),))


PRODUCTS_OF_MATRICES: tuple[Row, ...] = (
    row("bmm", lambda x, y: x.bmm(y), ((2, 3, 4), (2, 4, 5)), dtypes=(*INTS, *FLOATS), ulps=SUM),
    row("mv", lambda x, y: x.mv(y), ((3, 4), (4,)), dtypes=(*INTS, *FLOATS), ulps=SUM),
    row(
        "addmm",
        lambda c, x, y: c.addmm(x, y, beta=2, alpha=3),
        ((3, 5), (3, 4), (4, 5)),
        ((5,), (3, 4), (4, 5)),
        dtypes=("int32", *PRECISE),
        ulps=SUM,
    ),
    row(
        "baddbmm",
        lambda c, x, y: c.baddbmm(x, y, alpha=0.5),
        ((2, 3, 5), (2, 3, 4), (2, 4, 5)),
        ulps=SUM,
    ),
    row("outer", lambda x, y: x.outer(y), ((3,), (4,)), dtypes=(*INTS, *FLOATS), ulps=0.0),
    row(
        "tensordot",
        lambda x, y: x.tensordot(y),
        ((2, 3, 4), (3, 4, 5)),
        theirs=pt("tensordot"),
        ulps=SUM,
    ),
    row(
        "tensordot by lists",
        lambda x, y: x.tensordot(y, ([2, 0], [0, 1])),
        ((2, 3, 4), (4, 2, 5)),
        theirs=pt("tensordot", dims=([2, 0], [0, 1])),
        ulps=SUM,
    ),
    row("kron", lambda x, y: x.kron(y), ((2, 3), (3, 2)), ((3,), (2, 2)), ulps=0.0),
    row("cross", lambda x, y: x.cross(y), ((4, 3), (4, 3)), theirs=la("cross"), ulps=SUM),
    row(
        "cross along an axis",
        lambda x, y: x.cross(y, 0),
        ((3, 4), (3, 1)),
        theirs=la("cross", dim=0),
        ulps=SUM,
    ),
    row("vecdot", lambda x, y: x.vecdot(y), ((3, 4), (4,)), theirs=la("vecdot"), ulps=SUM),
    row("trace", lambda x: x.trace(), ((4, 4),), ((3, 5),), ulps=SUM),
    row("matrix_power", lambda x: x.matrix_power(5), ((3, 3),), ((2, 4, 4),), ulps=4 * SUM),
    row("matrix_power zero", lambda x: x.matrix_power(0) + x, ((3, 3),)),
    row("norm", lambda x: x.norm(), ((3, 5),), ((2, 3, 4),), dtypes=FLOATS, ulps=SUM),
    row("norm of rows", lambda x: x.norm(dim=1, keepdim=True), ((3, 5),), ulps=SUM),
    row("norm 3", lambda x: x.norm(3, dim=(0, 1)), ((3, 5),), ulps=SUM),
    row("norm 1 inf", lambda x: x.norm(1) + x.norm(float("inf"), dim=0), ((3, 5),), ulps=SUM),
    row("cdist", lambda x, y: x.cdist(y), ((4, 3), (5, 3)), theirs=pt("cdist"), ulps=SUM),
    row("cdist 1", lambda x, y: x.cdist(y, 1.0), ((2, 4, 3), (2, 5, 3)), theirs=pt("cdist", p=1)),
    row("cdist 3", lambda x, y: x.cdist(y, 3.0), ((4, 3), (5, 3)), theirs=pt("cdist", p=3)),
)

DECOMPOSITIONS: tuple[Row, ...] = (
    row("matrix_power inverse", lambda x: dominant(x).matrix_power(-3), ((4, 4),)),
    row("norm nuc", lambda x: apart(x).norm("nuc", dim=(0, 1)), ((4, 4),)),
    *[
        row(f"matrix_norm {kind}", _norm, ((2, 4, 4),), theirs=_theirs)
        for kind, _norm, _theirs in (
            (
                str(order),
                lambda x, order=order: apart(x).matrix_norm(order),
                lambda x, order=order: la("matrix_norm", ord=order)(apart(x)),
            )
            for order in ("fro", "nuc", 2, -2, 1, -1, float("inf"), -float("inf"))
        )
    ],
    row(
        "inv",
        lambda x: dominant(x).inv(),
        *MATRIX,
        theirs=lambda x: la("inv")(dominant(x)),
    ),
    row(
        "solve",
        lambda x, y: dominant(x).solve(y),
        ((5, 5), (5, 2)),
        ((2, 3, 3), (2, 3)),
        ((3, 3), (2, 3, 2)),
        theirs=lambda x, y: la("solve")(dominant(x), y),
    ),
    row("det", lambda x: dominant(x).det(), *MATRIX),
    row("slogdet", lambda x: dominant(x).slogdet()[1], *MATRIX),
    row("slogdet sign", lambda x: x.slogdet()[0], *MATRIX)._replace(has_gradient=False),
    row(
        "cholesky",
        lambda x: positive(x).cholesky(),
        *MATRIX,
        theirs=lambda x: la("cholesky")(positive(x)),
    ),
    row(
        "solve_triangular",
        lambda x, y: dominant(x).solve_triangular(y, upper=False),
        ((5, 5), (5, 2)),
        theirs=lambda x, y: la("solve_triangular", upper=False)(dominant(x), y),
    ),
    row(
        "solve_triangular from the right",
        lambda x, y: x.solve_triangular(y, upper=True, left=False, unitriangular=True),
        ((2, 3, 3), (2, 4, 3)),
        theirs=la("solve_triangular", upper=True, left=False, unitriangular=True),
    ),
    row("qr", lambda x: list(apart(x).qr()), ((5, 3),), theirs=lambda x: la("qr")(apart(x))),
    row(
        "qr of a wide matrix",
        lambda x: list(apart(x).qr()),
        ((2, 3, 5),),
        theirs=lambda x: la("qr")(apart(x)),
    ),
    row(
        "eigh",
        lambda x: [(e := spread(x).eigh())[0], e[1].abs()],
        *MATRIX,
        theirs=lambda x: [(e := la("eigh")(spread(x)))[0], e[1].abs()],
    ),
    row(
        "svd",
        lambda x: [(e := apart(x).svd(False))[0].abs(), e[1], e[2].abs()],
        ((5, 3),),
        ((2, 3, 4),),
        theirs=lambda x: [
            (e := la("svd", full_matrices=False)(apart(x)))[0].abs(),
            e[1],
            e[2].abs(),
        ],
    ),
    row(
        "pinv",
        lambda x: apart(x).pinv(),
        ((5, 3),),
        ((2, 3, 4),),
        theirs=lambda x: la("pinv")(apart(x)),
    ),
    row(
        "lstsq",
        lambda x, y: apart(x).lstsq(y)[0],
        ((5, 3), (5, 2)),
        theirs=lambda x, y: la("lstsq")(apart(x), y)[0],
    ),
)


def as_complex(x: Any) -> Any:
    return import_module("torch").view_as_complex(x.contiguous())


def as_pairs(z: Any) -> Any:
    return import_module("torch").view_as_real(z.resolve_conj())


def spectrum(name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """A transform of torch.fft on pairs; what begins with r takes real numbers, ir gives them."""

    def function(x: Any) -> Any:
        given = x if name.startswith("r") else as_complex(x)
        found = getattr(import_module("torch.fft"), name)(given, *args, **kwargs)
        return found if name.startswith("ir") else as_pairs(found)

    return function


TRANSFORMS: tuple[Row, ...] = (
    row("fft", lambda x: x.fft(), ((3, 12, 2),), ((37, 2),), theirs=spectrum("fft"), ulps=SUM),
    row("ifft", lambda x: x.ifft(8, 0), ((6, 3, 2),), theirs=spectrum("ifft", 8, 0), ulps=SUM),
    row("rfft", lambda x: x.rfft(), ((2, 9),), theirs=spectrum("rfft"), ulps=SUM),
    row("irfft", lambda x: x.irfft(), ((2, 5, 2),), theirs=spectrum("irfft"), ulps=SUM),
    row("fft2", lambda x: x.fft2(), ((4, 3, 2),), theirs=spectrum("fft2"), ulps=SUM),
    row("ifft2", lambda x: x.ifft2(), ((4, 3, 2),), theirs=spectrum("ifft2"), ulps=SUM),
    row("rfft2", lambda x: x.rfft2(), ((4, 5),), theirs=spectrum("rfft2"), ulps=SUM),
    row("irfft2", lambda x: x.irfft2(), ((4, 3, 2),), theirs=spectrum("irfft2"), ulps=SUM),
)

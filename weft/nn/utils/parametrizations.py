"""Weights as a direction and a length, with a norm of one, or orthogonal; as parametrizations."""

from __future__ import annotations

from typing import Any

from weft.nn.module import Module
from weft.nn.utils.parametrize import register_parametrization, remove_parametrizations
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


def _norm_beside(v: Tensor, dim: int | None) -> Tensor:
    """The norm over all axes but one, which stay with size 1."""
    if dim is None:
        return v.square().sum().sqrt()
    axes = [axis for axis in range(v.ndim) if axis != dim % v.ndim]
    return v.square().sum(axes, keepdim=True).sqrt() if axes else v.abs()


class _WeightNorm(Module):
    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        return v * (g / _norm_beside(v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return _norm_beside(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Train the length and the direction of a weight apart: g v / |v|.

    >>> from weft import nn
    >>> layer = weight_norm(nn.Linear(3, 2))
    >>> [(key, tuple(each.shape)) for key, each in layer.named_parameters() if "original" in key]
    [('parametrizations.weight.original0', (2, 1)), ('parametrizations.weight.original1', (2, 3))]
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """A weight over its greatest singular value, which a few steps estimate while training."""

    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        if n_power_iterations < 1:
            raise ArgumentError(
                f"spectral_norm: n_power_iterations is {n_power_iterations}", rule="it is above 0"
            )
        self.n_power_iterations, self.eps = n_power_iterations, eps
        self.dim = dim % weight.ndim
        if weight.ndim > 1:
            matrix = self._matrix(weight.detach())
            rows, columns = matrix.shape
            self.register_buffer("_u", self._unit(Tensor.randn(rows)).realize())
            self.register_buffer("_v", self._unit(Tensor.randn(columns)).realize())
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        return (weight.transpose(0, self.dim) if self.dim else weight).flatten(1)

    def _unit(self, x: Tensor) -> Tensor:
        return x / x.square().sum().sqrt().clamp(min_=self.eps)

    def _iterate(self, matrix: Tensor, count: int) -> None:
        u, v = self._u, self._v
        for _ in range(count):
            u = self._unit(matrix @ v)
            v = self._unit(matrix.transpose() @ u)
        new = u.contiguous(), v.contiguous()
        self._u.assign(new[0])
        self._v.assign(new[1])

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return self._unit(weight)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        u, v = self._u.detach().clone(), self._v.detach().clone()
        return weight / (u * (matrix @ v)).sum()  # type: ignore[no-any-return]


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divide a weight by its greatest singular value.

    >>> from weft import nn
    >>> layer = spectral_norm(nn.Linear(3, 2)).eval()
    >>> round(layer.weight.svd()[1].max().item(), 2)
    1.0
    """
    weight = getattr(module, name)
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    return register_parametrization(
        module, name, _SpectralNorm(weight, n_power_iterations, dim, eps)
    )


class _Orthogonal(Module):
    """The first columns of e^A, which is orthogonal where A is the skew part of a matrix."""

    def __init__(self, base: Tensor) -> None:
        super().__init__()
        self.register_buffer("base", base)

    def forward(self, x: Tensor) -> Tensor:
        is_wide = x.shape[-2] < x.shape[-1]
        low = (x.transpose(-2, -1) if is_wide else x).tril(-1)
        rows, columns = int(low.shape[-2]), int(low.shape[-1])
        if columns < rows:
            low = low.pad(((0, 0),) * (low.ndim - 1) + ((0, rows - columns),))
        skew = low - low.transpose(-2, -1)
        made = (self.base @ skew.matrix_exp())[..., :columns]
        return made.transpose(-2, -1) if is_wide else made  # type: ignore[no-any-return]

    def right_inverse(self, weight: Tensor) -> Tensor:
        return weight.zeros_like()


def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Keep a weight orthogonal: its rows, or its columns, are orthonormal.

    >>> from weft import nn
    >>> weight = orthogonal(nn.Linear(3, 3)).weight
    >>> bool((weight @ weight.transpose() - Tensor.eye(3)).abs().max().item() < 1e-5)
    True
    """
    if orthogonal_map not in (None, "matrix_exp") or not use_trivialization:
        raise ArgumentError(
            f"orthogonal: orthogonal_map is {orthogonal_map!r}", rule='it is "matrix_exp"'
        )
    weight = getattr(module, name).detach()
    is_wide = weight.shape[-2] < weight.shape[-1]
    tall = weight.transpose(-2, -1) if is_wide else weight
    rows, columns = int(tall.shape[-2]), int(tall.shape[-1])
    if columns < rows:
        tall = tall.cat(Tensor.randn(*tall.shape[:-1], rows - columns), dim=-1)
    q, r = tall.qr()
    base = (q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)).contiguous().realize()
    return register_parametrization(module, name, _Orthogonal(base))


def weight_norm_hook(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """`parametrizations.weight_norm` by its older name."""
    return weight_norm(module, name, dim)


def spectral_norm_hook(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """`parametrizations.spectral_norm` by its older name."""
    return spectral_norm(module, name, n_power_iterations, eps, dim)


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Make the weight a parameter again."""
    return remove_parametrizations(module, name)


remove_spectral_norm = remove_weight_norm

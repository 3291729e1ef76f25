"""The optimizers by name. Each is a method of this package with parameters to write to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.nn.optim import adaptive, descent
from weft.nn.optim.method import Mask
from weft.nn.optim.optimizer import Optimizer
from weft.tensor.tensor import Tensor


def _betas(
    b1: float | tuple[float, float], b2: float, betas: tuple[float, float] | None
) -> tuple[float, float]:
    """b1 and b2; a pair as b1 is PyTorch's third argument."""
    if betas is not None:
        return betas
    return (b1[0], b1[1]) if isinstance(b1, (tuple, list)) else (b1, b2)


class SGD(Optimizer):
    """Stochastic gradient descent with momentum; see `sgd`."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        classic: bool = False,
        device: str | None = None,
        fused: bool | None = None,
        weight_decay_mask: Mask = None,
    ) -> None:
        method = descent.sgd(
            lr, momentum, weight_decay, nesterov, classic, weight_decay_mask, device
        )
        super().__init__(params, method=method)


class LARS(Optimizer):
    """Descent with a rate for each layer; see `lars`."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        ns_steps: int = 0,
        ns_coefficients: Sequence[float] | None = None,
        nesterov: bool = False,
        classic: bool = True,
        pre_wd: bool = True,
        tcoef: float = 0.001,
        device: str | None = None,
        fused: bool | None = None,
        weight_decay_mask: Mask = None,
    ) -> None:
        method = descent.lars(
            lr,
            momentum,
            weight_decay,
            ns_steps,
            ns_coefficients,
            nesterov,
            classic,
            pre_wd,
            tcoef,
            weight_decay_mask,
            device,
        )
        super().__init__(params, method=method)


class Muon(Optimizer):
    """Orthogonal momentum for matrices; see `muon`."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
        ns_steps: int = 5,
        ns_coefficients: Sequence[float] = (3.4445, -4.775, 2.0315),
        nesterov: bool = True,
        device: str | None = None,
        fused: bool | None = None,
        weight_decay_mask: Mask = None,
    ) -> None:
        method = descent.muon(
            lr,
            momentum,
            weight_decay,
            ns_steps,
            ns_coefficients,
            nesterov,
            weight_decay_mask,
            device,
        )
        super().__init__(params, method=method)


class Adam(Optimizer):
    """Averages of gradients and of their squares; see `adam`.

    `betas` is b1 and b2. The weight decay is a part of the gradient, as in PyTorch.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        b1: float | tuple[float, float] = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        device: str | None = None,
        fused: bool | None = None,
        weight_decay: float = 0.0,
        weight_decay_mask: Mask = None,
        betas: tuple[float, float] | None = None,
    ) -> None:
        b1, b2 = _betas(b1, b2, betas)
        method = adaptive.adam(
            lr, b1, b2, eps, weight_decay, weight_decay_mask, device, decoupled=False
        )
        super().__init__(params, method=method)


class AdamW(Optimizer):
    """Adam with weight decay that does not pass through the averages; see `adam`.

    `betas` is b1 and b2.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        b1: float | tuple[float, float] = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        device: str | None = None,
        fused: bool | None = None,
        weight_decay_mask: Mask = None,
        betas: tuple[float, float] | None = None,
    ) -> None:
        b1, b2 = _betas(b1, b2, betas)
        method = adaptive.adam(lr, b1, b2, eps, weight_decay, weight_decay_mask, device)
        super().__init__(params, method=method)


class LAMB(Optimizer):
    """Adam with a rate for each layer; see `lamb`."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        adam: bool = False,
        device: str | None = None,
        fused: bool | None = None,
        weight_decay_mask: Mask = None,
    ) -> None:
        method = adaptive.lamb(lr, b1, b2, eps, weight_decay, adam, weight_decay_mask, device)
        super().__init__(params, method=method)


class Adagrad(Optimizer):
    """Steps divided by the root of all squares so far; see `adagrad`."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.01,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        device: str | None = None,
        fused: bool | None = None,
        weight_decay_mask: Mask = None,
    ) -> None:
        method = adaptive.adagrad(
            lr, lr_decay, weight_decay, initial_accumulator_value, eps, weight_decay_mask, device
        )
        super().__init__(params, method=method)


class RMSprop(Optimizer):
    """Steps divided by a running root mean square; see `rmsprop`."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        device: str | None = None,
        fused: bool | None = None,
        weight_decay_mask: Mask = None,
    ) -> None:
        method = adaptive.rmsprop(
            lr, alpha, eps, weight_decay, momentum, centered, weight_decay_mask, device
        )
        super().__init__(params, method=method)


class Adafactor(Optimizer):
    """Adam's squares stored as rows and columns; see `adafactor`."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.01,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        device: str | None = None,
        fused: bool | None = None,
        weight_decay_mask: Mask = None,
    ) -> None:
        method = adaptive.adafactor(
            lr, beta2_decay, eps, d, weight_decay, weight_decay_mask, device
        )
        super().__init__(params, method=method)


class Lion(Optimizer):
    """Steps by the sign of an average; see `lion`."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-4,
        b1: float = 0.9,
        b2: float = 0.99,
        weight_decay: float = 0.0,
        device: str | None = None,
        fused: bool | None = None,
        weight_decay_mask: Mask = None,
    ) -> None:
        method = adaptive.lion(lr, b1, b2, weight_decay, weight_decay_mask, device)
        super().__init__(params, method=method)

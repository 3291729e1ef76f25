"""The optimizers by PyTorch's names, with its arguments in its order.

`foreach`, `fused`, `capturable` and `differentiable` choose kernels in PyTorch; they are accepted,
because the scheduler chooses here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.nn.optim import adaptive, further
from weft.nn.optim.method import Method, require_nonnegative
from weft.optim.optimizer import Optimizer, known_options
from weft.support.errors import ArgumentError

_CHOICES = ("foreach", "fused", "capturable", "differentiable")


def _rate(lr: Any) -> Any:
    if not hasattr(lr, "item"):
        require_nonnegative(lr=lr)
    return lr


def _options(group: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {each: group[each] for each in names}


class SGD(Optimizer):
    """Stochastic gradient descent with momentum."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **choices: Any,
    ) -> None:
        known_options("SGD", choices, _CHOICES)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ArgumentError(
                "SGD: nesterov with this momentum and dampening",
                rule="Nesterov's momentum needs a momentum above 0 and no dampening",
            )
        options = {
            "lr": _rate(lr),
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def method(self, options: Mapping[str, Any]) -> Method:
        names = ("momentum", "dampening", "weight_decay", "nesterov")
        return further.damped_sgd(**_options(options, *names))


class Adam(Optimizer):
    """Averages of gradients and of their squares."""

    _decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        **choices: Any,
    ) -> None:
        known_options(type(self).__name__, choices, _CHOICES)
        options = {
            "lr": _rate(lr),
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay or self._decoupled,
        }
        super().__init__(params, options)

    def method(self, options: Mapping[str, Any]) -> Method:
        own = _options(options, "betas", "eps", "weight_decay", "amsgrad")
        return further.adam_of_torch(**own, decoupled=options["decoupled_weight_decay"])


class AdamW(Adam):
    """Adam whose weight decay does not pass through the averages."""

    _decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **choices: Any,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, **choices
        )


class Adadelta(Optimizer):
    """Steps by the ratio of running squares."""

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **choices: Any,
    ) -> None:
        known_options("Adadelta", choices, _CHOICES)
        options = {
            "lr": _rate(lr),
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def method(self, options: Mapping[str, Any]) -> Method:
        return further.adadelta(**_options(options, "rho", "eps", "weight_decay"))


class Adagrad(Optimizer):
    """Steps divided by the root of all squares so far."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **choices: Any,
    ) -> None:
        known_options("Adagrad", choices, _CHOICES)
        options = {
            "lr": _rate(lr),
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def method(self, options: Mapping[str, Any]) -> Method:
        names = ("lr_decay", "weight_decay", "initial_accumulator_value", "eps")
        return adaptive.adagrad(**_options(options, *names))


class Adamax(Optimizer):
    """Adam by the greatest size of gradients."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **choices: Any,
    ) -> None:
        known_options("Adamax", choices, _CHOICES)
        options = {
            "lr": _rate(lr),
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def method(self, options: Mapping[str, Any]) -> Method:
        return further.adamax(**_options(options, "betas", "eps", "weight_decay"))


class NAdam(Optimizer):
    """Adam with Nesterov's momentum."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **choices: Any,
    ) -> None:
        known_options("NAdam", choices, _CHOICES)
        options = {
            "lr": _rate(lr),
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def method(self, options: Mapping[str, Any]) -> Method:
        own = _options(options, "betas", "eps", "weight_decay", "momentum_decay")
        return further.nadam(**own, decoupled=options["decoupled_weight_decay"])


class RAdam(Optimizer):
    """Adam whose early steps are corrected."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **choices: Any,
    ) -> None:
        known_options("RAdam", choices, _CHOICES)
        options = {
            "lr": _rate(lr),
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, options)

    def method(self, options: Mapping[str, Any]) -> Method:
        own = _options(options, "betas", "eps", "weight_decay")
        return further.radam(**own, decoupled=options["decoupled_weight_decay"])


class RMSprop(Optimizer):
    """Steps divided by a running root mean square."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **choices: Any,
    ) -> None:
        known_options("RMSprop", choices, _CHOICES)
        options = {
            "lr": _rate(lr),
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def method(self, options: Mapping[str, Any]) -> Method:
        names = ("alpha", "eps", "weight_decay", "momentum", "centered")
        return adaptive.rmsprop(**_options(options, *names))


class Rprop(Optimizer):
    """Steps of their own size for each element."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
        **choices: Any,
    ) -> None:
        known_options("Rprop", choices, _CHOICES)
        options = {
            "lr": _rate(lr),
            "etas": tuple(etas),
            "step_sizes": tuple(step_sizes),
            "maximize": maximize,
        }
        super().__init__(params, options)

    def method(self, options: Mapping[str, Any]) -> Method:
        return further.rprop(**_options(options, "etas", "step_sizes"))


class ASGD(Optimizer):
    """Descent with an average of the parameters beside it."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **choices: Any,
    ) -> None:
        known_options("ASGD", choices, _CHOICES)
        options = {
            "lr": _rate(lr),
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def method(self, options: Mapping[str, Any]) -> Method:
        return further.asgd(**_options(options, "lambd", "alpha", "t0", "weight_decay"))

"""Gradients with the names of torch.autograd: `grad`, `backward`, `no_grad`, `Function`."""

from weft.autograd import functional
from weft.autograd.anomalies import detect_anomaly, set_detect_anomaly
from weft.autograd.function import Function
from weft.autograd.grad import backward, grad
from weft.autograd.gradcheck import gradcheck, gradgradcheck
from weft.autograd.switches import Variable, set_multithreading_enabled
from weft.support.module_names import missing_name
from weft.tensor.autodiff.modes import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def __getattr__(name: str) -> object:
    return missing_name(__name__)(name)

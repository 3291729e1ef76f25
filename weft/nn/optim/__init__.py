"""Optimizers: pure methods, classes that write what they compute, and what goes with them."""

from weft.nn.optim.adaptive import adafactor, adagrad, adam, lamb, lion, rmsprop
from weft.nn.optim.average import EMA, Accumulation
from weft.nn.optim.clipping import clip_by_norm, clip_grad_norm_, clip_grad_value_, global_norm
from weft.nn.optim.descent import lars, muon, sgd
from weft.nn.optim.method import Method
from weft.nn.optim.optimizer import Optimizer, OptimizerGroup
from weft.nn.optim.optimizers import (
    LAMB,
    LARS,
    SGD,
    Adafactor,
    Adagrad,
    Adam,
    AdamW,
    Lion,
    Muon,
    RMSprop,
)
from weft.nn.optim.precision import MixedPrecision, cast_parameters, loss_scaling, master_weights
from weft.nn.optim.schedules import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiStepLR,
    OneCycleLR,
    ReduceLROnPlateau,
    Scheduler,
    StepLR,
    constant,
    cosine,
    exponential,
    linear,
    multi_step,
    one_cycle,
    step_decay,
    warmup_cosine,
)
from weft.support.module_names import missing_name

__all__ = [
    "EMA",
    "LAMB",
    "LARS",
    "SGD",
    "Accumulation",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "Lion",
    "Method",
    "MixedPrecision",
    "MultiStepLR",
    "Muon",
    "OneCycleLR",
    "Optimizer",
    "OptimizerGroup",
    "RMSprop",
    "ReduceLROnPlateau",
    "Scheduler",
    "StepLR",
    "adafactor",
    "adagrad",
    "adam",
    "cast_parameters",
    "clip_by_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "constant",
    "cosine",
    "exponential",
    "global_norm",
    "lamb",
    "lars",
    "linear",
    "lion",
    "loss_scaling",
    "master_weights",
    "multi_step",
    "muon",
    "one_cycle",
    "rmsprop",
    "sgd",
    "step_decay",
    "warmup_cosine",
]


def __getattr__(name: str) -> object:
    return missing_name(__name__)(name)

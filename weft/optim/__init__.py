"""Optimizers with parameter groups and schedules, with the names of torch.optim.

`weft.nn.optim` has the methods as pure functions, and optimizers for jitted steps.
"""

from weft.nn.optim import Adafactor, Lion, Muon
from weft.optim import lr_scheduler, swa_utils
from weft.optim.lbfgs import LBFGS
from weft.optim.optimizer import Optimizer
from weft.optim.optimizers import (
    ASGD,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    NAdam,
    RAdam,
    RMSprop,
    Rprop,
)
from weft.support.module_names import missing_name

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]


def __getattr__(name: str) -> object:
    return missing_name(__name__)(name)

"""What is done to parameters, gradients and sequences, with the names of torch.nn.utils."""

from weft.nn.utils import parametrizations, parametrize, rnn
from weft.nn.utils.gradients import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    get_total_norm,
    parameters_to_vector,
    vector_to_parameters,
)
from weft.nn.utils.parametrizations import (
    remove_spectral_norm,
    remove_weight_norm,
)
from weft.nn.utils.parametrizations import (
    spectral_norm_hook as spectral_norm,
)
from weft.nn.utils.parametrizations import (
    weight_norm_hook as weight_norm,
)
from weft.support.module_names import missing_name

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]


def __getattr__(name: str) -> object:
    return missing_name(__name__)(name)

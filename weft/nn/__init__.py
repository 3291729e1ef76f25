"""Layers, optimizers, data: what models are made of. Models are plain classes."""

from weft.nn import datasets, optim, state
from weft.nn.activation import (
    GELU,
    AvgPool2d,
    Dropout,
    Flatten,
    Identity,
    LeakyReLU,
    MaxPool2d,
    ReLU,
    Sequential,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
)
from weft.nn.attention import MultiHeadAttention, TransformerEncoderLayer
from weft.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d
from weft.nn.linear import Embedding, Linear
from weft.nn.loader import DataLoader
from weft.nn.normalization import (
    BatchNorm,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    LayerNorm2d,
    RMSNorm,
)
from weft.nn.recurrent import GRU, LSTM, GRUCell, LSTMCell

# What other frameworks have here, and what to write.
_ELSEWHERE = {
    "Module": "models are plain classes: leave the base class out; weft.nn.state walks attributes",
    "Parameter": "write self.weight = Tensor(...): a parameter is a tensor",
    "ModuleList": "write a Python list: weft.nn.state walks it",
    "ModuleDict": "write a Python dict: weft.nn.state walks it",
    "functional": "write methods: F.relu(x) is x.relu()",
    "init": "write Tensor.glorot_uniform(...), kaiming_uniform, normal or x.uniform_()",
    "utils": "write weft.nn.optim.clip_grad_norm_ for gradients",
    "CrossEntropyLoss": "write scores.cross_entropy(target)",
    "NLLLoss": "write log_probabilities.nll_loss(target)",
    "MSELoss": "write x.mse_loss(target)",
    "L1Loss": "write x.l1_loss(target)",
    "SmoothL1Loss": "write x.smooth_l1_loss(target)",
    "HuberLoss": "write x.huber_loss(target)",
    "KLDivLoss": "write log_probabilities.kl_div(target)",
    "BCELoss": "write p.binary_cross_entropy(target)",
    "BCEWithLogitsLoss": "write x.binary_cross_entropy_with_logits(target)",
    "LogSoftmax": "write x.log_softmax(axis)",
    "AdaptiveAvgPool2d": "write x.adaptive_avg_pool2d(size)",
    "Upsample": "write x.interpolate(scale_factor=...)",
    "BatchNorm1d": "write weft.nn.BatchNorm",
    "DataParallel": "write x.shard(devices, axis=0)",
}

__all__ = [
    "GELU",
    "GRU",
    "LSTM",
    "AvgPool2d",
    "BatchNorm",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "DataLoader",
    "Dropout",
    "Embedding",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "Identity",
    "InstanceNorm",
    "LSTMCell",
    "LayerNorm",
    "LayerNorm2d",
    "LeakyReLU",
    "Linear",
    "MaxPool2d",
    "MultiHeadAttention",
    "RMSNorm",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "TransformerEncoderLayer",
    "datasets",
    "optim",
    "state",
]


def __getattr__(name: str) -> object:
    from weft.support.errors import UnknownAttribute
    from weft.support.message import nearest

    guess = nearest(name, __all__)
    fix = _ELSEWHERE.get(name, f"write weft.nn.{guess}" if guess else "")
    raise UnknownAttribute(f"module 'weft.nn' has no attribute {name!r}", fix=fix)

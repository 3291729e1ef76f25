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

"""Recurrent cells and layers as functions of their weights, with the arguments of torch itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import nn
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


def _cell(kind: type, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any, **options: Any) -> Any:
    """A cell with these weights."""
    cell = kind(int(w_ih.shape[1]), int(w_hh.shape[1]), **options)
    _fill(cell, {"weight_ih": w_ih, "weight_hh": w_hh, "bias_ih": b_ih, "bias_hh": b_hh})
    return cell


def _fill(layer: Any, weights: dict[str, Any]) -> None:
    # Not as attributes are set: these are values of the caller, and no parameters of the layer.
    layer.__dict__.update(weights)


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of a long short-term memory. PyTorch: lstm_cell."""
    h, c = hx
    found: tuple[Tensor, Tensor] = _cell(nn.LSTMCell, w_ih, w_hh, b_ih, b_hh)(input, (h, c))
    return found


def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a gated recurrent unit. PyTorch: gru_cell."""
    found: Tensor = _cell(nn.GRUCell, w_ih, w_hh, b_ih, b_hh)(input, hx)
    return found


def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a plain recurrent layer. PyTorch: rnn_tanh_cell."""
    found: Tensor = _cell(nn.RNNCell, w_ih, w_hh, b_ih, b_hh)(input, hx)
    return found


def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a plain recurrent layer that rectifies. PyTorch: rnn_relu_cell."""
    cell = _cell(nn.RNNCell, w_ih, w_hh, b_ih, b_hh, nonlinearity="relu")
    found: Tensor = cell(input, hx)
    return found


def _layer(
    kind: type,
    input: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool = False,
    **options: Any,
) -> Any:
    """A layer with these weights: for each layer and direction two matrices and two biases."""
    ends = [f"l{layer}{way}" for layer in range(num_layers) for way in _ways(bidirectional)]
    names = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if has_biases else [])]
    wanted = [f"{name}_{end}" for end in ends for name in names]
    if len(params) != len(wanted):
        raise ArgumentError(
            f"{kind.__name__.lower()}: {len(params)} weights",
            rule=f"there are {len(wanted)}: {', '.join(wanted)}",
        )
    sizes = (int(params[0].shape[1]), int(params[1].shape[1]), num_layers)
    layer = kind(
        *sizes, bias=has_biases, batch_first=batch_first, dropout=dropout,
        bidirectional=bidirectional, **options,
    )  # fmt: skip
    _fill(layer, dict(zip(wanted, params, strict=True)))
    return layer.train(train)


def _ways(bidirectional: bool) -> tuple[str, ...]:
    return ("", "_reverse") if bidirectional else ("",)


def lstm(
    input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], *options: Any, **named: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Layers of long short-term memory: the outputs, h and c.

    The options are has_biases, num_layers, dropout, train, bidirectional and batch_first. PyTorch:
    lstm.
    """
    output, (h, c) = _layer(nn.LSTM, input, params, *options, **named)(input, tuple(hx))
    return output, h, c


def gru(
    input: Tensor, hx: Tensor, params: Sequence[Tensor], *options: Any, **named: Any
) -> tuple[Tensor, Tensor]:
    """Layers of gated recurrent units: the outputs and h. PyTorch: gru."""
    found: tuple[Tensor, Tensor] = _layer(nn.GRU, input, params, *options, **named)(input, hx)
    return found


def rnn_tanh(
    input: Tensor, hx: Tensor, params: Sequence[Tensor], *options: Any, **named: Any
) -> tuple[Tensor, Tensor]:
    """Layers of plain recurrent units: the outputs and h. PyTorch: rnn_tanh."""
    found: tuple[Tensor, Tensor] = _layer(nn.RNN, input, params, *options, **named)(input, hx)
    return found


def rnn_relu(
    input: Tensor, hx: Tensor, params: Sequence[Tensor], *options: Any, **named: Any
) -> tuple[Tensor, Tensor]:
    """Layers of plain recurrent units that rectify: the outputs and h. PyTorch: rnn_relu."""
    layer = _layer(nn.RNN, input, params, *options, nonlinearity="relu", **named)
    found: tuple[Tensor, Tensor] = layer(input, hx)
    return found

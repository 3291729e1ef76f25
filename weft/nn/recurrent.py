"""Recurrent layers: cells for one step, and LSTM, GRU and RNN over sequences.

Names, orders of gates and first values are PyTorch's: everything is drawn between ±1/√hidden_size.
The products with the input are one product for all steps; what is left of each step is calls that
are scheduled and compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from weft.nn.arguments import also_named
from weft.nn.initial import require_positive, uniform
from weft.nn.module import Layer
from weft.nn.utils.rnn import PackedSequence, pack_padded_like, pad_packed_sequence
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor
from weft.tensor.trace.function import function

Cell = Callable[..., Any]


# A step is two calls, each scheduled and compiled once for all steps: the product, whose gradient
# needs none of its values, and the rest, whose gradient computes gates again but no product.


@function
def _of_hidden(h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The part of the gates that the hidden value has."""
    return h.linear(weight.transpose(), bias)


@function
def _gates_of(gates: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """All of the gates, where `gates` holds the part of the input."""
    return gates + h.linear(weight.transpose(), bias)


def _cut(gates: Tensor, count: int) -> list[Tensor]:
    """The gates one by one; each of their gradients is computed once, and then put together."""
    return [part.contiguous_backward() for part in gates.chunk(count, -1)]


@function
def _lstm_states(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The next (h, c)."""
    keep_in, keep, new, out = _cut(gates, 4)  # PyTorch's i, f, g, o
    c = keep.sigmoid() * c + keep_in.sigmoid() * new.tanh()
    return out.sigmoid() * c.tanh(), c


@function
def _gru_state(gates: Tensor, of_hidden: Tensor, h: Tensor) -> Tensor:
    """The next h, where `gates` holds the part of the input."""
    reset, update, new = _cut(gates, 3)  # PyTorch's r, z, n
    h_reset, h_update, h_new = _cut(of_hidden, 3)
    candidate = (new + (reset + h_reset).sigmoid() * h_new).tanh()
    keep = (update + h_update).sigmoid()
    return (1 - keep) * candidate + keep * h


def _lstm_step(
    gates: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The next (h, c), where `gates` holds the part of the input."""
    states: tuple[Tensor, Tensor] = _lstm_states(_gates_of(gates, h, weight, bias), c)
    return states


def _gru_step(gates: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The next h, where `gates` holds the part of the input."""
    state: Tensor = _gru_state(gates, _of_hidden(h, weight, bias), h)
    return state


@function
def _tanh_state(gates: Tensor) -> Tensor:
    return gates.tanh()


@function
def _relu_state(gates: Tensor) -> Tensor:
    return gates.relu()


def _tanh_step(gates: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The next h of a plain cell."""
    state: Tensor = _tanh_state(_gates_of(gates, h, weight, bias))
    return state


def _relu_step(gates: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The next h of a plain cell that rectifies."""
    state: Tensor = _relu_state(_gates_of(gates, h, weight, bias))
    return state


_PLAIN_STEPS = {"tanh": _tanh_step, "relu": _relu_step}


def _require_nonlinearity(layer: str, name: str) -> str:
    if name not in _PLAIN_STEPS:
        raise ArgumentError(f"{layer}: nonlinearity is {name!r}", rule='it is "tanh" or "relu"')
    return name


def _require_input(layer: str, x: Tensor, features: int, ranks: tuple[int, ...]) -> None:
    if x.ndim not in ranks or x.shape[-1] != features:
        raise ShapeError(
            f"{layer}: an input of shape {x.shape} for {features} features",
            rule=f"the input has {' or '.join(map(str, ranks))} axes, the last of input_size",
        )


class _Cell(Layer):
    """The weights of one step: (gates · hidden, input) and (gates · hidden, hidden)."""

    gates: ClassVar[int] = 1

    @also_named()
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        require_positive(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size = input_size, hidden_size
        rows = self.gates * hidden_size
        self.weight_ih = uniform((rows, input_size), hidden_size)
        self.weight_hh = uniform((rows, hidden_size), hidden_size)
        self.bias_ih = uniform((rows,), hidden_size) if bias else None
        self.bias_hh = uniform((rows,), hidden_size) if bias else None

    def _of_input(self, x: Tensor) -> Tensor:
        _require_input(type(self).__name__, x, self.input_size, (1, 2))
        return x.linear(self.weight_ih.transpose(), self.bias_ih)

    def _zeros(self, x: Tensor) -> Tensor:
        shape = (*x.shape[:-1], self.hidden_size)
        return Tensor.zeros(*shape, dtype=x.dtype, device=x.device, requires_grad=False)


class LSTMCell(_Cell):
    """One step of a long short-term memory: (x, (h, c)) to (h', c').

    i, f, g, o = gates of x W_ihᵀ + b_ih + h W_hhᵀ + b_hh; c' = σ(f) c + σ(i) tanh(g);
    h' = σ(o) tanh(c').

    >>> h, c = LSTMCell(3, 5)(Tensor.ones(2, 3))
    >>> h.shape, c.shape
    ((2, 5), (2, 5))
    """

    gates = 4

    def forward(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        gates = self._of_input(x)
        h, c = (self._zeros(x), self._zeros(x)) if hc is None else hc
        return _lstm_step(gates, h, c, self.weight_hh, self.bias_hh)


class GRUCell(_Cell):
    """One step of a gated recurrent unit: (x, h) to h'.

    r, z, n = gates; candidate = tanh(n_x + σ(r) n_h); h' = (1 - σ(z)) candidate + σ(z) h.

    >>> GRUCell(3, 5)(Tensor.ones(2, 3)).shape
    (2, 5)
    """

    gates = 3

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        gates = self._of_input(x)
        h = self._zeros(x) if h is None else h
        return _gru_step(gates, h, self.weight_hh, self.bias_hh)


class RNNCell(_Cell):
    """One step of a plain recurrent layer: tanh (or relu) of x W_ihᵀ + b_ih + h W_hhᵀ + b_hh.

    >>> RNNCell(3, 5)(Tensor.ones(2, 3)).shape
    (2, 5)
    """

    @also_named()
    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh"
    ) -> None:
        self.nonlinearity = _require_nonlinearity("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias)

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        gates = self._of_input(x)
        h = self._zeros(x) if h is None else h
        step: Any = _PLAIN_STEPS[self.nonlinearity]
        return step(gates, h, self.weight_hh, self.bias_hh)  # type: ignore[no-any-return]


class _Recurrent(Layer):
    """Layers of cells over a sequence, in one direction or both."""

    _mode: bool | None = True

    gates: ClassVar[int] = 1
    _alive: Tensor | None = None  # which rows of a packed sequence are there, at each step

    @also_named()
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
    ) -> None:
        name = type(self).__name__
        require_positive(
            name, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers
        )
        if not 0 <= dropout <= 1:
            raise ArgumentError(f"{name}: dropout is {dropout}", rule="dropout is from 0 to 1")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        self.has_bias = bias
        rows = self.gates * hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * len(self._directions())
            for direction in self._directions():
                end = f"l{layer}{direction}"
                setattr(self, f"weight_ih_{end}", uniform((rows, width), hidden_size))
                setattr(self, f"weight_hh_{end}", uniform((rows, hidden_size), hidden_size))
                if bias:
                    setattr(self, f"bias_ih_{end}", uniform((rows,), hidden_size))
                    setattr(self, f"bias_hh_{end}", uniform((rows,), hidden_size))

    def _directions(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def _weights(self, end: str) -> tuple[Any, Any, Any, Any]:
        """The input's and the hidden value's weight and bias of a layer and direction."""
        biases = [getattr(self, f"bias_{of}_{end}", None) for of in ("ih", "hh")]
        weight_ih, weight_hh = (getattr(self, f"weight_{of}_{end}") for of in ("ih", "hh"))
        return weight_ih, biases[0], weight_hh, biases[1]

    def __call__(self, input: Any, hx: Any = None) -> Any:
        """Run over a sequence, or over a `PackedSequence`, whose rows end one by one."""
        if not isinstance(input, PackedSequence):
            return super().__call__(input, hx)
        x, lengths = pad_packed_sequence(input, batch_first=self.batch_first)
        steps = Tensor.arange(known(x.shape[1 if self.batch_first else 0]), device=x.device)
        self.__dict__["_alive"] = steps.unsqueeze(1) < lengths.to(x.device)  # (time, batch)
        try:
            output, last = super().__call__(x, hx)
        finally:
            self.__dict__["_alive"] = None
        return pack_padded_like(output, input, self.batch_first), last

    def _run(self, x: Tensor, first: list[list[Tensor]]) -> tuple[Tensor, list[list[Tensor]]]:
        """Outputs (time, batch, …) and the last states of each layer and direction.

        `first` has, for each layer and direction, the states before the first step.
        """
        last: list[list[Tensor]] = []
        for layer in range(self.num_layers):
            if layer:
                x = x.dropout(self.dropout)
            sides = []
            for direction in self._directions():
                states = first[len(last)]
                outputs, states = self._pass(x, states, f"l{layer}{direction}", bool(direction))
                sides.append(outputs)
                last.append(states)
            x = sides[0] if len(sides) == 1 else sides[0].cat(sides[1], dim=-1)
        return x, last

    def _pass(
        self, x: Tensor, states: list[Tensor], end: str, is_reversed: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """One layer in one direction."""
        weight_ih, bias_ih, weight_hh, bias_hh = self._weights(end)
        gates = x.linear(weight_ih.transpose(), bias_ih)  # (time, batch, gates)
        steps = range(known(x.shape[0]))
        outputs: list[Tensor] = []
        for step in reversed(steps) if is_reversed else steps:
            after = self._step(gates[step], states, weight_hh, bias_hh)
            if self._alive is not None:  # a row that ended, or did not begin, keeps its state
                alive = self._alive[step].unsqueeze(-1)
                after = [alive.where(new, old) for new, old in zip(after, states, strict=True)]
            states = after
            outputs.append(states[0])
        ordered = outputs[::-1] if is_reversed else outputs
        return ordered[0].stack(*ordered[1:]), states

    def _step(
        self, gates: Tensor, states: list[Tensor], weight: Tensor, bias: Tensor | None
    ) -> list[Tensor]:
        raise NotImplementedError

    def _sequence(self, x: Tensor) -> Tensor:
        """The input as (time, batch, features)."""
        _require_input(type(self).__name__, x, self.input_size, (2, 3))
        if x.ndim == 2:
            x = x.unsqueeze(1)
        elif self.batch_first:
            x = x.transpose(0, 1)
        if not known(x.shape[0]):
            raise ShapeError(f"{type(self).__name__}: a sequence without steps")
        return x

    def _unfold(self, given: Tensor | None, x: Tensor, rank: int) -> list[Tensor]:
        """The first state of each layer and direction; zeros unless given."""
        count = self.num_layers * len(self._directions())
        shape = (count, known(x.shape[1]), self.hidden_size)
        if given is None:
            zeros = Tensor.zeros(*shape[1:], dtype=x.dtype, device=x.device, requires_grad=False)
            return [zeros] * count
        given = given.unsqueeze(1) if rank == 2 else given
        if given.shape != shape:
            raise ShapeError(
                f"{type(self).__name__}: a first state of shape {given.shape}",
                rule=f"it is (layers * directions, batch, hidden_size), here {shape}",
            )
        return [given[number] for number in range(count)]

    def _folded(self, output: Tensor, last: list[Tensor], rank: int) -> tuple[Tensor, Tensor]:
        """Output and last states in the layout of the input."""
        states = last[0].stack(*last[1:])
        if rank == 2:
            return output.squeeze(1), states.squeeze(1)
        return output.transpose(0, 1) if self.batch_first else output, states


class LSTM(_Recurrent):
    """Layers of long short-term memory over a sequence (time, batch, input_size).

    Returns the outputs of the last layer and (h, c) after the last step, each (layers ·
    directions, batch, hidden_size). With `batch_first` sequences are (batch, time, …).

    >>> outputs, (h, c) = LSTM(3, 5, num_layers=2)(Tensor.ones(4, 2, 3))
    >>> outputs.shape, h.shape, c.shape
    ((4, 2, 5), (2, 2, 5), (2, 2, 5))
    """

    gates = 4

    def forward(
        self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        rank, x = x.ndim, self._sequence(x)
        given = (None, None) if hc is None else hc
        pairs = zip(*(self._unfold(each, x, rank) for each in given), strict=True)
        output, last = self._run(x, [list(pair) for pair in pairs])
        made, h = self._folded(output, [states[0] for states in last], rank)
        return made, (h, self._folded(output, [states[1] for states in last], rank)[1])

    def _step(
        self, gates: Tensor, states: list[Tensor], weight: Tensor, bias: Tensor | None
    ) -> list[Tensor]:
        return list(_lstm_step(gates, states[0], states[1], weight, bias))


class GRU(_Recurrent):
    """Layers of gated recurrent units over a sequence (time, batch, input_size).

    Returns the outputs of the last layer and h after the last step.

    >>> outputs, h = GRU(3, 5, bidirectional=True)(Tensor.ones(4, 2, 3))
    >>> outputs.shape, h.shape
    ((4, 2, 10), (2, 2, 5))
    """

    gates = 3

    def forward(self, x: Tensor, h: Tensor | None = None) -> tuple[Tensor, Tensor]:
        rank, x = x.ndim, self._sequence(x)
        output, last = self._run(x, [[each] for each in self._unfold(h, x, rank)])
        return self._folded(output, [states[0] for states in last], rank)

    def _step(
        self, gates: Tensor, states: list[Tensor], weight: Tensor, bias: Tensor | None
    ) -> list[Tensor]:
        return [_gru_step(gates, states[0], weight, bias)]


class RNN(_Recurrent):
    """Layers of plain recurrent units over a sequence (time, batch, input_size).

    Returns the outputs of the last layer and h after the last step.

    >>> outputs, h = RNN(3, 5, nonlinearity="relu")(Tensor.ones(4, 2, 3))
    >>> outputs.shape, h.shape
    ((4, 2, 5), (1, 2, 5))
    """

    @also_named()
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
    ) -> None:
        self.nonlinearity = _require_nonlinearity("RNN", nonlinearity)
        sizes = (input_size, hidden_size, num_layers)
        super().__init__(*sizes, bias, batch_first, dropout, bidirectional)

    def forward(self, x: Tensor, h: Tensor | None = None) -> tuple[Tensor, Tensor]:
        rank, x = x.ndim, self._sequence(x)
        output, last = self._run(x, [[each] for each in self._unfold(h, x, rank)])
        return self._folded(output, [states[0] for states in last], rank)

    def _step(
        self, gates: Tensor, states: list[Tensor], weight: Tensor, bias: Tensor | None
    ) -> list[Tensor]:
        step: Any = _PLAIN_STEPS[self.nonlinearity]
        return [step(gates, states[0], weight, bias)]


# What isinstance asks for, by PyTorch's names.
RNNBase, RNNCellBase = _Recurrent, _Cell

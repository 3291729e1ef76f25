"""RNN, GRU and LSTM: one direction or two, with lengths, peepholes and clipping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ir.dtypes import dtypes
from weft.onnx.table import op
from weft.tensor.tensor import Tensor
from weft.tensor.trace.user_scans import scan

Activation = Callable[[Tensor], Tensor]


def _activation(call: Any, name: str, alpha: float | None, beta: float | None) -> Activation:
    def use(number: float | None, default: float) -> float:
        return default if number is None else number

    table: dict[str, Activation] = {
        "tanh": lambda x: x.tanh(),
        "sigmoid": lambda x: x.sigmoid(),
        "relu": lambda x: x.relu(),
        "softsign": lambda x: x.softsign(),
        "softplus": lambda x: x.softplus(),
        "elu": lambda x: x.elu(use(alpha, 1.0)),
        "leakyrelu": lambda x: (x < 0).where(x * use(alpha, 0.01), x),
        "thresholdedrelu": lambda x: (x > use(alpha, 1.0)).where(x, 0),
        "hardsigmoid": lambda x: (x * use(alpha, 0.2) + use(beta, 0.5)).clamp(0, 1),
        "scaledtanh": lambda x: use(alpha, 1.0) * (use(beta, 1.0) * x).tanh(),
        "affine": lambda x: use(alpha, 1.0) * x + use(beta, 0.0),
    }
    if name.lower() not in table:
        raise call.error(f"activation {name!r}", "activations are " + ", ".join(table))
    return table[name.lower()]


def _activations(call: Any, defaults: tuple[str, ...], directions: int) -> list[list[Activation]]:
    """The activations of each direction."""
    names = call.get("activations") or list(defaults) * directions
    alphas, betas = list(call.get("activation_alpha", [])), list(call.get("activation_beta", []))
    made = []
    for number, name in enumerate(names):
        alpha = alphas[number] if number < len(alphas) else None
        beta = betas[number] if number < len(betas) else None
        made.append(_activation(call, name, alpha, beta))
    count = len(defaults)
    return [made[at : at + count] for at in range(0, count * directions, count)]


# What a value is times one of the matrices of a direction.
Product = Callable[[Tensor, Any], Tensor]


class _Layer:
    """One direction: weights, state, and the functions that a step takes."""

    def __init__(self, call: Any, functions: list[Activation], product: Product) -> None:
        self.functions, self.product = functions, product
        self.limit = call.get("clip")
        self.is_after_product = bool(call.get("linear_before_reset", 0))
        self.is_coupled = bool(call.get("input_forget", 0))

    def clipped(self, x: Tensor) -> Tensor:
        return x if self.limit is None else x.clamp(-self.limit, self.limit)


def _rnn_step(layer: _Layer, part: Tensor, h: Tensor, c: Any, r: Tensor, rb: Any, p: Any) -> Any:
    (activation,) = layer.functions
    return activation(layer.clipped(part + h.matmul(r.transpose(0, 1)) + rb)), c


def _gru_step(layer: _Layer, part: Tensor, h: Tensor, c: Any, r: Tensor, rb: Any, p: Any) -> Any:
    f, g = layer.functions
    part_z, part_r, part_h = part.chunk(3, -1)
    r_z, r_r, r_h = r.chunk(3, 0)
    b_z, b_r, b_h = rb.chunk(3, -1)
    update = f(layer.clipped(part_z + h.matmul(r_z.transpose(0, 1)) + b_z))
    reset = f(layer.clipped(part_r + h.matmul(r_r.transpose(0, 1)) + b_r))
    if layer.is_after_product:
        inner = reset * (h.matmul(r_h.transpose(0, 1)) + b_h)
    else:
        inner = (reset * h).matmul(r_h.transpose(0, 1)) + b_h
    candidate = g(layer.clipped(part_h + inner))
    return (1 - update) * candidate + update * h, c


def _lstm_step(layer: _Layer, part: Tensor, h: Tensor, c: Tensor, r: Any, rb: Any, p: Any) -> Any:
    f, g, last = layer.functions
    gates = part + layer.product(h, r) + rb
    i, o, forget, cell = gates.chunk(4, -1)
    p_i, p_o, p_f = p.chunk(3, -1) if p is not None else (0, 0, 0)
    i = f(layer.clipped(i + p_i * c))
    forget = 1 - i if layer.is_coupled else f(layer.clipped(forget + p_f * c))
    c = forget * c + i * g(layer.clipped(cell))
    o = f(layer.clipped(o + p_o * c))
    return o * last(c), c


_STEPS = {
    "RNN": (1, ("Tanh",), _rnn_step),
    "GRU": (3, ("Sigmoid", "Tanh"), _gru_step),
    "LSTM": (4, ("Sigmoid", "Tanh", "Tanh"), _lstm_step),
}


def _times_transposed(x: Tensor, matrix: Tensor) -> Tensor:
    return x.matmul(matrix.transpose(0, 1))


@op("RNN", "GRU", "LSTM")
def recurrent(
    call: Any,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    first_h: Tensor | None = None,
    first_c: Tensor | None = None,
    peepholes: Tensor | None = None,
) -> Any:
    """All steps of all directions: Y, Y_h and, of an LSTM, Y_c."""
    matrices = [(w[number], r[number]) for number in range(w.shape[0])]
    rest = (b, lengths, first_h, first_c, peepholes)
    return steps_of(call, call.node.op, x, matrices, r.shape[-1], _times_transposed, *rest)


def steps_of(
    call: Any,
    kind: str,
    x: Tensor,
    matrices: list[tuple[Any, Any]],
    hidden: int,
    product: Product,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    first_h: Tensor | None = None,
    first_c: Tensor | None = None,
    peepholes: Tensor | None = None,
) -> Any:
    """The same, with the matrices of each direction and how they are multiplied."""
    gates, defaults, step = _STEPS[kind]
    is_batch_first = bool(call.get("layout", 0))
    if is_batch_first:
        x = x.transpose(0, 1)
        first_h = None if first_h is None else first_h.transpose(0, 1)
        first_c = None if first_c is None else first_c.transpose(0, 1)
    batch = x.shape[1]
    functions = _activations(call, defaults, len(matrices))
    results = []
    for number, (into, back) in enumerate(matrices):
        is_reverse = call.get("direction", "forward") == "reverse" or number == 1
        zeros = Tensor.zeros(batch, hidden, dtype=x.dtype, device=x.device)
        state = (
            zeros if first_h is None else first_h[number],
            zeros if first_c is None else first_c[number],
        )
        bias = None if b is None else b[number]
        split = gates * hidden
        part = product(x, into)  # one product for all steps
        part = part if bias is None else part + bias[:split]
        after = (
            Tensor.zeros(split, dtype=x.dtype, device=x.device) if bias is None else bias[split:]
        )
        layer = _Layer(call, functions[number], product)
        peep = None if peepholes is None else peepholes[number]

        def one(part: Any, h: Any, c: Any, layer: Any = layer, back: Any = back, a: Any = after,
                peep: Any = peep) -> Any:  # fmt: skip
            return step(layer, part, h, c, back, a, peep)

        results.append(_steps(one, part, state, lengths, is_reverse))
    y = Tensor.stack(*[each[0] for each in results], dim=1)  # (time, directions, batch, hidden)
    h = Tensor.stack(*[each[1] for each in results])
    c = Tensor.stack(*[each[2] for each in results])
    if is_batch_first:
        y, h, c = y.permute(2, 0, 1, 3), h.transpose(0, 1), c.transpose(0, 1)
    return (y, h, c) if kind == "LSTM" else (y, h)


def _steps(
    step: Callable[..., Any],
    part: Tensor,
    state: tuple[Tensor, Tensor],
    lengths: Tensor | None,
    is_reverse: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Step after step; a sequence that is over keeps its state and gives zeros."""
    count = part.shape[0]
    ends = None if lengths is None else lengths.cast(dtypes.int64).reshape(1, -1, 1)
    times = Tensor.arange(count, dtype=dtypes.int64, device=part.device).reshape(count, 1, 1)
    flags = None if ends is None else times < ends  # (time, batch, 1)

    def one(carry: Any, row: Any) -> Any:
        now, is_on = row if flags is not None else (row, None)
        h, c = carry
        new_h, new_c = step(now, h, c)
        if is_on is None:
            return (new_h, new_c), new_h
        y = is_on.where(new_h, 0).cast(h.dtype)
        return (is_on.where(new_h, h), is_on.where(new_c, c)), y

    rows = part if flags is None else (part, flags)
    (h, c), y = scan(one, state, rows, reverse=is_reverse)
    return y, h, c

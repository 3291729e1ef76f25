"""Attention beside the fastest of torch's back ends on the same GPU: rows of `device_kernels`.

`scaled_dot_product_attention` forward and backward, in bfloat16. Operations are those of the
products that a mask does not leave out: two of them forward, five backward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bench.device_kernels import Kernel, torch_seconds
from weft import Tensor

BACK_ENDS = ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION")


class Shape(NamedTuple):
    """Sequences, heads, heads of keys, queries, keys, the size of a head; which keys are seen."""

    batch: int
    heads: int
    groups: int
    queries: int
    keys: int
    size: int
    is_causal: bool = True
    window: int = 0

    def __str__(self) -> str:
        seen = f"window {self.window}" if self.window else "causal" if self.is_causal else "full"
        shared = f" of {self.groups}" if self.groups != self.heads else ""
        lengths = f"{self.queries}" if self.queries == self.keys else f"{self.queries}x{self.keys}"
        return f"{self.batch}x{self.heads}{shared}x{lengths}x{self.size} {seen}"

    @property
    def pairs(self) -> float:
        """Pairs of a query and a key that are seen."""
        per_row = self.window or (self.keys / 2 if self.is_causal else self.keys)
        return self.batch * self.heads * self.queries * per_row


SHAPES = (
    Shape(4, 32, 32, 2048, 2048, 128),
    Shape(4, 32, 32, 2048, 2048, 64),
    Shape(4, 32, 32, 2048, 2048, 128, is_causal=False),
    Shape(4, 32, 32, 2048, 2048, 64, is_causal=False),
    Shape(8, 12, 12, 1024, 1024, 64),
    Shape(1, 32, 32, 8192, 8192, 128),
    Shape(4, 32, 8, 2048, 2048, 128),
    Shape(1, 32, 32, 8192, 8192, 128, window=1024),
)
GRADIENTS = SHAPES[:2] + SHAPES[4:5] + SHAPES[6:7]
DECODES = (Shape(32, 32, 8, 1, 8192, 128, is_causal=False),)


def attentions(torch: Any) -> Iterator[Kernel]:
    """Attention of each shape, its gradients, and one query against a long cache."""
    for shape in SHAPES:
        yield _forward(torch, shape)
    for shape in DECODES:
        yield _decode(torch, shape)
    for shape in GRADIENTS:
        yield _backward(torch, shape)


def _drawn(torch: Any, shape: Shape) -> list[Any]:
    def draw(heads: int, rows: int) -> Any:
        return torch.randn(shape.batch, heads, rows, shape.size, device="cuda").bfloat16()

    keys = (draw(shape.groups, shape.keys) for _ in range(2))
    return [draw(shape.heads, shape.queries), *keys]


def _options(shape: Shape) -> dict[str, Any]:
    return {"is_causal": shape.is_causal} | (
        {"enable_gqa": True} if shape.groups != shape.heads else {}
    )


def _ours(shape: Shape) -> Callable[..., Any]:
    def run(q: Any, k: Any, v: Any) -> Any:
        if not shape.window:
            return q.scaled_dot_product_attention(k, v, **_options(shape))
        row, column = Tensor.arange(shape.queries).reshape((-1, 1)), Tensor.arange(shape.keys)
        seen = (column <= row) & (column > row - shape.window)
        return q.scaled_dot_product_attention(k, v, attn_mask=seen)

    return run


def _fastest(torch: Any, run: Callable[[], Any]) -> tuple[str, Any]:
    """The back end that takes the least time, of those that can."""
    attention = torch.nn.attention
    found: dict[str, float] = {}
    for name in BACK_ENDS:
        try:
            with attention.sdpa_kernel(getattr(attention.SDPBackend, name)):
                found[name] = torch_seconds(run)
        except RuntimeError:  # it does not take this shape
            continue
    best = min(found, key=found.__getitem__)
    return best, getattr(attention.SDPBackend, best)


def _theirs(torch: Any, shape: Shape) -> Callable[..., Any]:
    options = _options(shape)
    if shape.window:
        row = torch.arange(shape.queries, device="cuda").reshape(-1, 1)
        column = torch.arange(shape.keys, device="cuda")
        options = {"attn_mask": (column <= row) & (column > row - shape.window)}

    def run(q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)

    return run


def _forward(torch: Any, shape: Shape) -> Kernel:
    inputs = _drawn(torch, shape)
    run = _theirs(torch, shape)
    name, backend = _fastest(torch, lambda: run(*inputs))

    def theirs(*inputs: Any) -> Any:
        with torch.nn.attention.sdpa_kernel(backend):
            return run(*inputs)

    about = f"attention {shape} ({name.split('_')[0].lower()})"
    return Kernel(about, inputs, _ours(shape), theirs, 0, int(4 * shape.pairs * shape.size))


def _decode(torch: Any, shape: Shape) -> Kernel:
    inputs = _drawn(torch, shape)
    run = _theirs(torch, shape)
    moved = sum(2 * each.numel() for each in inputs[1:])
    return Kernel(f"decode {shape}", inputs, _ours(shape), run, moved)


def _backward(torch: Any, shape: Shape) -> Kernel:
    """Forward and all three gradients, in one call on both sides."""
    inputs = _drawn(torch, shape)
    slope = torch.randn_like(inputs[0])
    run, forward = _ours(shape), _theirs(torch, shape)

    def ours(slope: Any, *inputs: Any) -> Any:
        out = run(*inputs)
        return (out, *out.gradient(*inputs, gradient=slope))

    def call(slope: Any, *inputs: Any) -> Any:
        leaves = [each.detach().requires_grad_() for each in inputs]
        out = forward(*leaves)
        return (out.detach(), *torch.autograd.grad(out, leaves, slope))

    name, backend = _fastest(torch, lambda: call(slope, *inputs))

    def theirs(*inputs: Any) -> Any:
        with torch.nn.attention.sdpa_kernel(backend):
            return call(*inputs)

    about = f"attention and gradients {shape} ({name.split('_')[0].lower()})"
    work = int(14 * shape.pairs * shape.size)
    return Kernel(about, [slope, *inputs], ours, theirs, 0, work)

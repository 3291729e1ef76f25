"""What the lines of a deep program call: the same functions over Weft and over PyTorch.

`fuzz.deep_programs` runs a program with a `WeftLibrary` in the ways that are tested, and with the
oracle: a `TorchLibrary` in float64, or without PyTorch the interpreter in float64.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.tensor import Tensor

HAS_TORCH: Final = importlib.util.find_spec("torch") is not None
Value = Any  # a tensor of the library
Shape = tuple[int, ...]


def drawn(shape: Shape, seed: int) -> Any:
    """Random numbers that float32 holds, so that all dtypes of leaves begin with the same."""
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def ramp(shape: Shape) -> Any:
    """Numbers far apart, which keep a greatest element the greatest however sums are rounded."""
    count = int(np.prod(shape))
    return (np.sin(np.arange(count) * 2.4) * 2).astype("float32").reshape(shape)


def positions(shape: Shape, seed: int, limit: int) -> Any:
    return np.random.default_rng(seed).integers(0, limit, shape)


class Library:
    """The functions whose lines read alike for both; `dtype` is that of the leaves."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def constant(self, array: Any) -> Value:
        raise NotImplementedError

    def ramp(self, x: Value) -> Value:
        return self.constant(ramp(tuple(x.shape)))

    def mask(self, shape: Shape, seed: int) -> Value:
        """A condition that index arithmetic decides, or one that was read."""
        if seed % 2 or len(shape) < 2:
            return self.constant(drawn(shape, seed)) > 0.25
        return self.constant(np.ones(shape[-2:], "float32")).tril(seed % 5 - 2) > 0.5

    def spread(self, x: Value) -> Value:
        """Numbers between 1 and 2, near which quotients and roots are harmless."""
        return x.sigmoid() + 1

    def root(self, x: Value) -> Value:
        return (x * x + 1).sqrt()

    def logarithm(self, x: Value) -> Value:
        return (x * x + 1).log()

    def power(self, x: Value) -> Value:
        return x.tanh().exp()

    def rms_norm(self, x: Value, axis: int) -> Value:
        return x / ((x * x).mean(axis, keepdim=True) + 0.1).sqrt()

    def norm(self, x: Value, axis: int, keepdim: bool) -> Value:
        return ((x * x).sum(axis, keepdim=keepdim) + 0.1).sqrt()

    def product(self, x: Value, axis: int, keepdim: bool) -> Value:
        return (x.tanh() + 1.25).prod(axis, keepdim=keepdim)

    def count(self, x: Value, axis: int, keepdim: bool) -> Value:
        return self.float((x > 0.1).sum(axis, keepdim=keepdim)) * 0.25

    def amax(self, x: Value, axis: int, keepdim: bool) -> Value:
        return (x + self.ramp(x)).amax(axis, keepdim=keepdim)

    def amin(self, x: Value, axis: int, keepdim: bool) -> Value:
        return (x + self.ramp(x)).amin(axis, keepdim=keepdim)

    def greatest(self, x: Value, y: Value, axis: int) -> Value:
        """The elements of one tensor where another has its greatest ones."""
        return y.take_along_dim((x + self.ramp(x)).argmax(axis, keepdim=True), axis)

    def cummax(self, x: Value, axis: int) -> Value:
        return (x + self.ramp(x)).cummax(axis)[0]

    def top(self, x: Value, count: int, axis: int) -> Value:
        return (x + self.ramp(x)).topk(count, axis)[0]

    def sort(self, x: Value, axis: int) -> Value:
        return (x + self.ramp(x)).sort(axis)[0]

    def layer_norm(self, x: Value, axis: int) -> Value:
        centered = x - x.mean(axis, keepdim=True)
        return centered / (x.var(axis, correction=0, keepdim=True) + 0.1).sqrt()

    def loss(self, x: Value, seed: int) -> Value:
        return (x * self.constant(drawn(tuple(x.shape), seed))).sum()

    def float(self, x: Value) -> Value:
        raise NotImplementedError

    def pick(self, x: Value, shape: Shape, seed: int) -> Value:
        """Rows of a tensor, named by an index tensor."""
        return x[self.indices(positions(shape, seed, x.shape[0]))]

    def take(self, x: Value, axis: int, size: int, seed: int) -> Value:
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        index = self.indices(positions(shape, seed, x.shape[axis]))
        return x.gather(axis, index)

    def scatter(self, x: Value, source: Value, axis: int, seed: int) -> Value:
        index = self.indices(positions(tuple(source.shape), seed, x.shape[axis]))
        return x.scatter_add(axis, index, source)

    def indices(self, array: Any) -> Value:
        raise NotImplementedError


class WeftLibrary(Library):
    """The functions over Weft."""

    def leaf(self, shape: Shape, seed: int) -> Value:
        return Tensor(drawn(shape, seed).tolist(), dtype=self.dtype, requires_grad=True)

    def constant(self, array: Any) -> Value:
        return Tensor(array.tolist(), dtype=self.dtype)

    def indices(self, array: Any) -> Value:
        return Tensor(array.tolist(), dtype="int32")

    def float(self, x: Value) -> Value:
        return x.cast(self.dtype)

    def rounded(self, x: Value, dtype: str) -> Value:
        return x.cast(dtype).cast(self.dtype)

    def cat(self, axis: int, *parts: Value) -> Value:
        return Tensor.cat(*parts, dim=axis)

    def stack(self, axis: int, *parts: Value) -> Value:
        return Tensor.stack(*parts, dim=axis)

    def pad(self, x: Value, pads: Sequence[tuple[int, int]]) -> Value:
        return x.pad(pads)

    def where(self, condition: Value, x: Value, y: Value) -> Value:
        return condition.where(x, y)

    def einsum(self, formula: str, *parts: Value) -> Value:
        return Tensor.einsum(formula, *parts)

    def attention(self, q: Value, k: Value, v: Value, bias: Value | None) -> Value:
        return q.scaled_dot_product_attention(k, v, attn_mask=bias)

    def conv(self, x: Value, weight: Value, groups: int, padding: int, stride: int) -> Value:
        return x.conv2d(weight, groups=groups, padding=padding, stride=stride)

    def max_pool(self, x: Value, size: int, stride: int) -> Value:
        return (x + self.ramp(x)).max_pool2d((size, size), stride)

    def average_pool(self, x: Value, size: int, stride: int) -> Value:
        return x.avg_pool2d((size, size), stride)

    def flip(self, x: Value, axis: int) -> Value:
        return x.flip(axis)

    def fence(self, x: Value) -> Value:
        """A value that is stored, for it is asked for."""
        return x.contiguous()

    def gradient(self, loss: Value, target: Value) -> Value:
        return loss.gradient(target, materialize_grads=True)[0]


class TorchLibrary(Library):
    """The functions over PyTorch, on one thread and in float64: the oracle."""

    def __init__(self, dtype: str = "float64") -> None:
        import torch

        super().__init__(dtype)
        self.torch = torch
        self.kind = getattr(torch, dtype)
        torch.set_num_threads(1)

    def leaf(self, shape: Shape, seed: int) -> Value:
        return self.constant(drawn(shape, seed)).requires_grad_()

    def constant(self, array: Any) -> Value:
        return self.torch.tensor(array.tolist(), dtype=self.kind)

    def indices(self, array: Any) -> Value:
        return self.torch.tensor(array.tolist(), dtype=self.torch.int64)

    def float(self, x: Value) -> Value:
        return x.to(self.kind)

    def rounded(self, x: Value, dtype: str) -> Value:
        return x.to(getattr(self.torch, dtype)).to(self.kind)

    def cat(self, axis: int, *parts: Value) -> Value:
        return self.torch.cat(parts, axis)

    def stack(self, axis: int, *parts: Value) -> Value:
        return self.torch.stack(parts, axis)

    def pad(self, x: Value, pads: Sequence[tuple[int, int]]) -> Value:
        flat = [count for pair in reversed(pads) for count in pair]
        return self.torch.nn.functional.pad(x, flat)

    def where(self, condition: Value, x: Value, y: Value) -> Value:
        return self.torch.where(condition, x, y)

    def einsum(self, formula: str, *parts: Value) -> Value:
        return self.torch.einsum(formula, *parts)

    def attention(self, q: Value, k: Value, v: Value, bias: Value | None) -> Value:
        # Written out: PyTorch's own has no second derivative.
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return (scores if bias is None else scores + bias).softmax(-1) @ v

    def conv(self, x: Value, weight: Value, groups: int, padding: int, stride: int) -> Value:
        return self.torch.nn.functional.conv2d(x, weight, None, stride, padding, groups=groups)

    def max_pool(self, x: Value, size: int, stride: int) -> Value:
        return self.torch.nn.functional.max_pool2d(x + self.ramp(x), size, stride)

    def average_pool(self, x: Value, size: int, stride: int) -> Value:
        return self.torch.nn.functional.avg_pool2d(x, size, stride)

    def flip(self, x: Value, axis: int) -> Value:
        return x.flip((axis,))

    def fence(self, x: Value) -> Value:
        return x

    def gradient(self, loss: Value, target: Value) -> Value:
        if not loss.requires_grad:
            return self.torch.zeros_like(target)
        found = self.torch.autograd.grad(loss, target, create_graph=True, allow_unused=True)[0]
        return self.torch.zeros_like(target) if found is None else found

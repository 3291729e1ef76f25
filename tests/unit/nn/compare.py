"""Comparison of layers with PyTorch's, which the tests of this folder share."""

from typing import Any

import numpy as np

from weft.nn.state import get_state_dict, load_state_dict
from weft.tensor import Tensor


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + len(shape)).standard_normal(shape).astype(np.float32)


def flat(results: Any) -> list[Any]:
    """The tensors of nested tuples, without what is None."""
    if isinstance(results, (tuple, list)):
        return [tensor for part in results for tensor in flat(part)]
    return [] if results is None else [results]


def assert_like_torch(
    ours: Any, theirs: Any, *inputs: np.ndarray, rtol: float = 2e-4, atol: float = 2e-5, **kwargs
) -> None:
    """Loading torch's weights by name gives its outputs and the gradients of every parameter."""
    import torch

    weights = {name: Tensor(value.detach().numpy()) for name, value in theirs.state_dict().items()}
    load_state_dict(ours, weights)
    mine = [Tensor(x, requires_grad=x.dtype.kind == "f" or None) for x in inputs]
    other = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in inputs]
    results, expected = flat(ours(*mine, **kwargs)), flat(theirs(*other, **kwargs))
    assert len(results) == len(expected)
    # Weights that differ keep gradients from canceling, for example behind a normalization.
    pulls = [drawn(*value.shape, seed=9) for value in expected]
    sum((r * Tensor(p)).sum() for r, p in zip(results, pulls, strict=True)).backward()
    sum((v * torch.tensor(p)).sum() for v, p in zip(expected, pulls, strict=True)).backward()
    for result, value in zip(results, expected, strict=True):
        assert result.shape == tuple(value.shape)
        np.testing.assert_allclose(result.numpy(), value.detach().numpy(), rtol=rtol, atol=atol)
    named = dict(theirs.named_parameters())
    for name, tensor in get_state_dict(ours).items():
        if name in named:
            gradient = named[name].grad.numpy()
            np.testing.assert_allclose(
                tensor.grad.numpy(), gradient, rtol=10 * rtol, atol=10 * atol, err_msg=name
            )
    for tensor, value in zip(mine, other, strict=True):
        if value.requires_grad:
            np.testing.assert_allclose(
                tensor.grad.numpy(), value.grad.numpy(), rtol=10 * rtol, atol=10 * atol
            )

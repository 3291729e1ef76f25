"""What must not grow: memory and nodes with the steps of training, work with equal layers."""

import gc

import numpy as np
import pytest

import weft.codegen.generate as codegen
from weft import GlobalCounters, Tensor, function
from weft.ir.uop import live_nodes, sweep
from weft.nn.optim import Adam


def test_a_training_loop_needs_no_more_memory_and_nodes_with_time():
    """Eager steps, with dropout's random state and the optimizer's: 20 to settle, then 40 more."""
    random = np.random.default_rng(0)
    x = random.standard_normal((64, 8)).astype(np.float32)
    y = x.sum(axis=1, keepdims=True)
    weights = [Tensor(random.standard_normal(s).astype(np.float32)) for s in ((8, 16), (16, 1))]
    optimizer = Adam(weights, lr=0.01)

    def train(steps: int) -> tuple[int, int]:
        for step in range(steps):
            rows = slice(step % 8 * 8, step % 8 * 8 + 8)
            optimizer.zero_grad()
            hidden = (Tensor(x[rows]) @ weights[0]).relu().dropout(0.1)
            ((hidden @ weights[1] - Tensor(y[rows])) ** 2).mean().backward()
            optimizer.step()
        gc.collect()
        sweep()
        return GlobalCounters.mem_used, live_nodes()

    with Tensor.train():
        settled = train(20)
        later = train(40)
    assert later[0] == settled[0]
    assert later[1] <= settled[1]


@pytest.mark.parametrize("layers", [2, 48])
def test_equal_layers_are_scheduled_and_compiled_once(layers: int, monkeypatch):
    """As many kernels are generated for 48 calls of a function as for two."""
    made = []
    generate = codegen.generate
    monkeypatch.setattr(
        codegen, "generate", lambda *args, **kw: made.append(args[0]) or generate(*args, **kw)
    )
    width = 20 + layers  # a size of its own, so that no other test has compiled these kernels
    random = np.random.default_rng(0)
    some = [
        Tensor(random.standard_normal((width, width)).astype(np.float32)).realize()
        for _ in range(layers)
    ]

    @function
    def layer(x: Tensor, weight: Tensor) -> Tensor:
        return (x.layernorm() @ weight).gelu() @ weight.T + x

    x = some[0]
    for weight in some:
        x = layer(x, weight)
    x.realize()
    assert 1 <= len(made) <= 4


def test_a_cast_to_half_and_back_rounds():
    """The chain keeps the half: casts are not folded away where they lose digits."""
    x = Tensor([1.0002, 3.14159, 70000.0])
    assert x.half().float().tolist() == [1.0, 3.140625, float("inf")]
    kept = x.half()
    y = kept.float() * 2
    GlobalCounters.reset()
    kept.realize(y)
    assert kept.numpy().dtype == np.float16
    assert GlobalCounters.global_mem == 3 * (4 + 2 + 4)

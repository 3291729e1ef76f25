"""autocast against PyTorch's: dtypes of every kind of op, values, gradients, the JIT, scopes."""

import threading

import numpy as np
import pytest

import weft
from weft import Tensor, autocast, dtypes, jit, nn, optim
from weft.amp import GradScaler
from weft.nn import functional as F  # noqa: N812 -- as programs call it
from weft.support.errors import ArgumentError

A, B, V = Tensor.ones(4, 4), Tensor.ones(4, 4), Tensor.ones(4)
IMAGE, KERNEL = Tensor.ones(1, 2, 5, 5), Tensor.ones(3, 2, 3, 3)
SMALL = [
    lambda: A @ B,
    lambda: A @ V,
    lambda: A.mm(B),
    lambda: A.linear(B, V),
    lambda: F.linear(A, B, V),
    lambda: F.bilinear(A, A, Tensor.ones(2, 4, 4), Tensor.ones(2)),
    lambda: A.addmm(A, B),
    lambda: V.addmv(A, V),
    lambda: A.unsqueeze(0).baddbmm(A.unsqueeze(0), B.unsqueeze(0)),
    lambda: Tensor.einsum("ij,jk->ik", A, B),
    lambda: IMAGE.conv2d(KERNEL, Tensor.ones(3)),
    lambda: F.conv2d(IMAGE, KERNEL, Tensor.ones(3)),
    lambda: F.conv_transpose2d(IMAGE, KERNEL.transpose(0, 1), Tensor.ones(3), stride=2),
    lambda: nn.Linear(4, 2)(A),
    lambda: nn.Conv2d(2, 3, 3)(IMAGE),
    lambda: A.scaled_dot_product_attention(A, A),
    lambda: F.scaled_dot_product_attention(A, A, A, is_causal=True),
]
WIDE = [
    lambda: A.bfloat16().softmax(),
    lambda: F.log_softmax(A.bfloat16(), 1),
    lambda: A.bfloat16().logsumexp(1),
    lambda: A.bfloat16().layer_norm((4,), V, V),
    lambda: nn.LayerNorm(4)(A.bfloat16()),
    lambda: nn.RMSNorm(4)(A.bfloat16()),
    lambda: nn.GroupNorm(2, 2)(IMAGE.bfloat16()),
    lambda: A.bfloat16().mse_loss(B.bfloat16()),
    lambda: F.mse_loss(A.bfloat16(), B.bfloat16()),
    lambda: F.smooth_l1_loss(A.bfloat16(), B.bfloat16()),
    lambda: F.cross_entropy(A.bfloat16(), Tensor([0, 1, 2, 3])),
    lambda: F.nll_loss(A.bfloat16(), Tensor([0, 1, 2, 3])),
    lambda: F.binary_cross_entropy_with_logits(A.bfloat16(), B.bfloat16()),
    lambda: F.cosine_similarity(A.bfloat16(), B.bfloat16()),
]
KEPT = [
    (lambda: A + B, dtypes.float32),
    (lambda: A.bfloat16() + B.bfloat16(), dtypes.bfloat16),
    (lambda: A.relu(), dtypes.float32),
    (lambda: A.bfloat16().gelu(), dtypes.bfloat16),
    (lambda: A.double() @ B.double(), dtypes.float64),
    (lambda: A.int() @ B.int(), dtypes.int32),
    (lambda: A.matmul(B, dtype=dtypes.float32), dtypes.float32),
    (lambda: nn.BatchNorm2d(2)(IMAGE.bfloat16()), dtypes.bfloat16),
]


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_products_take_the_small_dtype(name: str):
    with autocast("cpu", name):
        assert [each().dtype.name for each in SMALL] == [name] * len(SMALL)
    assert [each().dtype.name for each in SMALL] == ["float32"] * len(SMALL)


def test_norms_and_losses_are_in_float32():
    with autocast():
        assert [each().dtype.name for each in WIDE] == ["float32"] * len(WIDE)


def test_other_dtypes_stay():
    with autocast():
        assert [make().dtype for make, _ in KEPT] == [dtype for _, dtype in KEPT]


def test_parameters_and_their_gradients_stay_float32():
    layer = nn.Linear(4, 2)
    with autocast():
        loss = F.cross_entropy(layer(A), Tensor([0, 1, 0, 1]))
    loss.backward()
    assert loss.dtype is layer.weight.grad.dtype is layer.weight.dtype is dtypes.float32


def test_nested_scopes_and_decorators():
    with autocast():
        with autocast(enabled=False):
            assert (A @ B).dtype is dtypes.float32
            assert not weft.is_autocast_enabled()
        with autocast(dtype=dtypes.float32):
            assert (A @ B).dtype is dtypes.float32
        assert weft.is_autocast_enabled() and weft.get_autocast_dtype() is dtypes.bfloat16

    @autocast("cuda", dtype=weft.float16)
    def product() -> Tensor:
        return A @ B

    assert product().dtype is dtypes.float16 and (A @ B).dtype is dtypes.float32


def test_a_failure_ends_the_scope():
    with pytest.raises(ZeroDivisionError), autocast():
        1 / 0  # noqa: B018
    assert not weft.is_autocast_enabled()


def test_other_threads_are_not_cast():
    seen = []
    with autocast():
        thread = threading.Thread(target=lambda: seen.append((A @ B).dtype))
        thread.start()
        thread.join()
    assert seen == [dtypes.float32]


def test_a_jitted_function_is_traced_for_each_dtype():
    product = jit(lambda x, y: x @ y)
    x = Tensor(np.full((2, 2), 1.001, np.float32))
    plain = product(x, x)
    with autocast():
        small = product(x, x)
    assert (plain.dtype, small.dtype) == (dtypes.float32, dtypes.bfloat16)
    assert product(x, x).dtype is dtypes.float32


def test_the_scope_inside_of_a_jitted_function():
    @jit
    def step(x: Tensor) -> Tensor:
        with autocast():
            return (x @ x).softmax()

    x = Tensor.rand(4, 4).realize()
    wanted = (x.bfloat16() @ x.bfloat16()).float().softmax().numpy()
    for _ in range(3):
        assert np.array_equal(step(x).numpy(), wanted)


def test_dtypes_that_are_refused():
    with pytest.raises(ArgumentError, match="autocast: dtype is int32"):
        autocast("cpu", dtypes.int32)


def _step(scaler: GradScaler, optimizer: optim.SGD, w: Tensor, slope: float) -> None:
    optimizer.zero_grad()
    scaler.scale((w * slope).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_a_scaler_skips_steps_that_overflow():
    w = nn.Parameter(Tensor([1.0], dtype=dtypes.float16))
    optimizer, scaler = optim.SGD([w], lr=0.5), GradScaler(init_scale=1024.0, growth_interval=2)
    _step(scaler, optimizer, w, 1000.0)
    assert (w.item(), scaler.get_scale()) == (1.0, 512.0)
    _step(scaler, optimizer, w, 1.0)
    _step(scaler, optimizer, w, 1.0)
    assert (w.item(), scaler.get_scale()) == (0.0, 1024.0)


def test_unscaled_gradients_can_be_clipped_and_states_go_on():
    w = nn.Parameter(Tensor([1.0]))
    optimizer, scaler = optim.SGD([w], lr=1.0), GradScaler()
    scaler.scale((w * 4.0).sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad.item() == 4.0
    with pytest.raises(ArgumentError, match="twice"):
        scaler.unscale_(optimizer)
    other = GradScaler(init_scale=2.0)
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 65536.0
    off = GradScaler(enabled=False)
    assert off.scale(3.0) == 3.0 and off.state_dict() == {}


@pytest.mark.peers
def test_the_training_of_a_network_is_that_of_torch():
    torch = pytest.importorskip("torch")
    draw = np.random.default_rng(3).standard_normal
    first, second = draw((16, 8)).astype(np.float32), draw((4, 16)).astype(np.float32)
    x, y = draw((32, 8)).astype(np.float32), np.arange(32) % 4
    losses = []
    for library, functional in ((torch, torch.nn.functional), (weft, F)):
        weights = [library.tensor(each).requires_grad_() for each in (first, second)]
        optimizer = library.optim.SGD(weights, lr=0.05)
        given, classes, curve = library.tensor(x), library.tensor(y), []
        for _ in range(5):
            optimizer.zero_grad()
            with library.autocast("cpu", dtype=library.bfloat16):
                hidden = functional.relu(functional.linear(given, weights[0]))
                scores = functional.linear(hidden, weights[1])
                loss = functional.cross_entropy(scores, classes)
            loss.backward()
            optimizer.step()
            curve.append(loss.item())
        losses.append(curve)
    assert np.allclose(losses[0], losses[1], rtol=2e-3)

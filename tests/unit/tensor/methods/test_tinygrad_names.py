"""What programs written for tinygrad call, with the values that it would give."""

import hashlib

import numpy as np
import pytest

from weft import Context, GlobalCounters, TinyJit, Variable, dtypes, fetch, function, getenv, nn
from weft.support.errors import DTypeError, NotSupported, ShapeError
from weft.tensor import Tensor


def test_training_is_a_scope_of_context():
    before = Tensor.training
    for value in (1, 0, True):
        with Context(TRAINING=value, DEBUG=0):
            assert Tensor.training is bool(value)
        assert Tensor.training is before

    @Context(TRAINING=1)
    def step() -> bool:
        return Tensor.training

    assert step()


def test_shapes_by_size():
    x = Tensor.arange(6).reshape(2, 3)
    assert x.shrink_to(1, None).tolist() == [[0, 1, 2]]
    assert x.shrink_to((2, 2)).tolist() == [[0, 1], [3, 4]]
    assert x.pad_to(3, 4).tolist() == [[0, 1, 2, 0], [3, 4, 5, 0], [0] * 4]
    assert x.max_shape == (2, 3)
    n = Variable("n", 1, 9, dtypes.int).bind(2)
    assert Tensor.ones(n, 3).max_shape == (9, 3)
    with pytest.raises(ShapeError, match="shrink_to: 1 sizes for 2 axes"):
        x.shrink_to(1)


def test_parameters_and_gradients():
    x = Tensor([1.0, 2.0]).is_param_()
    (x.contiguous_backward() ** 2).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert Tensor([1.0]).is_param_(False).requires_grad is False


def test_the_programs_of_the_readme():
    x = Tensor.eye(29)  # a size that no other test has: equal constants are one value
    y = Tensor([[2.0, 0, -2.0, *[0.0] * 26]])
    z = y.matmul(x).sum()
    z.backward()
    assert x.grad.tolist() == [[2.0] * 29, [0.0] * 29, [-2.0] * 29, *[[0.0] * 29] * 26]
    assert y.grad.tolist() == [[1.0] * 29]

    class Linear:
        def __init__(self) -> None:
            self.l1 = Tensor.kaiming_uniform(4, 8)
            self.l2 = Tensor.kaiming_uniform(8, 3)

        def __call__(self, x: Tensor) -> Tensor:
            return x.flatten(1).dot(self.l1).relu().dot(self.l2)

    model = Linear()
    optimizer = nn.optim.Adam([model.l1, model.l2], lr=0.01)
    assert optimizer.device == model.l1.device
    data, labels = Tensor.rand(6, 2, 2), Tensor([0, 1, 2, 0, 1, 2])
    losses = []
    with Context(TRAINING=1):
        for _ in range(5):
            optimizer.zero_grad()
            loss = model(data).sparse_categorical_crossentropy(labels).backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_hashes():
    data = bytes(n % 251 for n in range(2 * 136))
    rows = Tensor(np.frombuffer(data, np.uint8).reshape(2, 136))  # two blocks of the sponge each
    found = [bytes(row) for row in rows.keccak("sha3_256").tolist()]
    assert found == [hashlib.sha3_256(data[:136]).digest(), hashlib.sha3_256(data[136:]).digest()]
    with pytest.raises(DTypeError, match="a hash of int32"):
        Tensor([1]).keccak()


def test_hash_tells_contents_apart():
    found = [bytes(Tensor(value).hash().tolist()) for value in (b"abc", b"abc\0")]
    assert found[0] != found[1]


def test_normalization_and_orthogonalization(seed: int):
    array = np.random.default_rng(seed).normal(size=(4, 3)).astype(np.float32)
    mean, scale = array.mean(0), 1 / array.std(0)
    given = [Tensor(each) for each in ([2.0] * 3, [1.0] * 3, mean, scale)]
    found = Tensor(array).batchnorm(*given)
    np.testing.assert_allclose(found.numpy(), (array - mean) * scale * 2 + 1, rtol=1e-5, atol=1e-5)
    near = Tensor(array).newton_schulz(30, (1.5, -0.5)).numpy()
    np.testing.assert_allclose(near.T @ near, np.eye(3), atol=1e-3)


def test_dtypes_and_counters():
    assert dtypes.from_py(1) is dtypes.default_int
    assert dtypes.from_py(1.0) is dtypes.default_float
    assert dtypes.from_py(True) is dtypes.bool
    assert dtypes.from_py([1, 2.0, True]) is dtypes.default_float
    assert dtypes.from_py([]) is dtypes.default_float
    assert dtypes.float32.bitsize == 32
    assert GlobalCounters.mem_used_per_device is GlobalCounters.mem_used_by
    assert getenv("A_NAME_THAT_NOBODY_SETS", 7) == 7
    assert fetch("/etc").name == "etc"


def test_functions_and_jits():
    double = function(allow_implicit=True, precompile=True, precompile_backward=True)(
        lambda x: x * 2
    )
    assert double(Tensor([1.0])).tolist() == [2.0]
    with pytest.raises(NotSupported, match="grad_fxn"):
        function(grad_fxn=lambda g, call: (g,))
    step = TinyJit(lambda x: (x + 1).realize(), prune=True)
    for start in (1.0, 2.0, 3.0):
        assert step(Tensor([start])).tolist() == [start + 1]
    assert step.traces == 1
    step.reset()
    assert step.traces == 0
    assert step(Tensor([4.0])).tolist() == [5.0]


def test_what_tensors_are_made_of_and_written_with():
    assert Tensor(None).shape == (0,)
    assert Tensor([b"abc", b"def"]).tolist() == [[97, 98, 99], [100, 101, 102]]
    x = Tensor.zeros(4)
    x[1:3] = [1, 2]
    assert x.tolist() == [0.0, 1.0, 2.0, 0.0]
    assert Tensor([1.0]).to(None).tolist() == [1.0]


@pytest.mark.parametrize("name", ["rand", "randn", "uniform", "normal", "randint"])
def test_random_numbers_over_a_symbolic_axis(name: str):
    n = Variable("n", 1, 9).bind(5)
    drawn = getattr(Tensor, name)(3, n)
    assert drawn.numpy().shape == (3, 5)
    assert len(np.unique(drawn.numpy())) > 2


def test_a_tensor_as_a_file():
    file = nn.state.TensorIO(Tensor(b"hello world"))
    assert file.read(5) == b"hello"
    assert file.seek(-5, 2) == 6
    assert file.read() == b"world"
    assert file.read() == b""
    assert file.tell() == 11

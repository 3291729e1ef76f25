"""The number of kernels of well-known expressions. A change that moves one says so, and why."""

from itertools import pairwise

import numpy as np
import pytest

from weft.engine.counters import GlobalCounters
from weft.io.gguf_blocks import QUANTIZED
from weft.nn.recurrent import LSTM
from weft.tensor.tensor import Tensor
from weft.tensor.trace.function import function


def random(*shape: int) -> Tensor:
    generator = np.random.default_rng(sum(shape))
    return Tensor(generator.standard_normal(shape).astype(np.float32)).realize()


def kernels(make, *inputs) -> int:
    (random(1) + 1).realize()  # with it runs what other modules left to be written
    GlobalCounters.reset()
    results = make(*inputs)
    results = results if isinstance(results, (tuple, list)) else (results,)
    results[0].realize(*results[1:])
    return GlobalCounters.kernel_count


def labels(count: int, classes: int) -> Tensor:
    return Tensor((np.arange(count) * 7 % classes).astype(np.int32)).realize()


@pytest.mark.parametrize(
    ("name", "make", "shapes"),
    [
        ("softmax", lambda x: x.softmax(), [(64, 128)]),
        ("log_softmax", lambda x: x.log_softmax(), [(64, 128)]),
        ("layernorm", lambda x: x.layernorm(), [(64, 128)]),
        ("rmsnorm", lambda x: x / ((x * x).mean(-1, keepdim=True) + 1e-6).sqrt(), [(64, 128)]),
        ("mean and std", lambda x: (x.mean(1), x.std(1)), [(64, 128)]),
        ("argmax", lambda x: x.argmax(1), [(64, 128)]),
        ("matmul + bias + gelu", lambda x, w, b: (x @ w + b).gelu(), [(32, 64), (64, 48), (48,)]),
        (
            "conv2d + bias + relu",
            lambda x, w, b: x.conv2d(w, b, padding=1).relu(),
            [(2, 8, 14, 14), (16, 8, 3, 3), (16,)],
        ),
        ("sum of relu", lambda a, b, c: (a * b + c).relu().sum(), [(64, 64)] * 3),
        ("batch norm", lambda x: x - x.mean((0, 2), keepdim=True), [(8, 16, 10)]),
    ],
)
def test_one_kernel(name, make, shapes):
    inputs = [random(*shape) for shape in shapes]
    assert kernels(make, *inputs) == 1


@pytest.mark.parametrize(
    ("name", "make", "shape", "count"),
    [
        ("cumsum", lambda x: x.cumsum(1), (64, 128), 1),
        ("cumsum of columns", lambda x: x.cumsum(0), (64, 128), 1),
        ("cumsum backwards", lambda x: x.flip(1).cumsum(1).flip(1), (64, 128), 1),
        ("cumsum between others", lambda x: (x * 2).cumsum(1).relu() + x, (64, 128), 1),
        ("share of a sum", lambda x: x.cumsum(1) / x.sum(1, keepdim=True), (64, 128), 1),
        ("cummax", lambda x: x.cummax(1), (64, 128), 1),
        ("logcumsumexp", lambda x: x.logcumsumexp(1), (64, 128), 1),
        ("cumulative_trapezoid", lambda x: x.cumulative_trapezoid(), (64, 128), 1),
        ("long cumsum", lambda x: x.cumsum(0), (1 << 20,), 2),
        ("long cumsum backwards", lambda x: x.flip(0).cumsum(0).flip(0) * 2, (1 << 20,), 2),
        ("sort", lambda x: x.sort(1), (64, 128), 3),
        ("long sort", lambda x: x.sort(1), (4, 1024), 8),
        ("topk", lambda x: x.topk(5), (64, 128), 3),
        ("median", lambda x: x.median(1), (64, 128), 3),
        ("quantile", lambda x: x.quantile(0.3, 1), (64, 128), 3),
        ("mode", lambda x: x.mode(1), (64, 128), 5),
        ("searchsorted", lambda x: x.searchsorted(x), (1024,), 1),
        ("nonzero of a size", lambda x: x.nonzero(size=9), (64, 128), 2),
    ],
)
def test_scans_and_sorts(name, make, shape, count):
    assert kernels(make, random(*shape)) <= count


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
def test_the_work_of_a_scan_is_linear(name):
    for shape in ((1 << 20,), (1 << 10, 1 << 10)):
        x = random(*shape)
        kernels(lambda x=x: getattr(x, name)(0))
        assert GlobalCounters.global_ops <= 6 * (1 << 20)


def test_the_gradient_of_a_cumsum_is_one_kernel():
    x, weights = random(64, 128), random(64, 128)
    assert kernels(lambda: (x.cumsum(1) * weights).sum().gradient(x)) == 1


@pytest.mark.parametrize(
    ("name", "make", "shape", "count", "reads", "writes"),
    [
        ("logsumexp", lambda x: x.logsumexp(), (1 << 19,), 2, 1, 0),
        ("argmax", lambda x: x.argmax(), (1 << 19,), 2, 1, 0),
        ("max and argmin", lambda x: (x.min(), x.argmin()), (1 << 19,), 2, 1, 0),
        ("variance and mean", lambda x: x.var_mean(), (1 << 19,), 2, 1, 0),
        ("softmax", lambda x: x.softmax(), (1 << 19,), 2, 2, 1),
        ("layernorm", lambda x: x.layernorm(), (1 << 19,), 2, 2, 1),
        ("logsumexp of long rows", lambda x: x.logsumexp(1), (4, 1 << 17), 2, 1, 0),
        ("softmax of long rows", lambda x: x.softmax(1), (4, 1 << 17), 2, 2, 1),
        ("logsumexp of many rows", lambda x: x.logsumexp(1), (64, 1 << 13), 1, 1, 0),
        ("losses", lambda x: -x.log_softmax(1)[:, 7], (64, 1 << 13), 1, 1, 0),
    ],
)
def test_reductions_that_need_each_other_read_once(name, make, shape, count, reads, writes):
    x = random(*shape)
    assert kernels(make, x) == count
    whole = x.nbytes() * (reads + writes)
    assert whole <= GlobalCounters.global_mem < whole + x.nbytes() // 8


def test_cross_entropy_of_each_row_is_one_kernel():
    logits, wanted = random(32, 10), labels(32, 10)
    per_row = lambda: logits.sparse_categorical_crossentropy(wanted, reduction="none")  # noqa: E731
    assert kernels(per_row) == 1
    assert kernels(lambda: logits.sparse_categorical_crossentropy(wanted)) <= 2


def test_an_embedding_reads_only_the_rows_it_needs():
    table, rows = random(5000, 16), Tensor([3, 17, 4000]).realize()
    assert kernels(lambda: table[rows]) == 1
    assert GlobalCounters.global_mem < 5000


def test_the_gradient_of_an_embedding_is_linear():
    """A kernel of zeros, and one that adds the rows of 1,000 tokens to a table of 10,000."""
    table, weights = random(10000, 64), random(1000, 64)
    tokens = Tensor((np.arange(1000) * 7919 % 500).astype(np.int64)).realize()
    assert kernels(lambda: (table[tokens] * weights).sum().gradient(table)) == 2
    assert GlobalCounters.global_ops <= 8 * 1000 * 64
    assert GlobalCounters.global_mem <= 4 * (10000 * 64 + 3 * 1000 * 64) + 64 * 8 * 1000


@pytest.mark.parametrize(
    ("name", "make", "count"),
    [
        ("scatter_add", lambda x, i: x.scatter_add(0, i, x), 2),
        ("index_add", lambda x, i: x.index_add(0, i, x * 2), 2),
        ("index_put", lambda x, i: x.index_put((i,), x, accumulate=True), 2),
        ("greatest", lambda x, i: x.scatter_reduce(0, i, x, "amax"), 2),
        ("mean", lambda x, i: x.scatter_reduce(0, i, x, "mean"), 5),
        ("scatter", lambda x, i: x.scatter(0, i, x), 3),
    ],
)
def test_the_work_of_a_scatter_is_linear(name, make, count):
    size = 1 << 12
    x, rows = random(size), labels(size, size)
    assert kernels(make, x, rows) <= count
    assert GlobalCounters.global_ops <= 40 * size


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("masked_scatter", lambda x, i: (x.masked_scatter(x > 0, x) * x).sum().gradient(x)[0]),
        ("bincount", lambda x, i: i.bincount()),
        ("histc", lambda x, i: x.histc(1000)),
        ("searchsorted", lambda x, i: x.searchsorted(x)),
        ("isin", lambda x, i: i.isin(i)),
        ("cumprod", lambda x, i: x.cumprod(0).sum().gradient(x)[0]),
        ("cummax", lambda x, i: (x.cummax(0).values * x).sum().gradient(x)[0]),
        ("median", lambda x, i: x.median()),
    ],
)
def test_no_work_is_quadratic(name, make):
    """What compares each element with each would do 8,192 ops for one, and this is 3,380."""
    size = 1 << 13
    kernels(make, random(size), labels(size, size))
    assert GlobalCounters.global_ops <= 20 * 13**2 * size


def test_the_gradient_of_a_sort_adds_linear_work():
    x = random(1 << 12)
    kernels(lambda: x.sort(0))
    sorting = GlobalCounters.global_ops
    kernels(lambda: (x.sort(0)[0] * x).sum().gradient(x))
    assert GlobalCounters.global_ops <= sorting + 256 * (1 << 12)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x + Tensor.arange(64),
        lambda x: x + Tensor.eye(64)[0],
        lambda x: (Tensor.arange(64) < 10).where(x, 0),
        lambda x: x * Tensor([3]).one_hot(64)[0],
    ],
)
def test_aranges_and_masks_never_reach_memory(make):
    x = random(64)
    before = GlobalCounters.mem_used
    made = make(x)
    assert kernels(lambda: made) == 1
    assert GlobalCounters.peak_memory[x.device] <= before + 64 * 4 + 128


def test_adam_over_one_parameter_is_one_kernel():
    w, m, v, g = (random(40, 50) for _ in range(4))

    def step():
        m.assign(m * 0.9 + g * 0.1)
        v.assign(v * 0.99 + g * g * 0.01)
        w.assign(w - 0.001 * m / (v.abs().sqrt() + 1e-8))
        return w, m, v

    assert kernels(step) == 1


def test_slice_assignments_from_scalars_are_one_kernel():
    x = random(100)

    def step():
        for start in range(0, 100, 10):
            x[start : start + 10] = float(start)
        return x

    assert kernels(step) == 1
    assert x.tolist() == [float(i // 10 * 10) for i in range(100)]


def test_a_slice_of_realized_memory_is_no_kernel():
    x = random(10, 10)
    assert kernels(lambda: x[2:5]) == 0


def test_results_of_calls_are_computed_where_they_are_wanted():
    """A function that ends in a call of another one copies nothing, however deep."""

    @function
    def inner(x):
        return x * 2 + 1

    @function
    def outer(x):
        return inner(inner(x)), inner(x)

    assert kernels(outer, random(10)) == 2  # one body, whose inner(x) is one call
    assert kernels(lambda x: (inner(x), inner(x) + 1), random(10)) == 2


def test_a_training_step_of_a_perceptron():
    """Three layers with Adam: forward 4 (each layer, log-softmax), loss 1, backward 9.

    Of the backward kernels 5 are updates of a weight or of biases with their gradients fused in
    (the biases of equal size share one), 2 carry the gradient through a layer, and 2 small ones
    come from the loss.
    """
    sizes = [784, 512, 512, 10]
    weights = [random(a, b) for a, b in pairwise(sizes)]
    biases = [random(b) for b in sizes[1:]]
    parameters = weights + biases
    first, second = ([random(*p.shape) for p in parameters] for _ in range(2))
    x, wanted = random(128, 784), labels(128, 10)

    def step():
        h = x
        for number, (w, b) in enumerate(zip(weights, biases, strict=True)):
            h = h @ w + b
            h = h.relu() if number < 2 else h
        loss = h.sparse_categorical_crossentropy(wanted)
        gradients = loss.gradient(*parameters)
        while gradients:
            number = len(gradients) - 1
            p, m, v, g = parameters[number], first[number], second[number], gradients.pop()
            m.assign(m * 0.9 + g * 0.1)
            v.assign(v * 0.999 + g * g * 0.001)
            p.assign(p - 0.001 * m / (v.abs().sqrt() + 1e-8))
        return (loss, *parameters, *first, *second)

    assert kernels(step) == 14


@pytest.mark.parametrize("kind", QUANTIZED, ids=lambda kind: QUANTIZED[kind].name)
def test_packed_weights_are_unpacked_in_the_kernel_of_their_product(kind):
    """Scales of a block are computed once per block, so they need no memory."""
    row, rows, columns = QUANTIZED[kind], 1536, 512
    blocks = Tensor(np.ones((rows * columns // row.elements, row.bytes), np.uint8)).realize()
    found = kernels(lambda x: row.unpack(blocks).reshape(rows, columns) @ x, random(columns))
    # TQ1_0 keeps a sixteenth of its numbers in bytes of another form. To compute those for all
    # numbers costs more than the little memory that they take.
    assert found == (2 if row.name == "TQ1_0" else 1)


def gated(x, w):
    """Parts of one product that meet again, as the gates of an LSTM do."""
    left, right = (x @ w).chunk(2, -1)
    return left.sigmoid() * right


def test_a_product_that_is_cut_into_gates_keeps_its_tile():
    assert kernels(gated, random(32, 64), random(64, 96)) == 2
    assert kernels(gated, random(1, 64), random(64, 96)) == 1  # sums that reuse nothing


def test_steps_of_recurrent_layers():
    layer, x = LSTM(16, 32), random(4, 32, 16)
    Tensor.realize(*layer.parameters())
    fewest = 4 * 2 + 4 + 3  # two of each step, its part of the input; that product, zeros, stack
    assert kernels(lambda: layer(x)[0]) <= fewest

    def gradients():
        return layer(x)[0].square().sum().gradient(layer.weight_hh_l0, layer.weight_ih_l0)

    assert (
        kernels(gradients) <= fewest + 4 * 5 + 1
    )  # of a step: gates, their gradient, products, bias

"""Kernels written by hand run beside generated ones, in functions and in gradients."""

import numpy as np
import pytest

import weft
from weft import Tensor, custom_kernel, dtypes, function
from weft.engine.counters import GlobalCounters
from weft.engine.devices import device
from weft.ir.build import index_of, load, range_, reduce_ranges, sink, store
from weft.ir.ops import Op
from weft.ir.program import written_program

A = np.random.default_rng(3).standard_normal((6, 7)).astype(np.float32)
B = np.random.default_rng(4).standard_normal((7, 5)).astype(np.float32)


def product(out, a, b):
    (m, n), k = out.shape, a.shape[1]
    i, j, r = range_(0, m), range_(1, n), range_(2, k)
    terms = load(index_of(a, [i, r])) * load(index_of(b, [r, j]))
    return store(index_of(out, [i, j]), reduce_ranges(terms, Op.ADD, [r]), [i, j])


def product_gradient(inputs, output, gradient):
    a, b = inputs
    return gradient @ b.T, a.T @ gradient


def multiply(a, b):
    shape = (a.shape[0], b.shape[1])
    return custom_kernel(product, a, b, shape=shape, gradient=product_gradient)


def square_and_floor(squares, floors, x):
    i = range_(0, x.shape[0])
    value = load(index_of(x, [i]))
    first = store(index_of(squares, [i]), value * value, [i])
    return sink(first, store(index_of(floors, [i]), value.cast(dtypes.int32), [i]))


@pytest.mark.parametrize("name", ["CPU", "PYTHON"])
def test_a_kernel_takes_expressions_and_feeds_others(name):
    made = custom_kernel(product, Tensor(A, device=name) * 2, Tensor(B, device=name), shape=(6, 5))
    assert np.allclose((made + 1).relu().numpy(), np.maximum(2 * A @ B + 1, 0), atol=1e-5)


def test_results_are_written_where_they_are_wanted():
    a, b = Tensor(A).realize(), Tensor(B).realize()
    GlobalCounters.reset()
    custom_kernel(product, a, b, shape=(6, 5)).realize()
    assert GlobalCounters.kernel_count == 1
    x = Tensor([1.5, 2.5]).realize()
    GlobalCounters.reset()
    two = custom_kernel(
        square_and_floor, x, shape=[(2,), (2,)], dtype=[dtypes.float32, dtypes.int32]
    )
    two[0].realize(two[1])
    assert GlobalCounters.kernel_count == 1


@pytest.mark.parametrize("name", ["CPU", "PYTHON"])
def test_several_outputs(name):
    x = Tensor([1.5, -2.5, 3.0], device=name)
    kinds = [dtypes.float32, dtypes.int32]
    squares, floors = custom_kernel(square_and_floor, x, shape=[(3,), (3,)], dtype=kinds)
    assert (squares + floors).tolist() == [3.25, 4.25, 12.0]
    assert floors.tolist() == [1, -2, 3]
    assert squares.tolist() == [2.25, 6.25, 9.0]


@pytest.mark.parametrize("name", ["CPU", "PYTHON"])
def test_gradients_of_first_and_second_order(name):
    def penalty(times):
        a, b = Tensor(A, device=name), Tensor(B, device=name)
        (first,) = (times(a * 2, b) ** 2).sum().gradient(a)
        (second,) = (first * first).sum().gradient(b)
        return first.numpy(), second.numpy()

    for mine, theirs in zip(penalty(multiply), penalty(lambda a, b: a @ b), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-2)


def test_gradients_of_several_outputs():
    def gradient(inputs, outputs, gradients):
        (x,) = inputs
        assert gradients[1] is None
        return 2 * x * gradients[0]

    x = Tensor([1.5, -2.5])
    kinds = [dtypes.float32, dtypes.int32]
    squares, floors = custom_kernel(
        square_and_floor, x, shape=[(2,), (2,)], dtype=kinds, gradient=gradient
    )
    (found,) = (squares * floors).sum().gradient(x)
    assert found.tolist() == [3.0, 10.0]


@pytest.mark.parametrize("name", ["CPU", "PYTHON"])
def test_kernels_nest_in_functions(name):
    @function
    def layer(x, w):
        return multiply(x, w).relu() + 1

    @function
    def twice(x, w):
        return layer(x, w) * layer(x * 2, w)

    def plain(x, w):
        return ((x @ w).relu() + 1) * ((x * 2 @ w).relu() + 1)

    a, b = Tensor(A, device=name), Tensor(B, device=name)
    np.testing.assert_allclose(twice(a, b).numpy(), plain(a, b).numpy(), rtol=1e-5, atol=1e-5)
    mine, theirs = twice(a, b).sum().gradient(a, b), plain(a, b).sum().gradient(a, b)
    for x, y in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-4, atol=1e-4)


def test_a_gradient_replaces_that_of_a_function():
    scale = Tensor([10.0, 100.0])

    @function(gradient=lambda inputs, outputs, gradients: (gradients[0] * scale, None))
    def halves(x, n):
        return x * 0.5, x * n

    x, n = Tensor([1.0, 2.0]), Tensor([3, 4])
    low, high = halves(x, n)
    (found,) = (low + high).sum().gradient(x)
    assert found.tolist() == [10.0, 100.0]
    assert (high * 0 + low).sum().gradient(x)[0].tolist() == [10.0, 100.0]


def test_the_gradient_of_an_unused_output_is_zero():
    @function(gradient=lambda inputs, outputs, gradients: gradients[0] + gradients[1])
    def pair(x):
        return x * 1, x * 2

    x = Tensor([1.0, 2.0])
    assert pair(x)[1].sum().gradient(x)[0].tolist() == [1.0, 1.0]


def test_kernels_without_a_gradient_say_so():
    a = Tensor(A)
    with pytest.raises(weft.NotSupported, match="custom kernel 'custom' has none"):
        custom_kernel(product, a, Tensor(B), shape=(6, 5)).sum().gradient(a)
    (found,) = (
        (custom_kernel(product, a.detach(), Tensor(B), shape=(6, 5)).sum() * a).sum().gradient(a)
    )
    assert np.allclose(found.numpy(), (A @ B).sum(), rtol=1e-4)


def test_gradients_that_do_not_fit_are_refused():
    def wrong(gradient):
        return custom_kernel(product, Tensor(A), Tensor(B), shape=(6, 5), gradient=gradient)

    with pytest.raises(weft.ArgumentError, match="2 inputs and 1 gradients"):
        wrong(lambda inputs, output, g: g)
    with pytest.raises(weft.ShapeError, match="the gradient of input 0 has another shape"):
        wrong(lambda inputs, output, g: (g, None))
    with pytest.raises(weft.ArgumentTypeError, match="the gradient of input 1 is float"):
        wrong(lambda inputs, output, g: (None, 1.0))


LLVM = """
define void @triple(ptr %args, ptr %vars, i64 %begin, i64 %end) {
entry:
  %out = load ptr, ptr %args
  %next = getelementptr ptr, ptr %args, i64 1
  %in = load ptr, ptr %next
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %after, %loop ]
  %from = getelementptr float, ptr %in, i64 %i
  %x = load float, ptr %from
  %y = fmul float %x, 3.0
  %to = getelementptr float, ptr %out, i64 %i
  store float %y, ptr %to
  %after = add i64 %i, 1
  %more = icmp slt i64 %after, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def triple(target=None):
    name = device("CPU").target.name if target is None else target
    return written_program("triple", name, LLVM, [dtypes.float32], [dtypes.float32], groups=(5,))


def test_a_finished_program():
    x = Tensor(np.arange(5, dtype=np.float32), device="CPU")

    @function(gradient=lambda inputs, output, gradient: gradient * 3)
    def times_three(x):
        return custom_kernel(triple(), x, shape=(5,))

    assert (times_three(x + 1) + 1).tolist() == [4.0, 7.0, 10.0, 13.0, 16.0]
    assert times_three(x).sum().gradient(x)[0].tolist() == [3.0] * 5


def test_a_compiled_program():
    cpu = device("CPU")
    program = triple()
    compiled = program.with_binary(cpu.compile(program)).with_source("")
    x = Tensor(np.arange(5, dtype=np.float32), device="CPU")
    assert custom_kernel(compiled, x, shape=(5,)).tolist() == [0.0, 3.0, 6.0, 9.0, 12.0]


def test_programs_run_on_their_own_target():
    x = Tensor(np.arange(5, dtype=np.float32), device="CPU")
    with pytest.raises(weft.DeviceError, match="'triple' cannot run on CPU"):
        custom_kernel(triple("CUDA:PTX:sm_90a"), x, shape=(5,)).realize()
    with pytest.raises(weft.NotSupported, match="cannot run the program 'triple'"):
        custom_kernel(triple(), Tensor([1.0] * 5, device="PYTHON"), shape=(5,)).realize()
    with pytest.raises(weft.ArgumentError, match="does not fit its call"):
        custom_kernel(triple(), x, x, shape=(5,))


def test_what_is_no_store_is_refused():
    with pytest.raises(weft.ArgumentTypeError, match="no STORE"):
        custom_kernel(
            lambda out, x: load(index_of(x, [range_(0, 2)])), Tensor([1.0, 2.0]), shape=(2,)
        )


def test_illegal_kernels_are_marked():
    def wrong(out, x):
        return store(index_of(out, []), load(index_of(x, [range_(0, 2)])))

    with pytest.raises(weft.InternalError, match="one index per dimension"):
        custom_kernel(wrong, Tensor([1.0, 2.0]), shape=(2,))


def test_inputs_are_not_written():
    def wrong(out, x):
        i = range_(0, 2)
        return store(index_of(x, [i]), load(index_of(x, [i])), [i])

    with pytest.raises(weft.ArgumentError, match="writes other memory"):
        custom_kernel(wrong, Tensor([1.0, 2.0]), shape=(2,))


def test_inputs_are_needed():
    with pytest.raises(weft.ArgumentTypeError, match="no input"):
        custom_kernel(product, shape=(2,))


def test_dtypes_fit_outputs():
    with pytest.raises(weft.ArgumentError, match="1 outputs and 2 dtypes"):
        custom_kernel(product, Tensor(A), Tensor(B), shape=(6, 5), dtype=[dtypes.int32] * 2)

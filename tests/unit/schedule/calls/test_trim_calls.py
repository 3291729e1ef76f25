"""Calls compute what is read, from what they use."""

import numpy as np

from weft import GlobalCounters, Tensor, function


def counted(tensor: Tensor) -> int:
    GlobalCounters.reset()
    tensor.realize()
    return GlobalCounters.global_ops


def test_a_result_that_nobody_reads_is_not_computed() -> None:
    @function
    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, (x @ x).contiguous()

    x = Tensor(np.ones((32, 32), np.float32)).realize()
    assert counted(both(x)[0]) < 32 * 32 * 8
    assert counted(both(x)[1]) > 32 * 32 * 32
    np.testing.assert_array_equal(both(x)[0].numpy(), np.full((32, 32), 2))


def test_an_argument_that_is_not_used_is_not_computed() -> None:
    @function
    def first(x: Tensor, y: Tensor) -> Tensor:
        return x * 2

    x = Tensor(np.ones((32, 32), np.float32)).realize()
    assert counted(first(x, x @ x)) < 32 * 32 * 8


def test_the_gradient_of_one_operand_of_a_convolution() -> None:
    x = Tensor(np.ones((2, 3, 8, 8), np.float32)).realize()
    w = Tensor(np.ones((4, 3, 3, 3), np.float32)).realize()
    one = counted(x.conv2d(w).sum().gradient(w)[0])
    (of_x, of_w) = x.conv2d(w).sum().gradient(x, w)
    GlobalCounters.reset()
    Tensor.realize(of_x, of_w)
    assert one < 0.7 * GlobalCounters.global_ops


def test_a_result_that_is_an_argument_is_not_copied() -> None:
    @function
    def both(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return y, x + y

    x, y = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
    GlobalCounters.reset()
    same, total = both(x, y)
    np.testing.assert_array_equal((same * total).numpy(), [12, 24])
    assert GlobalCounters.kernel_count == 2  # the call, and the product


def test_a_call_that_gives_its_arguments_alone_does_nothing() -> None:
    @function
    def swapped(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return y, x

    x, y = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
    GlobalCounters.reset()
    first, second = swapped(x, y)
    np.testing.assert_array_equal((first - second).numpy(), [2, 2])
    assert GlobalCounters.kernel_count == 1

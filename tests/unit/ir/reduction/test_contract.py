"""Where elements of tiles are: in local memory, in registers, and in the tensors behind them."""

from weft.ir.reduction.contract import (
    Factor,
    element_position,
    sum_position,
    swizzled,
    thread_position,
    tile_byte,
)
from weft.target.cuda_matrix import SUM_64X8


def test_swizzled_rows_keep_their_bytes_and_columns_meet_in_no_bank():
    for row in range(16):
        positions = {swizzled(128 * row + byte) for byte in range(128)}
        assert positions == set(range(128 * row, 128 * row + 128))
    # The same 16 bytes of eight rows are in eight different parts of a line.
    assert len({swizzled(128 * row) % 128 for row in range(8)}) == 8


def test_sums_lie_as_the_target_says():
    for thread in range(128):
        for element in range(16):  # four elements of each eight columns
            row, column = SUM_64X8.position(thread, element % 4)
            assert sum_position(thread, element) == (row, column + element // 4 * 8)


def test_each_element_of_a_tile_has_one_thread():
    warps, columns = 8, 64
    elements = 2 * 8 * columns // 32
    positions = {
        thread_position(warp, lane, quad, element)
        for warp in range(warps)
        for lane in range(8)
        for quad in range(4)
        for element in range(elements)
    }
    assert positions == {(row, column) for row in range(16 * warps) for column in range(columns)}
    assert element_position(1, 1, 2, 1, 3, 4) == (16 + 8 + 2, 32 + 24 + 4)


def test_tiles_along_the_sum_and_in_panels():
    assert tile_byte(1024, 3, 5, 2, 0) == 1024 + 3 * 128 + 10
    # Rows 64 to 127 are the second panel.
    assert tile_byte(0, 70, 5, 2, 8192) == 8192 + 5 * 128 + 12


def test_boxes_of_a_factor():
    along = Factor(
        "bfloat16", 0, (512, 256), (1, 512), ((1, 128),), ((0, 64),), ((64,), (0,)), (1, 1)
    )
    across = Factor(
        "bfloat16", 0, (256, 512), (1, 256), ((0, 128),), ((1, 64),), ((0,), (64,)), (1, 1)
    )
    assert (along.box, along.panels) == ((64, 128), 1)
    assert (across.box, across.panels) == ((64, 64), 2)
    assert along.position(3, 5) == [5, 3] and across.position(3, 5) == [3, 5]


def test_boxes_of_pixels():
    # Rows of 4 x 2 x 8 pixels of 16 images, every second of them; channels are summed.
    sizes, strides = (64, 28, 28, 16), (1, 64, 1792, 50176)
    rows, moves = ((1, 4), (2, 2), (3, 8)), ((0, 0), (1, 0), (0, 1), (0, 0))
    image = Factor("bfloat16", 0, sizes, strides, rows, ((0, 64),), moves, (1, 2, 2, 1))
    assert (image.box, image.height) == ((64, 4, 2, 8), 64)
    assert image.position(4 * 2 * 3 + 4 + 1, 9) == [9, 2, 2, 3]
    # Pixels are summed, and channels are rows.
    depth = ((1, 4), (2, 4), (3, 4))
    channels = Factor("bfloat16", 0, sizes, strides, ((0, 128),), depth, moves, (1, 1, 1, 1))
    assert (channels.box, channels.panels) == ((64, 4, 4, 4), 2)
    assert channels.position(70, 16 * 2 + 4 * 3 + 1) == [70, 1, 3, 2]

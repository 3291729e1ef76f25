"""Shapes, cuts, padding, indices and what makes values of shapes."""

from __future__ import annotations

import numpy as np

from fuzz.onnx_drawn.pool import Pool, Refused, draws


@draws("Transpose")
def _transpose(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", "bool", "float64", "uint8")
    perm = list(range(pool.values[value].ndim))
    pool.rng.shuffle(perm)
    pool.node(name, [value], perm=None if pool.rng.random() < 0.2 else perm)


@draws("Reshape")
def _reshape(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", "float64", least=1)
    shape = list(pool.values[value].shape)
    kind = pool.rng.randrange(4)
    wanted = [[-1], [0, -1], shape[::-1], [1, *shape, 1]][kind]
    pool.node(name, [value, pool.ints(wanted)])


@draws("Flatten")
def _flatten(pool: Pool, name: str) -> None:
    value = pool.floats(least=1)
    pool.node(name, [value], axis=pool.rng.choice((None, pool.axis(value))))


@draws("Squeeze", "Unsqueeze")
def _squeeze(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64")
    shape = pool.values[value].shape
    if name == "Squeeze":
        ones = [axis for axis, size in enumerate(shape) if size == 1]
        axes = pool.rng.sample(ones, pool.rng.randint(1, len(ones))) if ones else None
        axes = None if pool.rng.random() < 0.3 else axes
    else:
        count = pool.rng.randint(1, 2)
        axes = sorted(pool.rng.sample(range(len(shape) + count), count))
    if pool.opset >= 13:
        pool.node(name, [value, "" if axes is None else pool.ints(axes)])
    else:
        pool.node(name, [value], axes=axes)


@draws("Concat")
def _concat(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    axis = pool.axis(value)
    shape = list(pool.values[value].shape)
    shape[axis] = pool.rng.randint(1, 3)
    other = pool.given(pool.drawn(pool.values[value].dtype.name, tuple(shape)))
    pool.node(name, pool.rng.sample([value, other, value], 3), axis=axis)


@draws("Split")
def _split(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    axis = pool.axis(value)
    size = pool.values[value].shape[axis]
    if size < 2:
        raise Refused
    first = pool.rng.randint(1, size - 1)
    is_even = pool.rng.random() < 0.4 and (size % 2 == 0 or pool.opset >= 18)
    sizes = None if is_even else [first, size - first]
    if pool.opset < 13:
        pool.node(name, [value], 2, axis=axis, split=sizes)
        return
    count = 2 if is_even and pool.opset >= 18 else None
    pool.node(
        name, [value, "" if sizes is None else pool.ints(sizes)], 2, axis=axis, num_outputs=count
    )


@draws("Slice")
def _slice(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    rank = pool.values[value].ndim
    axes = sorted(pool.rng.sample(range(rank), pool.rng.randint(1, rank)))
    edges = (-100, -3, -2, -1, 0, 1, 2, 3, 100, 2**31 - 1)
    starts = [pool.rng.choice(edges[:7]) for _ in axes]
    ends = [pool.rng.choice(edges) for _ in axes]
    if pool.opset < 10:
        pool.node(name, [value], starts=starts, ends=ends, axes=axes)
        return
    steps = [pool.rng.choice((1, 1, 2, -1, -2)) for _ in axes]
    # onnxruntime takes the greatest end for the least one where it goes backward.
    ends = [min(end, 100) if step < 0 else end for end, step in zip(ends, steps, strict=True)]
    listed = [pool.ints(each) for each in (starts, ends, axes, steps)]
    if pool.rng.random() < 0.3:
        listed[3] = ""
    pool.node(name, [value, *listed])


@draws("Tile")
def _tile(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    repeats = [pool.rng.choice((1, 1, 2, 3)) for _ in pool.values[value].shape]
    pool.node(name, [value, pool.ints(repeats)])


@draws("Expand", first=8)
def _expand(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", "bool")
    shape = [size if size > 1 else pool.rng.randint(1, 3) for size in pool.values[value].shape]
    shape = [1 if pool.rng.random() < 0.2 else size for size in shape]
    pool.node(name, [value, pool.ints([2, *shape] if pool.rng.random() < 0.4 else shape)])


@draws("Pad")
def _pad(pool: Pool, name: str) -> None:
    value = pool.floats(least=1)
    shape = pool.values[value].shape
    mode = pool.rng.choice((None, "constant", "edge", "reflect"))
    least = -1 if mode in (None, "constant") else 0
    pads = [pool.rng.randint(least, min(2, size - 1)) for size in (*shape, *shape)]
    if pool.opset < 11:
        pool.node(name, [value], mode=mode, pads=pads, value=pool.rng.choice((None, 1.5)))
        return
    filler = pool.weight(np.float32(2.5)) if pool.rng.random() < 0.5 else ""
    pool.node(name, [value, pool.ints(pads), filler], mode=mode)


@draws("Gather")
def _gather(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    axis = pool.axis(value)
    size = pool.values[value].shape[axis]
    low = -size if pool.opset >= 11 else 0
    index = pool.numbers.integers(low, size, pool.shape(pool.rng.randint(0, 2)))
    pool.node(name, [value, pool.given(index.astype(np.int64))], axis=axis)


@draws("GatherElements", "ScatterElements", first=11)
def _elements(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    axis = pool.axis(value)
    shape = list(pool.values[value].shape)
    size = shape[axis]
    shape[axis] = pool.rng.randint(1, size)
    index = np.argsort(pool.numbers.random((*shape[:axis], size, *shape[axis:][1:])), axis)
    index = np.take(index, range(shape[axis]), axis).astype(np.int64)
    if name == "GatherElements":
        pool.node(name, [value, pool.given(index)], axis=axis)
        return
    updates = pool.drawn(pool.values[value].dtype.name, index.shape)
    how = pool.rng.choice((None, "add", "mul")) if pool.opset >= 16 else None
    pool.node(name, [value, pool.given(index), pool.given(updates)], axis=axis, reduction=how)


@draws("GatherND", "ScatterND", first=12)
def _nd(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    shape = pool.values[value].shape
    depth = pool.rng.randint(1, len(shape))
    count = pool.rng.randint(1, 3)
    columns = [pool.numbers.integers(0, size, count) for size in shape[:depth]]
    index = np.stack(columns, -1).astype(np.int64)
    if name == "GatherND":
        pool.node(name, [value, pool.given(index)])
        return
    index = np.unique(index, axis=0)
    updates = pool.drawn(pool.values[value].dtype.name, (len(index), *shape[depth:]))
    how = pool.rng.choice((None, "add")) if pool.opset >= 16 else None
    pool.node(name, [value, pool.given(index), pool.given(updates)], reduction=how)


@draws("OneHot", first=9)
def _one_hot(pool: Pool, name: str) -> None:
    index = pool.given(pool.numbers.integers(-2, 4, pool.shape(pool.rng.randint(1, 2))))
    pair = pool.weight(np.array([0.5, 2.0], np.float32))
    depth = pool.weight(np.array(pool.rng.randint(2, 5), np.int64))
    pool.node(name, [index, depth, pair], axis=pool.rng.choice((None, 0, -1)))


@draws("TopK")
def _topk(pool: Pool, name: str) -> None:
    value = pool.floats(least=1)
    axis = pool.axis(value)
    count = pool.rng.randint(1, pool.values[value].shape[axis])
    if pool.opset < 10:
        pool.node(name, [value], 2, axis=axis, k=count)
        return
    later = {"largest": pool.rng.choice((None, 0, 1))} if pool.opset >= 11 else {}
    pool.node(name, [value, pool.ints([count])], 2, axis=axis, **later)


@draws("Shape", "Size")
def _shape(pool: Pool, name: str) -> None:
    pool.node(name, [pool.floats()])


@draws("ConstantOfShape", "EyeLike", first=9)
def _made(pool: Pool, name: str) -> None:
    from onnx import helper

    if name == "EyeLike":
        pool.node(name, [pool.floats(rank=2)], k=pool.rng.choice((None, -1, 1)))
        return
    value = helper.make_tensor("value", 7, [1], [3]) if pool.rng.random() < 0.5 else None
    pool.node(name, [pool.node("Shape", [pool.floats()])[0]], value=value)


@draws("Range", first=11)
def _range(pool: Pool, name: str) -> None:
    ends = [np.array(value, np.int64) for value in (pool.rng.randint(-3, 3), 5, 2)]
    pool.node(name, [pool.given(end) for end in ends])


@draws("NonZero", "Compress", first=9)
def _data_sized(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", "bool", least=1)
    if name == "NonZero":
        pool.node(name, [value])
        return
    size = pool.values[value].shape[0]
    pool.node(name, [value, pool.given(pool.drawn("bool", (size,)))], axis=0)


@draws("Unique", first=11)
def _unique(pool: Pool, name: str) -> None:
    value = pool.of("int64", "float32", rank=1)
    pool.node(name, [value], 4, sorted=1)


@draws("Trilu", first=14)
def _trilu(pool: Pool, name: str) -> None:
    value = pool.floats(least=2)
    offset = pool.weight(np.array(pool.rng.randint(-1, 1), np.int64))
    pool.node(name, [value, offset][: pool.rng.randint(1, 2)], upper=pool.rng.choice((None, 0)))


@draws("ReverseSequence", first=10)
def _reverse_sequence(pool: Pool, name: str) -> None:
    value = pool.given(pool.drawn("float32", (4, 3, 2)))
    pool.node(name, [value, pool.given(np.array([4, 1, 2], np.int64))], time_axis=0, batch_axis=1)

"""Indices come from data, so they are compared with their axes."""

import numpy as np
import pytest

from tests.unit.export.files import File, four
from weft import Context, Tensor, load_function


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int8", "uint64", "int16"])
def test_an_index_without_a_mask_reads_nothing_outside(tmp_path, dtype):
    index = Tensor([1, 2, 3], dtype=dtype).realize()
    file = File(tmp_path / "f.weft", lambda x, i: x[i], four(), index)
    first, second, *_ = file.text.splitlines()
    file.text = f"{first}\n{second}\nreturn tuple(p0, p1, p0[p1])"
    function = file.loaded()
    info = np.iinfo(dtype)
    values = Tensor(np.array([info.max, 3, info.min], dtype)).realize()
    with Context(CHECK="memory"):
        wanted = [0.0, 4.0, 1.0 if info.min == 0 else 0.0]
        assert function(four(), values).tolist() == wanted


def test_contents_that_are_indices_read_nothing_outside(counter):
    position = counter.contents.index(np.array([0, 3], np.int32).tobytes())
    counter.contents[position] = np.array([1 << 30, -7], np.int32).tobytes()
    with Context(CHECK="memory"):
        assert counter.loaded()(four()).tolist() == [0.0, 0.0]


def test_a_write_at_an_index_without_a_mask_writes_nothing_outside(tmp_path):
    def write(x, i):
        x[i] = 9.0
        return x + 0

    index = Tensor([1, 2]).realize()
    file = File(tmp_path / "f.weft", write, four(), index)
    first, second, _, *rest = file.text.splitlines()
    file.text = "\n".join(
        [first, second, "v0 = store p0[p1] = float32(9.0).reshape(1).expand(2)", *rest]
    )
    with Context(CHECK="memory"):
        x = four()
        file.loaded()(x, Tensor([3, 1 << 30]).realize())
        assert x.tolist() == [1.0, 2.0, 3.0, 9.0]


def test_a_scatter_without_a_mask_writes_nothing_outside(tmp_path):
    file = File(
        tmp_path / "f.weft",
        lambda x, i: x.scatter_reduce(0, i, x[:2], "sum"),
        four(),
        Tensor([1, 2]).realize(),
    )
    start = file.text.partition("v0 = ")[0]
    file.text = (
        start
        + "v0 = p0.scatter(ADD, p0.shrink((0, 2)), true, p1)\n"
        + ("return tuple(p0, p1, v0)")
    )
    with Context(CHECK="memory"):
        assert file.loaded()(four(), Tensor([3, -(1 << 30)]).realize()).tolist() == [1, 2, 3, 5]


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("p0 << p1", [0, 0, 0, 2]),
        ("p0 >> p1", [0, -1, 0, 0]),
        ("pow(p0, p1)", [1, 1, 1, 1]),
        ("p0 << -3", [0, 0, 0, 0]),
        ("p0 >> int32(-3).reshape(1).expand(4)", [0, -1, 0, 0]),
        ("pow(p0, -3)", [1, 1, 1, 1]),
    ],
)
def test_negative_amounts_are_defined(tmp_path, expression, wanted, device):
    x, y = (Tensor([5, -5, 7, 1]).realize() for _ in range(2))
    file = File(tmp_path / "f.weft", lambda x, y: x + y, x, y)
    file.replace("p0 + p1", expression)
    file.write()
    values = [[5, -5, 7, 1], [-1, -2, -40, 1]]
    arguments = [Tensor(each, device=device).realize() for each in values]
    assert load_function(file.path, device=device)(*arguments).tolist() == wanted

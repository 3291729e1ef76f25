"""Files that were crafted to do more than compute: each is refused, and nothing has happened."""

import json
import time

import numpy as np
import pytest

import weft
from weft import Context, Tensor, Variable, jit, load_function, save_function
from weft.export.container import read_container, write_container
from weft.ir.build import param
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.text import dump
from weft.ir.uop import make

REFUSED = "the header says what no function is"


class File:
    """The header, the text and the contents of a function, to be edited and written again."""

    def __init__(self, path, function, *args, donate=()):
        self.path = path
        save_function(jit(function, donate=donate), path, *args)
        self.header, (text, *self.contents) = read_container(path)
        self.text = text.decode()

    def replace(self, old, new, count=-1):
        assert old in self.text
        self.text = self.text.replace(old, new, count)

    def write(self):
        write_container(self.path, self.header, [self.text.encode(), *self.contents])

    def refused(self, words):
        self.write()
        with pytest.raises(weft.FileFormatError, match=REFUSED) as error:
            load_function(self.path)
        assert words in str(error.value)


def four():
    return Tensor([1.0, 2.0, 3.0, 4.0]).realize()


@pytest.fixture
def double(tmp_path):
    return File(tmp_path / "f.weft", lambda x: x * 2, four())


@pytest.fixture
def captured(tmp_path):
    weight = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
    return File(tmp_path / "f.weft", lambda x: x @ weight, Tensor([[1.0, 2.0]]).realize())


@pytest.fixture
def counter(tmp_path):
    """A function that writes what it captured, and takes rows of a constant."""
    total = Tensor([0.0, 0.0, 0.0, 0.0]).realize()

    def step(x):
        total.assign(total + x)
        return total[np.array([0, 3])] * 2

    return File(tmp_path / "f.weft", step, four())


# Code and names of what is outside.


def test_finished_code_is_not_run(double):
    p0 = param(0, dtypes.float32, (4,))
    arg = ("evil", "CPU:LLVM:x86_64", "", "cc" * 64, (1,), (), ())
    program = make(Op.PROGRAM, dtypes.void, (p0, param(1, dtypes.float32, (4,))), arg)
    call = make(Op.CALL, dtypes.void, (p0,), program)
    item = make(Op.ITEM, dtypes.float32, (call,), 0)
    double.text = dump(make(Op.TUPLE, dtypes.void, (p0, item)))
    double.refused("PROGRAM is not an op")


def test_kernels_are_not_run(double):
    double.text = """
def k:
  kernel "k" r0 loop:
    p1 = param 1: float32[4]
    p0 = param 0: float32[4]
    r0 < 4
    store p1[r0 + 1000000] = load p0[r0 + 1000000] for r0

p0 = param 0: float32[4]
v0 = call k(p0)
return tuple(p0, v0.item(0))"""
    double.refused("is not an op")


@pytest.mark.parametrize("number", range(0, 40, 7))
def test_memory_of_the_process_is_not_named(double, number):
    secret = Tensor([5.0] * 4).realize()
    double.replace("p0 * 2.0", f'buffer {number} "CPU": float32[4] * 2.0')
    double.refused("BUFFER is not an op")
    assert secret.tolist() == [5.0] * 4


@pytest.mark.parametrize("device", ["DISK:{}", "CPU", "PYTHON"])
def test_nothing_is_copied_to_another_place(double, tmp_path, device):
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    double.replace("p0 * 2.0", f'p0.copy("{device.format(precious)}")')
    double.refused("COPY is not an op")
    assert precious.read_bytes() == b"precious"


def test_nothing_is_laid_over_devices(double):
    double.replace("p0 * 2.0", 'SHARD[float32](p0; (("CPU", "CPU:1"), 0, (2, 2)))')
    double.refused("SHARD is not an op")


@pytest.mark.parametrize("device", ["DISK:{}", "DISK", "disk:{}", "CPU:{}", "", None, 7, ["CPU"]])
def test_a_file_runs_on_devices_that_compute(double, tmp_path, device):
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    double.header["device"] = device.format(precious) if isinstance(device, str) else device
    double.write()
    with pytest.raises(weft.FileFormatError, match="the function is for the device"):
        load_function(double.path)
    assert precious.read_bytes() == b"precious"


def test_names_of_devices_in_other_places_are_not_read(double):
    double.header["devices"] = ["DISK:precious"]
    double.refused("devices")


# The text of the graph against the header.


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("float32[4]", "float32[4000000]", "PARAM 0 is float32 of (4000000,) in the graph"),
        ("float32[4]", "float32[3]", "PARAM 0 is float32 of (3,) in the graph"),
        ("float32[4]", "float32[2, 2]", "PARAM 0 is float32 of (2, 2) in the graph"),
        ("param 0", "param 1", "does not begin with PARAM 0"),
        ("param 0", "param 4611686018427387904", "does not begin with PARAM 0"),
        ("p0 * 2.0", "param 7: float32[4]", "a PARAM 7 that is not among its parameters"),
        ("p0 * 2.0", "param 0: float32[8].shrink((4, 8))", "a PARAM 0 that is not among"),
        ("p0 * 2.0", "p0.expand(400)", "EXPAND"),
        ("p0 * 2.0", "p0.reshape(4, 1).expand(4, 9)", "output 0 is float32 of (4, 9)"),
        ("p0 * 2.0", "p0.reshape(400)", "RESHAPE keeps the number of elements"),
        ("p0 * 2.0", "p0.shrink((0, 400))", "SHRINK cuts inside the value"),
        ("p0 * 2.0", "p0.shrink((100, 104))", "SHRINK cuts inside the value"),
        ("p0 * 2.0", "p0.bitcast(int32)", "output 0 is int32"),
        ("p0 * 2.0", "p0.bitcast(float64)", "bitcast keeps the number of bits"),
        ("p0 * 2.0", "p0.after(store p0.shrink((0, 9)) = 1.0)", "SHRINK cuts inside"),
        ("p0 * 2.0", "p0.after(store p0.expand(4) = 1.0)", "STORE writes to a view"),
        ("p0 * 2.0", "load p0[0]", "LOAD is not an op"),
        ("p0 * 2.0", "iota: float32[4]", "IOTA"),
        ("p0 * 2.0", "p0.permute(3)", "PERMUTE names each axis once"),
        ("p0 * 2.0", "PERMUTE[float32](p0; none)", "PERMUTE names each axis once"),
        ("p0 * 2.0", "RESHAPE[float32](p0; 4)", "the sizes are not a tuple"),
        ("p0 * 2.0", "p0.reduce(SHL, 0)", "REDUCE folds"),
        ("p0 * 2.0", "FLIP[float32](p0; (0.5,))", "FLIP names axes"),
        ("p0 * 2.0", "p0 * int32(2)", "the sources have one dtype"),
        ("p0 * 2.0", "CALL[float32](p0; 3)", "the body of a CALL is not a graph"),
        ("p0 * 2.0", "CUSTOM_GRADIENT[float32](p0; none)", "not well formed"),
        ("p0 * 2.0", "TUPLE[void](p0)", "a TUPLE is the result of a graph"),
        ("return tuple(p0, p0 * 2.0)", "return p0", "not a tuple"),
        ("return tuple(p0, p0 * 2.0)", "return tuple(p0)", "not as many values"),
        ("return tuple(p0, p0 * 2.0)", "return tuple(p0, p0, p0)", "not as many values"),
        (
            "return tuple(p0, p0 * 2.0)",
            "return tuple(p0 * 2.0, p0)",
            "does not begin with PARAM 0",
        ),
        ("float32[4]", "float32[" + "1, " * 70 + "4]", "axes"),
        ("p0 * 2.0", "iota: int32[281474976710657]", "an axis has"),
        ("p0 * 2.0", "p0.reshape(1, 4).expand(281474976710656, 4)", "elements"),
        ("p0 * 2.0", "p0.reshape(" + "9" * 5000 + ")", "a number has too many digits"),
        ("p0 * 2.0", "(" * 5000 + "p0" + ")" * 5000, "nested too deeply"),
        ("p0 * 2.0", "-" * 5000 + "p0", "nested too deeply"),
    ],
)
def test_texts_that_lie(double, old, new, words):
    double.replace(old, new)
    double.refused(words)


def put(*path_and_value):
    """An edit of the header: the value at the end of a path of keys."""
    *path, value = path_and_value

    def edit(header):
        for key in path[:-1]:
            header = header[key]
        header[path[-1]] = value

    return edit


STEPS = ("recipes", 0, "steps")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (put("leaves", 0, "shape", [2]), "PARAM 0 is float32 of (4,) in the graph"),
        (put("leaves", 0, "shape", [4000]), "PARAM 0 is float32 of (4,) in the graph"),
        (put("leaves", 0, "dtype", "float64"), "input 0 is float64"),
        (put("leaves", 0, "dtype", "float32x4"), "no dtype of tensors"),
        (put("leaves", 0, "dtype", "void"), "no dtype of tensors"),
        (put("leaves", 0, "shape", [-4]), "-4 is no size"),
        (put("leaves", 0, "shape", [True]), "True is no size"),
        (put("leaves", 0, "shape", [4.0]), "4.0 is no size"),
        (put("leaves", 0, {"object": "Model"}), "there is no input 0"),
        (put("leaves", 0, {"value": [1]}), "expected a number, text or null"),
        (put("leaves", []), "not as many leaves"),
        (put("names", []), "not a name for each argument"),
        (put("arguments", None), "positions and names"),
        (put("arguments", "parts", 0, "kind", "set"), "no kind of container"),
        (put("rows", [[0, False, False, True, False]]), "the rows"),
        (put("rows", [[0, False, False, False, True]]), "the rows"),
        (put("rows", [[-1, False, False, False, False]]), "the rows"),
        (put("rows", []), "the rows"),
        (put("outputs", 0, 0, "float64"), "output 0 is float32 of (4,) in the graph"),
        (put("outputs", 0, 1, [1]), "output 0 is float32 of (4,) in the graph"),
        (put("outputs", 0, 1, [4, 4]), "output 0 is float32 of (4,) in the graph"),
        (put("outputs", 0, 2, 0), "output 0 has 2 sources"),
        (put("outputs", 0, 2, -1), "expected a number below 1, got -1"),
        (put("outputs", 0, 2, 7), "expected a number below 1, got 7"),
        (put("outputs", 0, 2, "0"), "expected a number below 1"),
        (put("outputs", 0, 3, False), "not as many values"),
        (put("outputs", []), "not as many values"),
        (put("outputs", [["float32", [4], None, True]] * 2), "not as many values"),
        (put("roles", [["input", 1]]), "there is no input 1"),
        (put("roles", [["input", -1]]), "expected a number, got -1"),
        (put("roles", [["captured", 0]]), "there is no captured 0"),
        (put("roles", [["constant", 0]]), "there is no constant 0"),
        (put("roles", [["output", 0]]), "output 0 has 2 sources"),
        (put("roles", [["owner", 0]]), "no role of memory"),
        (put("roles", [["input", 0], ["input", 0]]), "two parameters are the same memory"),
        (put("roles", []), "not as many values"),
        (put("versions", 1), "not as many values"),
        (put("versions", -1), "expected a number"),
        (put("versions", 10**30), "expected a number"),
        (put("captured", 1), "expected a number below 1"),
        (put("captured", -1), "expected a number below 1"),
        (put("memory", [["float32", [1]]]), "1 blocks for 1 tensors"),
        (put("recipes", 0, "output", 1), "expected a number below 1"),
        (put("recipes", 0, "output", -1), "expected a number below 1"),
        (put("recipes", 0, "twin", 0), "expected a number below 0"),
        (put("recipes", []), "not a recipe for each result"),
        (put("recipes", [{"value": 1}] * 2), "not a recipe for each result"),
        (put("recipes", 0, {"state": 0, "steps": []}), "expected a number below 0"),
        (put("recipes", 0, {"argument": 1, "steps": None}), "expected a number below 1"),
        (put("recipes", 0, {"size": "return 7.5"}), "expected a dtype"),
        (put("recipes", 0, {"size": "return param 0: index[]"}), "computed from something else"),
        (put("recipes", 0, {"size": 'return variable "n" 1..4'}), "no argument says what 'n' is"),
        (put(*STEPS, [["SHRINK", [[0, 400]], []]]), "SHRINK cuts inside the value"),
        (put(*STEPS, [["SHRINK", [[-4, 4]], []]]), "pair of bounds for each axis"),
        (put(*STEPS, [["RESHAPE", [400], []]]), "RESHAPE keeps the number of elements"),
        (put(*STEPS, [["EXPAND", [400], []]]), "EXPAND repeats axes of size 1"),
        (put(*STEPS, [["COPY", "DISK:x", []]]), "makes no view"),
        (put(*STEPS, [["PERMUTE", [7], []]]), "PERMUTE names each axis once"),
        (put(*STEPS, [["RESHAPE", {"a": 1}, []]]), "expected a number or null"),
        (put(*STEPS, [["SHRINK", [[0, None]], ['return variable "m" 0..9']]]), "SHRINK"),
        (put("results", {"kind": "dict", "names": [], "parts": [None]}), "not one name"),
        (put("results", {"kind": "dict", "names": [[]], "parts": [None]}), "expected a number"),
        (put("name", ["f"]), "expected text"),
    ],
)  # fmt: skip
def test_headers_that_lie(double, edit, words):
    edit(double.header)
    double.refused(words)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda f: f.contents.__setitem__(0, b""), "a block has 0 bytes"),
        (lambda f: f.contents.__setitem__(0, bytes(12)), "a block has 12 bytes"),
        (lambda f: f.contents.__setitem__(0, bytes(1600)), "a block has 1600 bytes"),
        (lambda f: f.contents.clear(), "1 blocks for 1 tensors"),
        (lambda f: f.contents.append(b"more"), "3 blocks for 1 tensors"),
        (lambda f: put("memory", 0, 1, [200, 2])(f.header), "a block has 16 bytes"),
        (lambda f: put("memory", 0, 0, "float64")(f.header), "a block has 16 bytes"),
        (lambda f: put("memory", 0, 1, [4])(f.header), "captured 0 is float32 of (4,)"),
        (lambda f: put("memory", 0, 1, ['return variable "n" 4..4'])(f.header), "symbolic shape"),
        (lambda f: put("memory", 0, 0, "int32")(f.header), "captured 0 is int32"),
        (lambda f: put("captured", 0)(f.header), "there is no captured 0"),
    ],
)
def test_contents_that_lie(captured, edit, words):
    edit(captured)
    captured.refused(words)


@pytest.mark.parametrize("sizes", [[-1, 17], [True], [10**30], ["4"], [1.5], None, [[]]])
def test_blocks_are_sizes(double, sizes):
    double.write()
    data = double.path.read_bytes()
    text = json.dumps({**double.header, "version": 2, "blocks": sizes}).encode()
    size = int.from_bytes(data[14:22], "little")
    double.path.write_bytes(data[:14] + len(text).to_bytes(8, "little") + text + data[22 + size :])
    with pytest.raises(weft.FileFormatError):
        load_function(double.path)


# Writes.


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("store p0 = ", "store p1 = ", "AFTER waits for a write to other memory"),
        ("p0.after(v0)", "(p0 + 0.0).after(v0)", "AFTER is a version of something else"),
        ("p0.after(v0)", "p0.reshape(4).after(v0)", "AFTER is a version of something else"),
        ("p0.after(v0)", "p0.after(tuple(p1))", "a TUPLE is the result of a graph"),
        ("return tuple(p0, p1, p2, v1,", "return tuple(p0, p1, p2, p0,", "no write to memory"),
        ("return tuple(p0, p1, p2, v1,", "return tuple(p0, p1, p2, v0,", "no value for TUPLE"),
    ],
)
def test_writes_that_lie(counter, old, new, words):
    counter.replace(old, new)
    counter.refused(words)


def test_a_constant_is_not_written(counter):
    numbers = [number for number, _ in counter.header["roles"]]
    constant = numbers.index("constant")
    counter.replace(
        "return tuple(", f"w = p{constant}.after(store p{constant} = 0)\nreturn tuple("
    )
    head, tail = counter.text.rsplit(", ", 1)
    counter.text = f"{head}, w, {tail}"
    counter.header["versions"] += 1
    counter.refused("a constant is written")


def test_memory_has_one_last_version(counter):
    counter.replace("p0, p1, p2, v1,", "p0, p1, p2, v1, v1,")
    counter.header["versions"] += 1
    counter.refused("two last versions")


@pytest.fixture
def donated(tmp_path):
    def both(x, y):
        return x + y, x * y

    return File(tmp_path / "f.weft", both, four(), four(), donate=(0, 1))


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (put("outputs", 1, 2, 0), "two outputs take the memory of one argument"),
        (put("outputs", 0, 1, [8]), "output 0 is float32 of (4,) in the graph"),
        (put("outputs", 0, 2, None), "output 0 has 0 sources"),
        (put("leaves", 0, "shape", [1]), "PARAM 0 is float32 of (4,)"),
        (put("rows", 0, 4, False), "the rows"),
    ],
)
def test_donors_that_lie(donated, edit, words):
    assert [output[2] for output in donated.header["outputs"]] == [0, 1]
    edit(donated.header)
    donated.refused(words)


def test_an_argument_that_is_not_written_is_no_donor(double):
    double.header["outputs"][0] = ["float32", [4], 0, False]
    double.header["rows"][0][4] = True
    double.replace("tuple(p0, p0 * 2.0)", "tuple(p0)")
    double.refused("output 0 is not written")


# Indices: they come from data, so they are compared with their axes.


def loaded(file):
    file.write()
    return load_function(file.path)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int8", "uint64", "int16"])
def test_an_index_without_a_mask_reads_nothing_outside(tmp_path, dtype):
    index = Tensor([1, 2, 3], dtype=dtype).realize()
    file = File(tmp_path / "f.weft", lambda x, i: x[i], four(), index)
    first, second, *_ = file.text.splitlines()
    file.text = f"{first}\n{second}\nreturn tuple(p0, p1, p0[p1])"
    function = loaded(file)
    info = np.iinfo(dtype)
    values = Tensor(np.array([info.max, 3, info.min], dtype)).realize()
    with Context(CHECK="memory"):
        wanted = [0.0, 4.0, 1.0 if info.min == 0 else 0.0]
        assert function(four(), values).tolist() == wanted


def test_contents_that_are_indices_read_nothing_outside(counter):
    place = counter.contents.index(np.array([0, 3], np.int32).tobytes())
    counter.contents[place] = np.array([1 << 30, -7], np.int32).tobytes()
    with Context(CHECK="memory"):
        assert loaded(counter)(four()).tolist() == [0.0, 0.0]


def test_a_write_at_an_index_without_a_mask_writes_nothing_outside(tmp_path):
    def write(x, i):
        x[i] = 9.0
        return x + 0

    index = Tensor([1, 2]).realize()
    file = File(tmp_path / "f.weft", write, four(), index)
    first, second, _, *rest = file.text.splitlines()
    file.text = "\n".join([first, second, "v0 = store p0[p1] = float32(9.0).reshape(1).expand(2)", *rest])
    with Context(CHECK="memory"):
        x = four()
        loaded(file)(x, Tensor([3, 1 << 30]).realize())
        assert x.tolist() == [1.0, 2.0, 3.0, 9.0]


def test_a_scatter_without_a_mask_writes_nothing_outside(tmp_path):
    file = File(
        tmp_path / "f.weft",
        lambda x, i: x.scatter_reduce(0, i, x[:2], "sum"),
        four(),
        Tensor([1, 2]).realize(),
    )
    start, rest = file.text.split("v0 = ", 1)
    file.text = (
        start
        + "v0 = p0.scatter(ADD, p0.shrink((0, 2)), true, p1)\n"
        + ("return tuple(p0, p1, v0)")
    )
    with Context(CHECK="memory"):
        assert loaded(file)(four(), Tensor([3, -(1 << 30)]).realize()).tolist() == [1, 2, 3, 5]


# Symbolic sizes: what is legal is legal for every value.


@pytest.fixture
def symbolic(tmp_path):
    n = Variable("n", 1, 4)
    return File(tmp_path / "f.weft", lambda x, n: x[:n] * 2, four(), n.bind(2))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("(0, n)", "(0, n + 1)", "SHRINK is not inside"),
        ("(0, n)", "(2, n)", "SHRINK is not inside"),
        ("(0, n)", "(n + -4, n)", "SHRINK is not inside"),
        ("(0, n)", "(0, n * n)", "SHRINK is not inside"),
        ("1..4", "1..4000000", "variables are called 'n'"),
        ("p0.shrink((0, n))", "p0.reshape(n)", "RESHAPE changes the number of elements"),
        ("p0.shrink((0, n))", "p0.pad((n + -4, 0))", "PAD takes elements away"),
        ("p0.shrink((0, n))", "p0.shrink((0, index(int32(p0)).reduce(MAX, 0).reshape()))", "size"),
        ("p0.shrink((0, n))", "float32(iota: int32[n + -3])", "an axis has -2 elements"),
        (
            "p0.shrink((0, n))",
            'p0.shrink((0, variable "m" 0..4)).reduce(ADD, 0).expand(n)',
            "what 'm' is",
        ),
        ("p0.shrink((0, n))", "p0.reshape(1, 4).expand(n << 60, 4)", "a size"),
    ],
)
def test_sizes_that_are_wrong_for_some_value(symbolic, old, new, words):
    symbolic.replace(old, new)
    symbolic.refused(words)


def test_a_call_hands_over_the_shape_that_its_body_expects(tmp_path):
    n = Variable("n", 1, 4)
    add = weft.function(lambda x: x + 1)
    file = File(tmp_path / "f.weft", lambda x, n: add(x[:n]), four(), n.bind(2))
    file.replace("call f0(p0.shrink((0, n)))", "call f0(p0.shrink((0, 1)))")
    file.refused("CALL has another shape")


@pytest.mark.parametrize("count", [3, 7, 40, 2000])
def test_sizes_do_not_explode(symbolic, count):
    squares = [f"v{k + 1} = v{k} * v{k}" for k in range(count)]
    lines = "\n".join(["v0 = n + 1", *squares, "return"])
    symbolic.replace("return", lines)
    symbolic.replace("(0, n)", f"(0, v{count})")
    start = time.monotonic()
    symbolic.refused("S" if count == 3 else "a symbolic size is too long")
    assert time.monotonic() - start < 20


def test_calls_do_not_explode(double):
    lines = ["def f0:", "  p0 = param 0: float32[4]", "  return p0 + p0", ""]
    for level in range(1, 60):
        lines += [f"def f{level}:", "  p0 = param 0: float32[4]"]
        lines += [f"  v0 = call f{level - 1}(p0)"]
        lines += [f"  return v0 + call f{level - 1}(v0)", ""]
    double.text = "\n".join([*lines, "p0 = param 0: float32[4]", "return tuple(p0, call f59(p0))"])
    double.refused("nodes, calls counted by bodies")


def test_a_called_function_writes_nothing(double):
    double.text = """
def f0:
  p0 = param 0: float32[4]
  v0 = store p0 = 1.0
  return p0.after(v0)

p0 = param 0: float32[4]
return tuple(p0, call f0(p0))"""
    double.refused("a called function writes to memory")


@pytest.mark.parametrize("depth", [101, 900, 100_000])
def test_deep_headers(double, depth):
    data = double.path.read_bytes()
    size = int.from_bytes(data[14:22], "little")
    nest = '{"kind":"list","parts":[' * depth + "null" + "]}" * depth
    text = data[22 : 22 + size].decode().replace('"results": null', f'"results": {nest}').encode()
    assert nest.encode() in text
    double.path.write_bytes(data[:14] + len(text).to_bytes(8, "little") + text + data[22 + size :])
    with pytest.raises(weft.FileFormatError):
        load_function(double.path)


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        load_function(tmp_path / "nothing")
    assert isinstance(error.value, weft.UsageError)
    with pytest.raises(weft.DeviceError, match="cannot be read"):
        load_function(tmp_path)
    with pytest.raises(FileNotFoundError):
        save_function(jit(lambda x: x), tmp_path / "no" / "folder", four())


def test_what_only_this_process_has_is_not_saved(tmp_path):
    with pytest.raises(weft.NotSupported, match="COPY is not an op"):
        save_function(jit(lambda x: x.to("PYTHON").to("CPU") + 1), tmp_path / "f", four())
    assert not (tmp_path / "f").exists()

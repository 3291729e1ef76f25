"""Headers, contents, writes and donors that do not fit each other or the graph."""

import json

import pytest

import weft
from tests.unit.export.files import four
from weft import jit, load_function, save_function


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
        (put("leaves", 0, "dtype", "float32x4"), "expected a dtype of tensors"),
        (put("leaves", 0, "dtype", "void"), "expected a dtype of tensors"),
        (put("leaves", 0, "shape", [-4]), "expected a size, got -4"),
        (put("leaves", 0, "shape", [True]), "expected a size, got True"),
        (put("leaves", 0, "shape", [4.0]), "expected a size, got 4.0"),
        (put("leaves", 0, {"object": "Model"}), "there is no input 0"),
        (put("leaves", 0, {"value": [1]}), "expected a number, text or null"),
        (put("leaves", []), "not as many leaves"),
        (put("names", []), "expected a name for each argument"),
        (put("arguments", None), "positions and names"),
        (put("arguments", "parts", 0, "kind", "set"), "expected a kind of container"),
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
        (put("roles", [["owner", 0]]), "expected a role of memory"),
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
        (put("recipes", []), "expected a description of each result"),
        (put("recipes", [{"value": 1}] * 2), "expected a description of each result"),
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
        (put("results", {"kind": "dict", "names": [], "parts": [None]}), "expected one name"),
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


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("store p0 = ", "store p1 = ", "AFTER waits for a write to other memory"),
        ("p0.after(v0)", "(p0 + 0.0).after(v0)", "AFTER is a version of something else"),
        ("p0.after(v0)", "p0.reshape(4).after(v0)", "AFTER is a version of something else"),
        ("p0.after(v0)", "p0.after(tuple(p1))", "a TUPLE is the result of a graph"),
        (
            "return tuple(p0, p1, p2, v1,",
            "return tuple(p0, p1, p2, p0,",
            "expected a version that is a write",
        ),
        (
            "return tuple(p0, p1, p2, v1,",
            "return tuple(p0, p1, p2, v0,",
            "expected a value as a source of TUPLE",
        ),
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


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("p0.after(store p0 = 7.0) * 2.0", "input 0 is written, and no version says so"),
        ("p0.after(store p0.shrink((0, 1)) = 7.0) * 2.0", "no version says so"),
    ],
)
def test_an_argument_is_not_written_in_silence(double, value, words):
    double.replace("p0 * 2.0", value)
    double.refused(words)


def test_versions_of_memory_are_one_row(counter):
    before = counter.text
    counter.replace("return", "w0 = p0.after(store p0 = 1.0)\nreturn")
    counter.text = counter.text[:-1] + " + w0.shrink((0, 2)))"
    counter.refused("two versions of memory follow one")
    counter.text = before.replace("return", "w0 = v1.after(store p0 = 1.0)\nreturn")
    counter.text = counter.text[:-1] + " + w0.shrink((0, 2)))"
    counter.refused("followed by another one")


def test_memory_has_one_last_version(counter):
    counter.replace("p0, p1, p2, v1,", "p0, p1, p2, v1, v1,")
    counter.header["versions"] += 1
    counter.refused("two last versions")


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


@pytest.mark.parametrize("device", ["DISK:{}", "DISK", "disk:{}", "CPU:{}", "", None, 7, ["CPU"]])
def test_a_file_runs_on_devices_that_compute(double, tmp_path, device):
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    double.header["device"] = device.format(precious) if isinstance(device, str) else device
    double.write()
    with pytest.raises(weft.FileFormatError, match="the function is for the device"):
        load_function(double.path)
    assert precious.read_bytes() == b"precious"


def test_names_of_devices_elsewhere_are_not_read(double):
    double.header["devices"] = ["DISK:precious"]
    double.refused("devices")


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

"""Graphs of files that would do more than compute, or reach outside of their values."""

import pytest

import weft
from tests.unit.export.files import File, four
from weft import Tensor, Variable, jit, save_function
from weft.ir.build import param
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.text import dump
from weft.ir.uop import make


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
def test_nothing_is_copied_to_another_device(double, tmp_path, device):
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    double.replace("p0 * 2.0", f'p0.copy("{device.format(precious)}")')
    double.refused("COPY is not an op")
    assert precious.read_bytes() == b"precious"


def test_nothing_is_sharded_over_devices(double):
    double.replace("p0 * 2.0", 'SHARD[float32](p0; (("CPU", "CPU:1"), 0, (2, 2)))')
    double.refused("SHARD is not an op")


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
        ("p0 * 2.0", "p0.reduce(SHL, 0)", "REDUCE reduces"),
        ("p0 * 2.0", "FLIP[float32](p0; (0.5,))", "FLIP names axes"),
        ("p0 * 2.0", "p0 * int32(2)", "the sources have one dtype"),
        ("p0 * 2.0", "CALL[float32](p0; 3)", "the body of a CALL is not a graph"),
        ("p0 * 2.0", "CUSTOM_GRADIENT[float32](p0; none)", "not well formed"),
        ("p0 * 2.0", "TUPLE[void](p0)", "a TUPLE is the result of a graph"),
        ("return tuple(p0, p0 * 2.0)", "return p0", "expected a graph that is a tuple"),
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


def test_a_call_hands_over_the_shape_that_its_body_expects(tmp_path):
    n = Variable("n", 1, 4)
    add = weft.function(lambda x: x + 1)
    file = File(tmp_path / "f.weft", lambda x, n: add(x[:n]), four(), n.bind(2))
    file.replace("call f0(p0.shrink((0, n)))", "call f0(p0.shrink((0, 1)))")
    file.refused("CALL has another shape")


def test_what_only_this_process_has_is_not_saved(tmp_path):
    with pytest.raises(weft.NotSupported, match="COPY is not an op"):
        save_function(jit(lambda x: x.to("PYTHON").to("CPU") + 1), tmp_path / "f", four())
    assert not (tmp_path / "f").exists()

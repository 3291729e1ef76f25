"""`weft compile`: text in, text out, from any pass to any, and errors that say what is wrong."""

import io
from pathlib import Path

import pytest

from tests.golden.pass_programs import PROGRAMS, graph_of
from weft.cli.main import main
from weft.codegen.phases import CODEGEN
from weft.engine.resume import STEPS
from weft.ir.text import dump

CPU = "CPU:LLVM:x86_64,avx2"
KERNEL = """\
kernel "add" r0 loop:
  p0 = param 0: float32[64]
  p1 = param 1: float32[64]
  r0 < 64
  store p0[r0] = load p1[r0] + 1.0 for r0
"""


@pytest.fixture
def compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Run the command on a text: its status, what it prints, and its errors."""

    def run(text: str, *options: str) -> tuple[int, str, str]:
        path = tmp_path / "graph.txt"
        path.write_text(text)
        status = main(["compile", str(path), *options])
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_a_kernel_becomes_source(compiled):
    status, out, _ = compiled(KERNEL, "--target", CPU)
    assert status == 0
    assert "define" in out
    assert "<8 x float>" in out


def test_opts_are_those_that_are_given(compiled):
    _, out, _ = compiled(KERNEL, "--target", CPU, "--opts", "[]")
    assert "x float>" not in out
    opts = '[["Split", 0, 4, "clamp"], ["Vectorize", 1]]'
    _, out, _ = compiled(KERNEL, "--target", CPU, "--opts", opts, "--to", "choose-opts")
    assert 'kernel "add" r0 loop, r1 "vector"' in out


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("CUDA:PTX:sm_90a", "ptx_kernel"),
        ("C:C:x86-64-v3", "void add("),
        ("OPENCL", "__kernel"),
        ("CPU:LLVM:aarch64", "<4 x float>"),
    ],
)
def test_any_target(compiled, target: str, word: str):
    status, out, err = compiled(KERNEL, "--target", target)
    assert (status, err) == (0, "")
    assert word in out


def test_a_graph_goes_on_from_its_own_output(compiled):
    graph = dump(graph_of(PROGRAMS["softmax"]))
    _, whole, _ = compiled(graph, "--target", CPU)
    for step in STEPS[:-1]:
        _, text, _ = compiled(graph, "--target", CPU, "--to", step)
        following = STEPS[STEPS.index(step) + 1]
        status, rest, err = compiled(text, "--target", CPU, "--from", following)
        assert (status, err) == (0, ""), step
        # A list of instructions has no name.
        if STEPS.index(step) >= STEPS.index("linearize"):
            rest = rest.replace("@kernel", "@reduce_3_8_8_8")
        assert rest == whole, step


def test_each_prints_every_pass(compiled):
    _, out, _ = compiled(KERNEL, "--target", CPU, "--each")
    titles = [line for line in out.splitlines() if line.startswith(("# ", "; "))]
    assert titles[0] == "# normalize-kernel: add"
    assert titles[-1] == "; render: add"
    assert len(titles) == len(CODEGEN.passes) + 1


def test_text_comes_from_stdin(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(KERNEL))
    assert main(["compile", "-", "--to", "normalize-kernel"]) == 0
    assert 'kernel "add"' in capsys.readouterr().out


ERRORS = {
    "an unknown pass": (("--to", "expnd"), ["there is no pass 'expnd'", "fix: write expand"]),
    "passes backwards": (
        ("--from", "expand", "--to", "choose-opts"),
        ["choose-opts comes before expand"],
    ),
    "another level": (
        ("--from", "decompose"),
        ["not what comes before decompose", "decompose takes a kernel of native floats"],
    ),
    "a kernel where a ranged graph is due": (
        ("--from", "split"),
        ["not what comes before split", "split takes a ranged graph"],
    ),
    "an unknown target": (("--target", "TPU:x"), ["there is no target 'TPU:x'"]),
    "opts that are not JSON": (("--opts", "[Split]"), ["--opts cannot be read"]),
    "an unknown opt": (("--opts", '[["Splt", 0]]'), ["--opts cannot be read: 'Splt'", "Split"]),
    "an opt that is refused": (("--opts", '[["Vectorize", 7]]'), ["refused"]),
    "opts too late": (("--from", "flatten-memory", "--opts", "[]"), ["choose-opts is not run"]),
    "an unknown kernel": (("--kernel", "other"), ["no kernel 'other'", "add"]),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(compiled, case: str):
    options, words = ERRORS[case]
    status, out, err = compiled(KERNEL, *options)
    assert (status, out) == (1, "")
    for word in words:
        assert word in err


def test_wrong_text_names_its_line(compiled):
    status, _, err = compiled(KERNEL.replace("load p1[r0]", "load p7[r0]"))
    assert status == 1
    assert "graph.txt:5" in err


def test_a_missing_file(capsys):
    assert main(["compile", "nowhere.txt"]) == 1
    assert "there is no file nowhere.txt" in capsys.readouterr().err

"""What PyTorch users type from habit, run by PyTorch and with `import weft as torch`.

The files of `torch_habits` hold small programs between lines of `%`; the last line is a value.
Those of `NAME.txt` give the same in both. Those of `NAME_that_differ.txt` do not, on purpose; none
of them ends in a raw error of Python, but for operators of foreign objects, which are a TypeError.
"""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest

import weft
from weft import Tensor, UsageError

pytestmark = pytest.mark.peers

FOLDER = Path(__file__).parent / "torch_habits"
GROUPS = ("layers", "training", "tensors")


def programs(name: str) -> list[str]:
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    return [part.strip() for part in text.split("\n%\n") if part.strip()]


def run(framework, program: str):
    """The value of the last line."""

    def floats(*shape):
        values = np.arange(math.prod(shape)) % 11 - 5
        return framework.tensor(values.reshape(shape).astype(np.float32) * 0.3)

    def integers(*shape):
        return framework.tensor((np.arange(math.prod(shape)) % 5).reshape(shape))

    def fill(module):
        for p in module.parameters():
            values = (np.arange(p.numel()) % 7 - 3).reshape(tuple(p.shape))
            p.data.copy_(framework.tensor(values.astype(np.float32) * 0.1))
        return module

    names = {"torch": framework, "nn": framework.nn, "F": framework.nn.functional}
    names |= {"np": np, "math": math, "A": floats, "I": integers, "fill": fill}
    *lines, last = program.split("\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec("\n".join(lines), names)
        return eval(last, names)


def require_same(found, expected, program: str) -> None:
    if isinstance(expected, (list, tuple)) and not isinstance(found, Tensor):
        assert len(found) == len(expected), program
        for a, b in zip(found, expected, strict=True):
            require_same(a, b, program)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys(), program
        for key in expected:
            require_same(found[key], expected[key], program)
    elif hasattr(expected, "detach"):
        ours, theirs = found.detach().numpy(), expected.detach().numpy()
        assert ours.shape == theirs.shape, program
        kinds = {ours.dtype, theirs.dtype}
        assert len(kinds) == 1 or kinds == {np.dtype("int32"), np.dtype("int64")}, program
        np.testing.assert_allclose(ours, theirs, 2e-4, 2e-5, err_msg=program)
    elif isinstance(expected, np.ndarray | float):
        np.testing.assert_allclose(found, expected, 2e-4, 1e-5, err_msg=program)
    elif isinstance(expected, (bool, int, str)) or expected is None:
        assert found == expected, program
    else:
        assert type(found).__name__ == type(expected).__name__, program


def error_of(framework, program: str) -> Exception | None:
    try:
        run(framework, program)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("group", GROUPS)
def test_habits_give_what_they_give_in_pytorch(group: str):
    torch = pytest.importorskip("torch")
    for program in programs(group):
        refusal = error_of(torch, program)
        if refusal is None:
            require_same(run(weft, program), run(torch, program), program)
        else:
            ours = error_of(weft, program)
            is_operator = isinstance(refusal, TypeError) and isinstance(ours, TypeError)
            assert isinstance(ours, UsageError) or is_operator, program


@pytest.mark.parametrize("group", GROUPS)
def test_what_differs_has_no_raw_error(group: str):
    for program in programs(f"{group}_that_differ"):
        error = error_of(weft, program)
        is_plain = "numel" in program or "np.sin" in program  # tuples and NumPy answer themselves
        assert error is None or isinstance(error, UsageError) or is_plain, program

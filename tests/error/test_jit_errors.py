"""What a user reads who gets a jitted function wrong, word for word."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from weft import Tensor, jit
from weft.support.errors import UsageError
from weft.support.settings import Context


@pytest.fixture(autouse=True)
def interpreter() -> Iterator[None]:
    with Context(DEVICE="PYTHON"):
        yield


def message(function: Callable[[], object]) -> str:
    """Return the message without the location and without line numbers of this file."""
    with pytest.raises(UsageError) as failure:
        function()
    error = failure.value
    assert error.where.file.endswith("test_jit_errors.py")
    blocks = f"{type(error).__name__}: {error}".split("\n\n")
    text = "\n\n".join(block for block in blocks if not block.startswith("  at "))
    lines = []
    for line in text.splitlines():
        if "test_jit_errors.py:" in line:
            before, _, after = line.partition("tests/error/test_jit_errors.py:")
            line = f"{before}FILE{after.lstrip('0123456789')}"
        lines.append(line)
    return "\n".join(lines)


@jit
def read_item(x: Tensor) -> float:
    y = x * 2
    return y.sum().item()


@jit
def branch(x: Tensor, limits: list[Tensor]) -> Tensor:
    return x if (x < limits[1]).all() else -x


@jit
def printed(x: Tensor) -> None:
    print(x + 1)


class Model:
    """Something that keeps what it should not."""

    def __init__(self) -> None:
        self.kept: Tensor | None = None
        self.log: list[Tensor] = []
        self.weight = Tensor([1.0, 2.0])

    @jit
    def keep(self, x: Tensor) -> Tensor:
        y = x * self.weight
        self.kept = y + 1
        self.log.append(y)
        return y

    @jit
    def read_weight(self) -> float:
        return self.weight.sum().item()

    @jit
    def slope(self, x: Tensor) -> Tensor:
        loss = (self.weight * x).sum()
        loss.backward()
        return loss


def use_kept() -> object:
    model = Model()
    model.keep(Tensor([1.0, 2.0]))
    assert model.kept is not None
    return model.kept.tolist()


def use_log() -> object:
    model = Model()
    model.keep(Tensor([1.0, 2.0]))
    return model.log[0] + 1


def use_gradient() -> object:
    model = Model()
    model.slope(Tensor([1.0, 2.0]))
    assert model.weight.grad is not None
    return model.weight.grad * 2


def use_donated() -> object:
    x = Tensor([1, 2])
    jit(lambda x: x + 1, donate=[0])(x)
    return x.tolist()


def generator() -> Iterator[int]:
    yield 1


READ = """
  a jitted function is traced once and replayed; what Python reads of a value
  would be the same in every call

  fix: return the tensor and read it outside, pass a number as an argument, or choose
       with where()"""
ESCAPED = """
  a jitted function is traced once and replayed; it gives away the tensors that it
  returns and those that it writes to
"""
KEEP = "  fix: return it, or write it to a tensor that was there before: kept.assign(...)"

MESSAGES: dict[str, tuple[Callable[[], object], str]] = {
    "item": (
        lambda: read_item(Tensor([1.0])),
        """\
NotSupported: read: read_item is being traced, so this value is not known yet

  value       float32 of shape ()
  made at     FILE   return y.sum().item()
  depends on  x
"""
        + READ,
    ),
    "bool": (
        lambda: branch(Tensor([1]), [Tensor([2]), Tensor([3])]),
        """\
NotSupported: read: branch is being traced, so this value is not known yet

  value       bool of shape ()
  made at     FILE   return x if (x < limits[1]).all() else -x
  depends on  x, limits[1]
"""
        + READ,
    ),
    "a tensor from outside": (
        lambda: Model().read_weight(),
        """\
NotSupported: read: Model.read_weight is being traced, so this value is not known yet

  value       float32 of shape ()
  made at     FILE   return self.weight.sum().item()
  depends on  a tensor that was made before the call
"""
        + READ,
    ),
    "kept in an attribute": (
        use_kept,
        """\
NotSupported: this tensor was made while Model.keep was traced, and has no value outside

  made at     FILE   self.kept = y + 1
  escaped at  FILE   self.kept = y + 1
  found in    the attribute kept of a Model
"""
        + f"{ESCAPED}\n{KEEP}",
    ),
    "kept in a list": (
        use_log,
        """\
NotSupported: this tensor was made while Model.keep was traced, and has no value outside

  made at     FILE   y = x * self.weight
  escaped at  FILE   self.log.append(y)
  found in    a list
"""
        + f"{ESCAPED}\n{KEEP}",
    ),
    "kept in grad": (
        use_gradient,
        """\
NotSupported: this tensor was made while Model.slope was traced, and has no value outside

  made at     FILE   loss.backward()
  escaped at  FILE   loss.backward()
  found in    the attribute grad of a tensor
"""
        + f"{ESCAPED}\n  fix: return it, or clear .grad before backward",
    ),
    "donated": (
        use_donated,
        """\
NotSupported: this tensor was donated to a jitted function, and has no value any more

  a donated argument gives its memory to the result

  fix: use the result, or leave the argument out of donate=""",
    ),
    "an array": (
        lambda: jit(lambda data: data)(np.zeros(3)),
        """\
ArgumentTypeError: jit: the argument data is a ndarray, which cannot be compared with other calls

  an argument is a tensor, a list, tuple, dict or dataclass of arguments, or a value
  that is hashable; a value other than a tensor is part of the trace

  fix: pass it as a tensor: Tensor(data)""",
    ),
    "a set": (
        lambda: jit(lambda *parts: parts)(1, {2}),
        """\
ArgumentTypeError: jit: the argument args[1] is a set, which cannot be compared with other calls

  an argument is a tensor, a list, tuple, dict or dataclass of arguments, or a value
  that is hashable; a value other than a tensor is part of the trace

  fix: pass tensors, or a tuple""",
    ),
    "no function": (
        lambda: jit(3),  # type: ignore[type-var]
        """\
ArgumentTypeError: jit: a int cannot be called

  jit takes a function, a method or an object with __call__""",
    ),
    "a generator": (
        lambda: jit(generator),
        """\
ArgumentTypeError: jit: the function is a generator or a coroutine

  a jitted function runs from its first line to its return in one call

  fix: jit the function that computes, and call it from the loop""",
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_message(case: str):
    function, wanted = MESSAGES[case]
    assert message(function) == wanted


def test_a_tensor_that_escaped_can_be_shown():
    model = Model()
    model.keep(Tensor([1.0, 2.0]))
    wanted = "<Tensor without a value: it was made while Model.keep was traced>"
    assert repr(model.kept) == wanted

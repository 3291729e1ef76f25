"""A process that meets ever new shapes keeps nothing of them once its caches are empty."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from weft import Tensor, checkpoint, clear_caches, function, grad, jit, vmap
from weft.engine.buffers import BUFFERS
from weft.export.function import load_function, save_function
from weft.ir.uop import _HELD_BY_USERS, live_nodes
from weft.runtime.llvm.elf_link import LoadedObject


def numbers(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


@function
def layer(x: Tensor, weight: Tensor) -> Tensor:
    return (x @ weight).relu()


def eager(size: int, path: str) -> None:
    (numbers(size, 3) * 2).softmax(0).sum().item()


def called(size: int, path: str) -> None:
    layer(numbers(size, 4), numbers(4, 2)).realize()


def jitted(size: int, path: str) -> None:
    weight = numbers(size)

    @jit
    def step(x: Tensor) -> Tensor:
        return (x * weight).sum()

    for _ in range(3):
        step(numbers(size)).item()


def derived(size: int, path: str) -> None:
    x = numbers(size, 4)
    grad(lambda x: (checkpoint(lambda y: y.exp().sin())(x) @ numbers(4, 2)).logsumexp(0).sum())(x)


def mapped(size: int, path: str) -> None:
    vmap(lambda x: x.cumsum(0).sort()[0])(numbers(2, size)).realize()


def written(size: int, path: str) -> None:
    x = numbers(size, 3).realize()
    x[Tensor([0, 2])] = 1.0
    x[1:, 0] += 2
    x.realize()


def transformed(size: int, path: str) -> None:
    numbers(size).rfft().realize()


def decomposed(size: int, path: str) -> None:
    x = numbers(size, 3, 3)
    (x @ x.transpose(1, 2) + Tensor.eye(3)).cholesky().sum().realize()


def on_disk(size: int, path: str) -> None:
    numbers(size).to(f"DISK:{path}").realize()


def exported(size: int, path: str) -> None:
    x = numbers(size)
    save_function(jit(lambda x: (x * 2).sum()), path, x)
    load_function(path)(x).item()


def sharded(size: int, path: str) -> None:
    numbers(2 * size).shard(("CPU:0", "CPU:1"), 0).sum().item()


def refused(size: int, path: str) -> None:
    with pytest.raises(ValueError, match="inner sizes"):
        numbers(size, 3) @ numbers(size + 4, 2)


KINDS = [eager, called, jitted, derived, mapped, written, transformed, decomposed]
KINDS += [on_disk, exported, sharded, refused]


def kept() -> tuple[int, ...]:
    clear_caches()
    return live_nodes(), len(_HELD_BY_USERS), len(BUFFERS), LoadedObject.count, LoadedObject.size


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nothing_of_a_shape_is_kept(kind, tmp_path):
    """Nodes, memory and code are as many after more shapes as before them."""
    for size in (11, 12):
        kind(size, str(tmp_path / "file"))
    before = kept()
    for size in range(13, 19):
        kind(size, str(tmp_path / "file"))
    assert kept() == before


@pytest.mark.long
def test_no_object_of_any_kind_is_kept():
    """Blocks of Python's own memory, in a process that nothing else runs in."""
    program = """
        import sys
        from weft import clear_caches
        from tests.golden.test_many_shapes import called, derived, eager, written

        def blocks(sizes):
            for size in sizes:
                for kind in (called, derived, eager, written):
                    kind(size, "")
            clear_caches()
            clear_caches()
            return sys.getallocatedblocks()

        before = blocks(range(3, 43))
        print(blocks(range(43, 243)) - before)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 150  # less than one for each of 200 shapes

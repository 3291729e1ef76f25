"""`CHECK=levels` finds the phase that changes an answer."""

import numpy as np
import pytest

import weft
from weft.engine import check, run
from weft.support.settings import Context
from weft.tensor.tensor import Tensor


def random(*shape):
    return Tensor(np.random.default_rng(1).standard_normal(shape).astype(np.float32)).realize()


def test_right_programs_pass():
    x = random(5, 7)
    with Context(CHECK="levels"):
        y = (x.softmax() @ x.T).relu().realize()
        x[1:3] = 2.0
        x.realize()
    assert y.shape == (5, 5)


def test_a_wrong_device_is_named(monkeypatch):
    monkeypatch.setattr(run.Prepared, "_launch", lambda *_: None)
    x = random(6)
    with Context(CHECK="levels"), pytest.raises(weft.InternalError, match="in pass device"):
        (x + 1).realize()


def test_a_wrong_codegen_is_named(monkeypatch):
    real = check.generate

    def wrong(kernel, target, watch):
        return real(weft.ir.walk.substitute(kernel, _plus_one(kernel)), target, watch=watch)

    monkeypatch.setattr(check, "generate", wrong)
    x = random(6)
    with (
        Context(CHECK="levels"),
        pytest.raises(weft.InternalError, match="in pass normalize-kernel"),
    ):
        (x * 2).realize()


def _plus_one(kernel):
    value = kernel.src[0].src[1]
    return {value: value + 1.0}


def test_large_graphs_are_refused():
    x = Tensor(np.zeros(300_000, np.float32)).realize()
    with Context(CHECK="levels"), pytest.raises(weft.NotSupported, match="too large"):
        (x + 1).realize()

"""Switches, branches, random matrices and files at the top of the package."""

from pathlib import Path

import numpy as np
import pytest

import weft
from weft import Context, NotFinite, Tensor


def test_the_default_device_and_dtype():
    with Context():
        weft.set_default_device("PYTHON")
        assert weft.get_default_device() == "PYTHON" == Tensor([1.0]).device
        weft.set_default_tensor_type("torch.DoubleTensor")
        assert Tensor([1.0]).dtype is weft.float64
    assert weft.get_default_device() != "PYTHON"


def test_anomalies():
    with Context():
        weft.set_anomaly_enabled(True)
        assert weft.is_anomaly_enabled()
        with pytest.raises(NotFinite):
            Tensor([-1.0]).log().realize()
        weft.set_anomaly_enabled(False)
        assert not weft.is_anomaly_enabled()


def test_what_changes_nothing_is_accepted():
    weft.set_float32_matmul_precision("high")
    assert weft.get_float32_matmul_precision() == "high"
    weft.set_float32_matmul_precision("highest")
    with pytest.raises(weft.ArgumentError, match="highest, high or medium"):
        weft.set_float32_matmul_precision("low")
    assert weft.set_flush_denormal(True) is False
    weft.set_deterministic_debug_mode("warn")
    assert weft.get_deterministic_debug_mode() == 1
    weft.set_deterministic_debug_mode(0)


def test_branches_and_loops():
    def double(x: Tensor) -> Tensor:
        return weft.cond(x.sum() > 2, lambda x: x * 2, lambda x: x - 1, (x,))

    for call in (double, weft.jit(double), weft.function(double)):
        for _ in range(3):
            assert call(Tensor([2.0, 1.0])).tolist() == [4.0, 2.0]
            assert call(Tensor([1.0, 0.0])).tolist() == [0.0, -1.0]
    count, total = weft.while_loop(
        lambda i, x: i < 4, lambda i, x: (i + 1, x * 2), (Tensor(0), Tensor([1.0]))
    )
    assert count.item() == 4 and total.tolist() == [16.0]


def test_low_rank():
    rng = np.random.default_rng(0)
    a = (rng.normal(size=(9, 3)) @ rng.normal(size=(3, 7))).astype(np.float32)
    for x in (a, a.T.copy(), np.stack([a, 2 * a])):
        u, s, v = weft.svd_lowrank(Tensor(x), q=4)
        got = (u * s.unsqueeze(-2) @ v.mT).numpy()
        np.testing.assert_allclose(got, x, atol=1e-4)
        np.testing.assert_allclose(s.numpy(), np.linalg.svd(x)[1][..., :4], atol=1e-4)
    _, s, _ = weft.pca_lowrank(Tensor(a), q=3)
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(a - a.mean(0))[1][:3], atol=1e-4)
    with pytest.raises(weft.ArgumentError, match="q is 8"):
        weft.svd_lowrank(Tensor(a), q=8)


def test_samples():
    weft.manual_seed(0)
    drawn = weft.poisson(Tensor.full((20_000,), 3.0)).numpy()
    assert abs(drawn.mean() - 3) < 0.1 and abs(drawn.var() - 3) < 0.2
    hits = weft.binomial(Tensor.full((20_000,), 8.0), Tensor.full((20_000,), 0.25)).numpy()
    assert abs(hits.mean() - 2) < 0.05 and abs(hits.var() - 1.5) < 0.1


def test_files(tmp_path: Path):
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(5, dtype=np.float32).tobytes())
    assert weft.from_file(path, size=3).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(weft.ArgumentError, match="shared=True"):
        weft.from_file(path, shared=True, size=3)
    with pytest.raises(weft.ArgumentError, match="inside of the buffer"):
        weft.frombuffer(b"abc", dtype=weft.int16)


def test_numbers_of_python():
    assert weft.sym_max(1, 2) == 2 and weft.sym_ite(True, 1, 2) == 1 and weft.sym_not(False)
    assert weft.sym_sum([1, 2, 3]) == 6 and weft.sym_int(2.5) == 2 and weft.sym_sqrt(4) == 2.0
    assert weft.typename(Tensor([1])) == "torch.IntTensor"

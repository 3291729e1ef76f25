"""Tensors of files from elsewhere, first values of nothing, and a rate that is a list."""

import gzip

import pytest

from weft import FileFormatError, MissingFile, Tensor, nn


def test_a_file_from_elsewhere(tmp_path, monkeypatch):
    path = tmp_path / "data.gz"
    path.write_bytes(gzip.compress(b"abc"))
    assert bytes(Tensor.from_url(path.as_uri(), gunzip=True).tolist()) == b"abc"
    assert Tensor.from_url(str(path)).shape == (path.stat().st_size,)
    path.write_bytes(b"plain")
    with pytest.raises(FileFormatError, match="is not a gzip file"):
        Tensor.from_url(str(path), gunzip=True)
    with pytest.raises(MissingFile, match="cannot be read"):
        Tensor.from_url((tmp_path / "missing").as_uri())
    monkeypatch.setenv("WEFT_DATA", str(tmp_path))
    with pytest.raises(MissingFile, match="cannot download http"):
        Tensor.from_url("http://127.0.0.1:1/x")


def test_empty_first_values_and_a_rate_in_a_list():
    for name in ("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"):
        for shape in ((0, 3), (3, 0), (0, 0)):
            assert getattr(nn.init, name)(Tensor.empty(*shape)).numpy().shape == shape
    rate = Tensor(0.5).contiguous().realize()
    rate.assign(Tensor([0.25]))
    assert rate.item() == 0.25

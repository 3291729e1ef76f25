"""The GPT of the examples has the losses of the same GPT in PyTorch."""

from xml.etree import ElementTree

import loss_curves
import pytest


@pytest.mark.peers("torch")
def test_losses_are_those_of_torch(monkeypatch, tmp_path, capsys):
    for name, value in (("WIDTH", 16), ("LAYERS", 1), ("HEADS", 2), ("CONTEXT", 8), ("BATCH", 4)):
        monkeypatch.setattr(loss_curves, name, value)
    text = "to be, or not to be: that is the question.\n" * 20
    monkeypatch.setattr(loss_curves.nn.datasets, "shakespeare", lambda: text)
    path = tmp_path / "losses.svg"
    assert loss_curves.main([str(path), "--steps", "40"]) < 1e-4
    assert "in 40 steps" in capsys.readouterr().out
    curves = [e for e in ElementTree.parse(path).iter() if e.get("fill") == "none"]
    assert [len(curve.get("points").split()) for curve in curves] == [40, 40]

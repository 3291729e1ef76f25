"""The GPT and the residual network of the examples have the losses of the same in PyTorch."""

from xml.etree import ElementTree

import loss_curves
import pytest
import resnet_curves


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


@pytest.mark.peers("torch")
def test_losses_of_the_residual_network_are_those_of_torch(monkeypatch, tmp_path, capsys):
    """Few steps: a network with batch norms and Adam soon magnifies what rounding does.

    After eight, PyTorch from weights one unit in the last place away is 2e-4 from itself.
    """
    for name, value in (("WIDTH", 4), ("DEPTH", 2), ("BATCH", 8), ("LR", 0.001)):
        monkeypatch.setattr(resnet_curves, name, value)
    path = tmp_path / "losses.svg"
    assert resnet_curves.main([str(path), "--steps", "5", "--synthetic", "100"]) < 2e-4
    assert "PyTorch: last loss" in capsys.readouterr().out
    assert ElementTree.parse(path).getroot().tag.endswith("svg")

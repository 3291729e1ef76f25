"""The reference pages are what the code says; `python tools/tables.py` writes them."""

from pathlib import Path

import api_pages
import pytest
import tables

from weft import Tensor
from weft.cli.main import COMMANDS
from weft.codegen.phases import CODEGEN
from weft.engine import devices
from weft.ir.ops import INFO
from weft.rules.simplify import SIMPLIFY
from weft.schedule.phases import SCHEDULE, SHARD
from weft.support.error_table import ERROR_TABLE
from weft.support.settings import table
from weft.tensor.methods import in_place

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"


def test_pages_are_up_to_date():
    stale = [path.name for path in tables.stale_pages(REFERENCE)]
    assert not stale, f"{', '.join(stale)} stale: run python tools/tables.py"


def test_check_finds_a_stale_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "FOLDER", tmp_path / "reference")
    monkeypatch.setattr(tables, "readers", lambda name: [])
    assert tables.main(["--check"]) == 1
    assert "reference/ops.md is stale" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    assert tables.main([]) == 0
    assert tables.main(["--check"]) == 0
    (tmp_path / "reference" / "ops.md").write_text("# Ops\n")
    assert list(tables.stale_pages(tmp_path / "reference")) == [tmp_path / "reference" / "ops.md"]


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("ops.md", [row.name for row in INFO]),
        ("settings.md", [row.name for row in table()]),
        ("errors.md", [row.name for row in ERROR_TABLE]),
        ("rules.md", [item.name for item in SIMPLIFY.all_rules]),
        ("phases.md", [step.name for step in (*SHARD.passes, *SCHEDULE.passes, *CODEGEN.passes)]),
        ("devices.md", list(devices.KINDS)),
        ("command.md", [f"weft {name}" for name in COMMANDS]),
    ],
)
def test_every_row_is_listed(page: str, names: list[str]):
    text = (REFERENCE / page).read_text(encoding="utf-8")
    headings = set(text.splitlines())
    for name in names:
        is_heading = f"## {name}" in headings or f"### {name}" in headings
        assert is_heading or f'<a id="{name}"></a>' in text, f"{page} leaves out {name}"


def test_every_method_is_listed():
    pages = sorted((REFERENCE / "api").glob("tensor-*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    public = [name for name in dir(Tensor) if not name.startswith("_")]
    methods = [name for name in public if callable(getattr(Tensor, name))]
    assert len(methods) > 400
    for name in methods:
        assert f"\n### {name}\n" in text or f"`{name}`" in text, f"no page has {name}"


def test_every_method_has_an_example():
    """In its docstring; methods in place have that of their twin."""
    own = {name for names in api_pages.methods().values() for name in names}
    shown = {name for name in own if ">>>" in (getattr(Tensor, name).__doc__ or "")}
    twins = {f"{name}_" for name in in_place.NAMES.split()}
    assert own - shown - twins == {"to_torch"}, "PyTorch may be missing; all others have one"


def test_a_file_of_methods_without_a_page_is_found(monkeypatch: pytest.MonkeyPatch):
    families = {name: row for name, row in api_pages.FAMILIES.items() if name != "tensor-unary"}
    monkeypatch.setattr(api_pages, "FAMILIES", families)
    with pytest.raises(ValueError, match=r"weft/tensor/[\w/]+\.py stands on no page"):
        list(api_pages.tensor_page())


def test_settings_name_the_packages_that_read_them():
    assert "rewrite" in tables.readers("SPEC")


def test_the_page_of_devices_opens_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(devices, "_OPEN", {})
    assert any("`OPENCL`" in line for line in tables.devices_page())
    assert not devices._OPEN

"""The table of operators: what the format has is there, and the page of the docs says so."""

from __future__ import annotations

import pytest

onnx = pytest.importorskip("onnx")

from tests.onnx.suite import cases  # noqa: E402
from tests.onnx.test_backend_suite import TOTAL  # noqa: E402
from tools.onnx_page import PAGE, page  # noqa: E402
from weft.onnx.table import rows, try_row  # noqa: E402

OLDEST = 7


def test_every_operator_of_every_opset_has_a_row() -> None:
    """From opset 7 on, each operator of the default domain and of ai.onnx.ml is computed."""
    lacking = set()
    for schema in onnx.defs.get_all_schemas_with_history():
        is_old = not schema.domain and _ends_before(schema, OLDEST)
        if schema.deprecated or is_old:
            continue
        version = max(schema.since_version, OLDEST) if not schema.domain else schema.since_version
        if try_row(schema.domain, schema.name, version) is None:
            lacking.add((schema.domain, schema.name, schema.since_version))
    assert not lacking


def _ends_before(schema: object, opset: int) -> bool:
    """Whether a newer form of the operator takes its place by an opset."""
    newer = (
        onnx.defs.get_schema(schema.name, opset, schema.domain)
        if schema.since_version <= opset
        else None
    )
    return newer is not None and newer.since_version != schema.since_version


def test_rows_have_names_of_their_own() -> None:
    """No operator is entered twice for one opset."""
    keys = [(row.domain, row.name, row.since) for row in rows()]
    assert len(keys) == len(set(keys))


def test_the_page_is_current() -> None:
    """docs/reference/onnx.md is what `python tools/onnx_page.py` writes."""
    if len(cases()) != TOTAL:
        pytest.skip("the page is of another version of onnx")
    assert PAGE.read_text(encoding="utf-8") == page()

"""The benchmark of whole networks: which runs are asked for, and its page."""

import json

from bench.__main__ import benchmarks, chosen
from bench.network_page import page, rows_of
from bench.networks import FORWARD_1, FORWARD_8, NETWORKS, STEP


def test_whole_networks_run_where_they_are_named():
    rows = benchmarks()
    assert {row.name for row in chosen(rows, ["networks"])} == {each.key for each in NETWORKS}
    assert [row.name for row in chosen(rows, ["vit"])] == ["vit"]
    others = chosen(rows, [])
    assert others and not any(row.subject == "networks" for row in others)


def test_a_page_has_a_row_for_each_network_and_the_mean(tmp_path):
    def result(line: str, weft: float, peer: float) -> dict:
        return {"subject": "networks", "line": f"A net, of one, {line}"} | {
            **{"weft": weft, "peer": peer, "ratio": peer / weft}
        }

    file = tmp_path / "results.json"
    rows = [result(FORWARD_1, 2.0, 4.0), result(STEP, 4000.0, 2000.0)]
    rows.append({"subject": "eager", "line": f"x, {FORWARD_8}", "ratio": 9.0})
    file.write_text(json.dumps({"results": rows}))
    text = page(rows_of([file]), "About.")
    assert "| A net, of one | 2 | 4 | **2.00** | - | - | - | 4000 | 2000 | **0.50** |" in text
    assert text.endswith("mean of the 2 ratios is **1.00**;\n1 of them is below 1.\n")

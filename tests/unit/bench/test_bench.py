"""The machinery of `python -m bench` on a fake benchmark, and the corpus against brute force.

Nothing here asserts seconds, and no peer is needed.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import bench.__main__ as command
from bench.contest import (
    Benchmark,
    Contest,
    Figures,
    Line,
    Subject,
    at_most,
    no_more_than_peer,
    times_faster,
)
from bench.corpus.load import Expression, load
from bench.corpus.weft_side import from_weft, simplify_weft, to_weft
from bench.page import page
from bench.report import as_json, number, render
from bench.run import Row, run
from bench.simplifier import is_same

INSTALLED = "json"  # any module serves as a peer that is there


def fake(peer: str | None = INSTALLED, rounds: int = 100) -> Benchmark:
    """A benchmark whose figures get better with each round."""
    subject = Subject("fakes", peer)

    @subject.benchmark(
        "sleep",
        Line("short", "ns", times_faster(2)),
        Line("long", "ns", no_more_than_peer()),
        Line("growth", "x", at_most(4, "x"), of=("long", "short")),
        Line("errors", "errors"),
        rounds=rounds,
    )
    class Fake(Contest):
        """Sleep well.

        This line is not shown.
        """

        def __init__(self, has_peer: bool) -> None:
            super().__init__(has_peer)
            self.played: list[str] = []

        def weft(self) -> Figures:
            self.played.append("weft")
            count = self.played.count("weft")
            return {"short": 10.0 / count, "long": 50.0 / count}

        def peer(self) -> Figures:
            self.played.append("peer")
            return {"short": 20.0, "long": 5.0}

        def compare(self) -> tuple[Figures, Figures]:
            return {"errors": 0}, {"errors": 3} if self.has_peer else {}

        def notes(self) -> list[str]:
            return [" ".join(self.played)]

    (row,) = subject.benchmarks
    return row


@pytest.fixture(autouse=True)
def version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "1.2")


def by_line(rows: list[Row]) -> dict[str, Row]:
    return {row.line.name: row for row in rows}


def test_registry_takes_the_first_line_of_the_docstring():
    row = fake()
    assert (row.subject, row.name, row.about) == ("fakes", "sleep", "Sleep well.")


def test_sides_alternate_and_keep_their_best():
    outcome = run(fake(), rounds=2)
    rows = by_line(outcome.rows)
    assert outcome.notes == ["weft peer weft peer"]
    assert (rows["short"].weft, rows["short"].peer, rows["short"].ratio) == (5.0, 20.0, 4.0)
    assert (rows["growth"].weft, rows["growth"].peer) == (5.0, 0.25)
    assert (rows["errors"].weft, rows["errors"].peer, rows["errors"].ratio) == (0, 3, None)
    assert [row.is_met for row in outcome.rows] == [True, False, False, None]


def test_a_benchmark_limits_its_rounds():
    assert run(fake(rounds=1), rounds=5).notes == ["weft peer"]


def test_further_sides_take_turns_where_they_are_asked_for():
    subject = Subject("fakes", INSTALLED)
    played: list[str] = []

    def play(who: str) -> Figures:
        played.append(who)
        return {"time": {"weft": 2.0, "peer": 4.0, "third": 10.0}[who]}

    @subject.benchmark("race", Line("time", "ms"))
    class Race(Contest):
        def weft(self) -> Figures:
            return play("weft")

        def peer(self) -> Figures:
            return play("peer")

        def others(self, asked: Sequence[str]) -> dict[str, Callable[[], Figures]]:
            sides = {"third": lambda: play("third"), "broken": lambda: {"time": 1 / 0}}
            return sides if "beside" in asked else {}

        def shares(self, figures: Figures) -> dict[str, str]:
            return {"time": f"{50 / figures['time']:.0f}% flops"}

    (row,) = subject.benchmarks
    assert run(row, rounds=1).rows[0].others == {}
    played.clear()
    outcome = run(row, rounds=2, asked=["beside"])
    assert played == ["weft", "peer", "third"] * 2
    assert outcome.rows[0].others == {"third": 10.0}
    assert outcome.notes == ["broken fails: ZeroDivisionError: division by zero"]
    assert render(outcome.rows).endswith("25% flops  third 5.00x")
    assert as_json(outcome.rows, [], 2)["results"][0]["others"] == {"third": 10.0}
    line = {**as_json(outcome.rows, [], 2)["results"][0], "compile": 40.2}
    text = page({"AVX2": {"time": line}}, "About.")
    assert text.endswith("| time | 2 | 25% flops | 40 | 4 | **2.00** | 5.00 |\n")


def test_a_missing_peer_is_a_dash_and_how_to_get_it():
    outcome = run(fake(peer="no_such_peer"), rounds=1)
    assert outcome.notes == ["weft"]
    assert [row.is_met for row in outcome.rows] == [None, None, False, None]
    table = render(outcome.rows)
    assert 'against no_such_peer (not installed: pip install -e ".[peers]")' in table
    assert " ".join(table.splitlines()[3].split()) == "sleep: short 10 - ns - >= 2x unknown"


def failing(side: str) -> Benchmark:
    subject = Subject("fakes", INSTALLED)

    @subject.benchmark("fall", Line("depth", "m"))
    class Fall(Contest):
        def weft(self) -> Figures:
            return self.play("weft")

        def peer(self) -> Figures:
            return self.play("peer")

        def play(self, who: str) -> Figures:
            if who == side:
                raise RecursionError("too deep")
            return {"depth": 1.0}

    return subject.benchmarks[0]


def test_a_peer_that_raises_is_out():
    outcome = run(failing("peer"), rounds=2)
    assert not outcome.error
    assert outcome.notes == ["json fails: RecursionError: too deep"]
    assert " ".join(render(outcome.rows).splitlines()[-1].split()) == "fall: depth 1 fails m -"


def test_an_error_of_weft_is_reported_and_the_peer_still_plays():
    outcome = run(failing("weft"), rounds=2)
    assert "RecursionError: too deep" in outcome.error
    assert (outcome.rows[0].weft, outcome.rows[0].peer) == (None, 1.0)


def test_table():
    assert render(run(fake(), rounds=1).rows).splitlines() == [
        "benchmark        Weft   peer  unit    ratio  goal",
        "------------------------------------------------------------",
        "fakes, against json 1.2",
        "  sleep: short     10     20  ns      2.00x  >= 2x  met",
        "  sleep: long      50      5  ns      0.10x  <= peer  MISSED",
        "  sleep: growth     5  0.250  x       0.05x  <= 4 x  MISSED",
        "  sleep: errors     0      3  errors      -",
    ]


def test_numbers():
    figures = (None, 0, 12, 123456, 0.1234, 1.234, 1234.5)
    shown = ["-", "0", "12", "123,456", "0.123", "1.23", "1,234"]
    assert [number(figure) for figure in figures] == shown


def test_json():
    outcome = run(fake(), rounds=1)
    written = json.loads(json.dumps(as_json(outcome.rows, outcome.notes, rounds=1)))
    assert written["peers"] == {"json": "1.2"}
    assert written["notes"] == ["weft peer"]
    assert written["results"][1] == {
        "subject": "fakes",
        "benchmark": "sleep",
        "line": "long",
        "unit": "ns",
        "weft": 50.0,
        "peer": 5.0,
        "peer_name": "json",
        "peer_fails": False,
        "ratio": 0.1,
        "others": {},
        "share": "",
        "goal": "<= peer",
        "is_met": False,
    }


def test_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(command, "benchmarks", lambda: [fake(), failing("weft")])
    results = tmp_path / "results.json"
    monkeypatch.setattr(command, "HISTORY", tmp_path / "history.jsonl")
    options = ["--only", "sleep", "--rounds", "1", "--json", str(results)]
    assert command.main(options) == 0
    assert "sleep: short" in capsys.readouterr().out
    assert len(json.loads(results.read_text())["results"]) == 4
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 1
    assert command.main(["--rounds", "1"]) == 1
    assert "RecursionError" in capsys.readouterr().err
    assert command.main(["--list"]) == 0
    assert "Sleep well." in capsys.readouterr().out


def test_command_knows_its_names():
    names = [row.name for row in command.benchmarks()]
    assert len(names) == len(set(names))
    with pytest.raises(SystemExit, match="no benchmark is called"):
        command.main(["--only", "nothing"])


EXPRESSIONS = load()
SAMPLE = EXPRESSIONS[:: len(EXPRESSIONS) // 60]


@pytest.mark.parametrize("kind", ["index", "mask", "masked"])
def test_conversion_keeps_the_corpus_as_it_is(kind: str):
    for expression in SAMPLE:
        if expression.kind == kind:
            after = from_weft(to_weft(expression))
            assert is_same(expression, after), expression


@pytest.mark.parametrize("kind", ["index", "mask", "masked"])
def test_simplification_keeps_the_values_of_the_corpus(kind: str):
    for expression in SAMPLE:
        if expression.kind == kind:
            after = from_weft(simplify_weft(to_weft(expression)))
            assert is_same(expression, after), expression


def test_checker_can_fail():
    right = Expression("", "", "index", (("range", 0, 4), ("const", 1), ("add", 0, 1)), 2)
    wrong = Expression("", "", "index", (("range", 0, 4), ("const", 2), ("add", 0, 1)), 2)
    assert is_same(right, right)
    assert not is_same(right, wrong)
    assert not is_same(right, None)

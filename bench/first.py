"""What a person waits for: a model that is built, and its first training step.

Each figure is processor time in a process of its own. Cold is an empty disk cache, warm the next
process; torch is eager, so it has no such difference.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.contest import Contest, Figures, Line, Subject, at_most

SUBJECT = Subject("first", peer="torch")
ROOT = Path(__file__).resolve().parents[1]


def seconds(side: str, model: str, cache: str) -> tuple[float, float]:
    """The seconds of building a model, and of its first step."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.first_steps", side, model],
        **{"cwd": ROOT, "check": True, "capture_output": True, "text": True},
        env={**os.environ, "WEFT_CACHE_DIR": cache},
    )
    built, stepped = map(float, done.stdout.split()[-2:])
    return built, stepped


class _First(Contest):
    model = ""

    def weft(self) -> Figures:
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (seconds("weft", self.model, cache) for _ in range(2))
        return {
            **{"building, cold": cold[0], "building, warm": warm[0]},
            **{"first step, cold": cold[1], "first step, warm": warm[1]},
        }

    def peer(self) -> Figures:
        built, stepped = seconds("torch", self.model, "")
        return {
            **{"building, cold": built, "building, warm": built},
            **{"first step, cold": stepped, "first step, warm": stepped},
        }


@SUBJECT.benchmark(
    "first-gpt",
    Line("building, cold", "s", at_most(1, "s")),
    Line("building, warm", "s", at_most(0.2, "s")),
    Line("first step, cold", "s", at_most(4, "s")),
    Line("first step, warm", "s", at_most(0.8, "s")),
    rounds=1,
)
class FirstGPT(_First):
    """A GPT of 12 blocks of width 192 and AdamW: built, and trained for one step."""

    model = "gpt"


@SUBJECT.benchmark(
    "first-mobilenet",
    Line("building, cold", "s"),
    Line("building, warm", "s"),
    Line("first step, cold", "s", at_most(5, "s")),
    Line("first step, warm", "s", at_most(1, "s")),
    rounds=1,
)
class FirstMobileNet(_First):
    """A network of the size of MobileNetV2: built, and trained for one step."""

    model = "mobilenet"

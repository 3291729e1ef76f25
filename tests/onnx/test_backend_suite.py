"""The ONNX backend suite: what passes may not become less.

`not_passed.txt` lists the cases that do not pass, each with its reason. Every other case passes on
the interpreter, and a listed case that passes has to leave the list. The large models run on CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")

from tests.onnx.suite import DEVICE, cases, run_case

LIST = Path(__file__).with_name("not_passed.txt")
# The suite of onnx 1.23, and how many of it pass.
TOTAL, PASSED = 2033, 2019
PARTS = 16
# Reasons for which a listed case passes on some runs, or on some machines.
MAY_PASS = ("random", "on this machine")
IMAGES = "node/test_image_decoder"
Record = Callable[[str, Any], None]
LARGE = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)


def not_passed() -> dict[str, str]:
    """The listed cases and their reasons."""
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def test_the_score_does_not_fall() -> None:
    """The list has as many cases as the score leaves, and each of them exists."""
    listed = not_passed()
    assert not set(listed) - set(cases())
    assert all(reason.strip() for reason in listed.values())
    if len(cases()) != TOTAL:
        pytest.skip(f"the installed onnx has {len(cases())} cases, the score is of {TOTAL}")
    assert TOTAL - len(listed) == PASSED


def _differences(names: list[str], device: str, record: Record) -> list[str]:
    """Cases that fail and are not listed, or are listed and pass; the score is recorded."""
    listed, wrong, passed = not_passed(), [], 0
    for name in names:
        try:
            run_case(cases()[name], device)
        except Exception as error:
            if name not in listed:
                wrong.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
        else:
            passed += 1
            if name in listed and not any(word in listed[name] for word in MAY_PASS):
                wrong.append(f"{name} passes: take it off the list")
    record("score: cases of the ONNX backend suite that pass", (passed, len(names)))
    return wrong


@pytest.mark.parametrize("part", range(PARTS))
def test_cases(part: int, record_property: Record) -> None:
    """Each case gives what the suite wants, or is listed."""
    names = [name for name in cases() if not name.startswith(("real/", IMAGES))][part::PARTS]
    wrong = _differences(names, DEVICE, record_property)
    assert not wrong, "\n".join(wrong)


def test_image_files(record_property: Record) -> None:
    """Files are decoded where Pillow is installed, which the extra `images` brings."""
    pytest.importorskip("PIL", reason="Pillow is not installed: it reads image files")
    names = [name for name in cases() if name.startswith(IMAGES)]
    wrong = _differences(names, DEVICE, record_property)
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE)
def test_large_models(name: str, record_property: Record) -> None:
    """The models of the suite give its numbers on CPU."""
    assert not _differences([f"real/test_{name}"], "CPU", record_property)

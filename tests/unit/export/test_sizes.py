"""Symbolic sizes of a file: what is legal is legal for every value, and stays small."""

import time

import pytest


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("(0, n)", "(0, n + 1)", "SHRINK is not inside"),
        ("(0, n)", "(2, n)", "SHRINK is not inside"),
        ("(0, n)", "(n + -4, n)", "SHRINK is not inside"),
        ("(0, n)", "(0, n * n)", "SHRINK is not inside"),
        ("1..4", "1..4000000", "variables are called 'n'"),
        ("p0.shrink((0, n))", "p0.reshape(n)", "RESHAPE changes the number of elements"),
        ("p0.shrink((0, n))", "p0.pad((n + -4, 0))", "PAD takes elements away"),
        ("p0.shrink((0, n))", "p0.shrink((0, index(int32(p0)).reduce(MAX, 0).reshape()))", "size"),
        ("p0.shrink((0, n))", "float32(iota: int32[n + -3])", "an axis has -2 elements"),
        (
            "p0.shrink((0, n))",
            'p0.shrink((0, variable "m" 0..4)).reduce(ADD, 0).expand(n)',
            "what 'm' is",
        ),
        ("p0.shrink((0, n))", "p0.reshape(1, 4).expand(n << 60, 4)", "a size"),
    ],
)
def test_sizes_that_are_wrong_for_some_value(symbolic, old, new, words):
    symbolic.replace(old, new)
    symbolic.refused(words)


@pytest.mark.parametrize("count", [3, 7, 40, 2000])
def test_sizes_do_not_explode(symbolic, count):
    squares = [f"v{k + 1} = v{k} * v{k}" for k in range(count)]
    lines = "\n".join(["v0 = n + 1", *squares, "return"])
    symbolic.replace("return", lines)
    symbolic.replace("(0, n)", f"(0, v{count})")
    start = time.monotonic()
    symbolic.refused("S" if count == 3 else "a symbolic size is too long")
    assert time.monotonic() - start < 20

"""Strings, which the host moves and compares."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from weft.onnx.table import op


def _texts(cells: list[Any], shape: Any) -> Any:
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array.reshape(shape)


@op("StringConcat", raw=True)
def string_concat(call: Any, x: Any, y: Any) -> Any:
    left, right = np.broadcast_arrays(call.run.host(x), call.run.host(y))
    return _texts([a + b for a, b in zip(left.flat, right.flat, strict=True)], left.shape)


@op("RegexFullMatch", raw=True)
def regex_full_match(call: Any, x: Any) -> Any:
    try:
        pattern = re.compile(call.get("pattern", ""))
    except re.error as error:
        raise call.error(f"pattern: {error}") from None
    array = call.run.host(x)
    is_match = [bool(pattern.fullmatch(cell)) for cell in array.flat]
    return np.array(is_match, dtype=np.bool_).reshape(array.shape)


@op("StringSplit", raw=True)
def string_split(call: Any, x: Any) -> Any:
    array = call.run.host(x)
    delimiter, most = call.get("delimiter") or None, call.get("maxsplit", -1)
    pieces = [cell.split(delimiter, -1 if most is None else most) for cell in array.flat]
    width = max((len(each) for each in pieces), default=0)
    filled = [cell for each in pieces for cell in [*each, *[""] * (width - len(each))]]
    counts = np.array([len(each) for each in pieces], dtype=np.int64).reshape(array.shape)
    return _texts(filled, (*array.shape, width)), counts


@op("StringNormalizer", raw=True)
def string_normalizer(call: Any, x: Any) -> Any:
    array = call.run.host(x)
    how = call.get("case_change_action", "NONE")
    is_exact = bool(call.get("is_case_sensitive", 0))
    words = call.get("stopwords", [])
    stops = set(words) if is_exact else {word.lower() for word in words}
    kept = [
        cell for cell in array.reshape(-1) if (cell if is_exact else cell.lower()) not in stops
    ]
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(how, str)
    kept = [change(cell) for cell in kept] or [""]
    shape = (len(kept),) if array.ndim == 1 else (1, len(kept))
    return _texts(kept, shape)


@op("TfIdfVectorizer", raw=True)
def tfidf_vectorizer(call: Any, x: Any) -> Any:
    """How often n-grams of a pool occur, with gaps of up to `max_skip_count`."""
    array = call.run.host(x)
    pool = call.get("pool_strings") or call.get("pool_int64s")
    starts, columns = call.get("ngram_counts"), call.get("ngram_indexes")
    least, most = call.get("min_gram_length"), call.get("max_gram_length")
    width = max(columns) + 1
    grams: dict[tuple[Any, ...], int] = {}
    for length, (begin, end) in enumerate(zip(starts, [*starts[1:], len(pool)], strict=True), 1):
        for at in range(begin, end, length):
            grams[tuple(pool[at : at + length])] = len(grams)
    rows = array.reshape(1, -1) if array.ndim == 1 else array
    counts = np.zeros((rows.shape[0], width), dtype=np.float32)
    for number, row in enumerate(rows.tolist()):
        for length in range(least, most + 1):
            skips = range(1) if length == 1 else range(call.get("max_skip_count") + 1)
            for skip in skips:
                reach = (length - 1) * (skip + 1)
                for at in range(len(row) - reach):
                    gram = grams.get(tuple(row[at : at + reach + 1 : skip + 1]))
                    if gram is not None:
                        counts[number, columns[gram]] += 1
    return _weighed(call, counts, columns, width).reshape(
        width if array.ndim == 1 else counts.shape
    )


def _weighed(call: Any, counts: Any, columns: list[int], width: int) -> Any:
    weights = np.ones(width, dtype=np.float32)
    given = call.get("weights")
    if given:
        for column, weight in zip(columns, given, strict=True):
            weights[column] = weight
    mode = call.get("mode")
    if mode == "IDF":
        return np.where(counts > 0, weights, 0).astype(np.float32)
    return counts if mode == "TF" else (counts * weights).astype(np.float32)

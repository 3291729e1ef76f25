"""The score of PyTorch's operator samples, name by name, with reasons.

python -m tools.opinfo --most 6            all names; what did not change since is not run again
python -m tools.opinfo --dtype bool        samples of another dtype, or with --seed, others
python -m tools.opinfo --only linalg. -v   names that contain a text, with every wrong sample
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.opinfo.judge import judge
from tests.opinfo.samples import is_internal, named, op_database


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="float32", help="of the samples")
    parser.add_argument("--seed", type=int, default=0, help="of the samples")
    parser.add_argument("--most", type=int, default=6, help="samples of each operator")
    parser.add_argument("--only", default="", help="comma-separated texts that names contain")
    parser.add_argument("--exact", default="", help="comma-separated names")
    parser.add_argument("--seconds", type=int, default=540, help="stop after so long")
    parser.add_argument("--part", default="0/1", help="one of several equal parts, as 0/2")
    parser.add_argument("--again", action="store_true", help="run what is cached too")
    parser.add_argument("--failing", action="store_true", help="run only what was wrong before")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("-v", action="store_true", help="show every wrong sample")
    options = parser.parse_args()
    store = Path(".opinfo_cache", f"{options.dtype}-{options.seed}")
    store.mkdir(parents=True, exist_ok=True)
    names = _names(options)
    start = time.monotonic()
    for name, ops in names.items():
        if options.report or time.monotonic() - start > options.seconds:
            break
        file = store / f"{name}.json"
        if _is_wanted(name, file, options):
            _run(file, ops, options)
    _report({name: store / f"{name}.json" for name in names}, options.v)


def _names(options: Any) -> dict[str, list[Any]]:
    wanted = [part for part in options.only.split(",") if part]
    exact = {part for part in options.exact.split(",") if part}
    number, parts = map(int, options.part.split("/"))
    found: dict[str, list[Any]] = {}
    for op in op_database(options.dtype):
        is_named = not wanted or any(part in op.name for part in wanted)
        if is_named and (not exact or op.name in exact):
            found.setdefault(op.name, []).append(op)
    return {
        name: ops for index, (name, ops) in enumerate(found.items()) if index % parts == number
    }


def _is_wanted(name: str, file: Path, options: Any) -> bool:
    if named(name) is None:
        file.unlink(missing_ok=True)
        return False
    if options.again or not file.exists():
        return True
    stored = json.loads(file.read_text())
    return options.failing and any(s["values"] or s["gradients"] for s in stored)


def _run(file: Path, ops: list[Any], options: Any) -> None:
    rows = []
    for op in ops:
        for words, verdict in judge(op, options.most, seed=options.seed, dtype=options.dtype):
            rows.append({"call": words, "variant": op.variant_test_name, **verdict._asdict()})
    file.write_text(json.dumps(rows))


def _report(files: dict[str, Path], verbose: bool) -> None:
    matched, counts = 0, Counter[str]()
    missing = [name for name in files if named(name) is None]
    for name, file in files.items():
        if name in missing or not file.exists():
            continue
        matched += 1
        rows = json.loads(file.read_text())
        wrong = [row for row in rows if row["values"]]
        slopes = [row for row in rows if row["gradients"] is not None]
        bad = [row for row in slopes if row["gradients"]]
        counts.update(samples=len(rows), right=len(rows) - len(wrong))
        counts.update(gradients=len(slopes), right_gradients=len(slopes) - len(bad))
        if not wrong and not bad:
            continue
        print(f"{name}: values {len(rows) - len(wrong)}/{len(rows)}, "
              f"gradients {len(slopes) - len(bad)}/{len(slopes)}")  # fmt: skip
        shown = Counter(row["values"] or f"[grad] {row['gradients']}" for row in wrong + bad)
        for reason, count in shown.most_common(2):
            print(f"    {count} x {reason}")
        if verbose:
            for row in wrong + [row for row in bad if not row["values"]]:
                print(f"      {row['call'][:150]} -> {row['values'] or row['gradients']}")
    print("missing:", " ".join(n for n in missing if not is_internal(n)))
    print(f"{matched} of {len(files)} names judged; {dict(counts)}")
    for right, all_ in (("right", "samples"), ("right_gradients", "gradients")):
        if counts[all_]:
            print(f"{all_}: {100 * counts[right] / counts[all_]:.2f} % right")


if __name__ == "__main__":
    main()

"""What the engine has done and does, in the text format of Prometheus."""

from __future__ import annotations

from weft.llm.engine.engine import Engine


def metrics_text(engine: Engine) -> str:
    """All metrics, each with its help and type."""
    counts = engine.statistics
    rows: list[tuple[str, str, str, float]] = [
        ("requests_total", "counter", "requests that were accepted", counts.requests),
        ("refused_total", "counter", "requests refused because too many wait", counts.refused),
        ("prompt_tokens_total", "counter", "tokens of prompts that were read", counts.read),
        ("reused_tokens_total", "counter", "tokens of prompts found in the cache", counts.reused),
        ("generated_tokens_total", "counter", "tokens of answers", counts.made),
        ("steps_total", "counter", "batches that decoded", counts.steps),
        ("preempted_total", "counter", "answers that had to wait for memory", counts.preempted),
        ("proposed_tokens_total", "counter", "tokens that were proposed", counts.proposed),
        ("accepted_tokens_total", "counter", "proposed tokens that were right", counts.accepted),
        ("active", "gauge", "answers that run", engine.active),
        ("waiting", "gauge", "requests that wait", engine.queued),
        ("cache_free_tokens", "gauge", "tokens that fit the free pages", engine.cache.free_tokens),
        ("cache_tokens", "gauge", "tokens that fit the cache", engine.room),
    ]
    lines = []
    for name, kind, line, value in rows:
        lines += [f"# HELP weft_{name} {line}", f"# TYPE weft_{name} {kind}"]
        lines.append(f"weft_{name} {value}")
    lines += [
        "# HELP weft_ended_total answers by how they ended",
        "# TYPE weft_ended_total counter",
    ]
    for ending, count in sorted(counts.ended.items()):
        lines.append(f'weft_ended_total{{ending="{ending}"}} {count}')
    return "\n".join(lines) + "\n"

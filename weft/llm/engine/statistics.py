"""What an engine has done, in numbers that only grow."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Statistics:
    """Counts since the engine was made."""

    requests: int = 0
    refused: int = 0
    read: int = 0  # tokens of prompts
    reused: int = 0  # tokens of prompts that were in the cache
    made: int = 0  # tokens of answers
    steps: int = 0  # batches that decoded
    preempted: int = 0
    proposed: int = 0  # tokens that speculation proposed
    accepted: int = 0
    ended: Counter[str] = field(default_factory=Counter)

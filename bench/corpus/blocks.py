"""Ready-made stretches of conversation, so that a gigabyte is made by repeating and not by encoding."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from bench.corpus import words

CWD, BRANCH, SESSION, MINUTE = "@CWD@", "@BRANCH@", "@SESSION@", "@MINUTE@"
"""Stand for the session's own facts inside a block; MINUTE is a time up to the minute."""
VARIANTS = 48


def line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class Blocks:
    """Variants of one turn of a conversation, about 2 to 20 kB each."""

    def __init__(self, name: str, make: Callable[[random.Random], Sequence[dict[str, Any]]]) -> None:
        self._blocks = [b"".join(map(line, make(words.rng(name, n)))) for n in range(VARIANTS)]

    def fill(self, dice: random.Random, wanted: int, facts: dict[str, str], minute: str) -> bytes:
        """Turns of together about `wanted` bytes; none for nothing wanted."""
        parts: list[bytes] = []
        size = 0
        while size < wanted:
            part = dice.choice(self._blocks)
            parts.append(part)
            size += len(part)
        return bind(b"".join(parts), facts, minute)

    def longest(self) -> bytes:
        return max(self._blocks, key=len)


def bind(block: bytes, facts: dict[str, str], minute: str) -> bytes:
    """A block with a session's facts put in."""
    for mark, value in facts.items():
        block = block.replace(mark.encode(), json.dumps(value, ensure_ascii=False)[1:-1].encode())
    return block.replace(MINUTE.encode(), minute.encode())

"""Generated titles of 2025, which often stand in the wrong file. Pure but for reading back."""

from __future__ import annotations

from sessiond.jsonl import BinaryFile, Chunk, read_back
from sessiond.provider import one_line, plain
from sessiond.providers.claude_code.records import Lines

LEAF_RECORDS = 64
"""A summary is of this conversation when it ends at one of so many records before it."""
LEAF_BYTES = 1 << 20
"""... and no further back than this."""


def last_summary(lines: Lines, file: BinaryFile) -> tuple[int, str] | None:
    """(offset, text) of the last `summary` record that is of this conversation: its leaf is a uuid just before it."""
    earlier: Lines | None = None
    for offset, record in lines.last_note(b'"summary"'):
        text, leaf = one_line(record.get("summary")), plain(record.get("leafUuid"))
        if record.get("type") != "summary" or not text or not leaf:
            continue
        position = lines.position(offset)
        distance = _records_since(leaf, lines, position, offset)
        if distance is None and lines.chunk.start:
            if earlier is None:
                blocks = read_back(file, 0, lines.chunk.start, LEAF_BYTES)
                earlier = Lines(next(blocks, Chunk(0, 0, b"")))
            distance = _records_since(leaf, earlier, len(earlier.data), offset)
            if distance is not None:
                distance += _envelopes(lines.data[:position])
        if distance is not None and distance < LEAF_RECORDS:
            return offset, text
    return None


def _records_since(leaf: str, lines: Lines, position: int, offset: int) -> int | None:
    """How many records stand between the one with this uuid and a position; None when it is not there or too far.

    `offset` is where the position is in the file.
    """
    for place, record in lines.last(b'"' + leaf.encode() + b'"', position):
        if offset - place > LEAF_BYTES:
            return None
        if record.get("uuid") == leaf:
            return _envelopes(lines.data[lines.position(place) : position]) - 1
    return None


def _envelopes(data: bytes) -> int:
    return sum(b'"uuid"' in line for line in data.split(b"\n"))

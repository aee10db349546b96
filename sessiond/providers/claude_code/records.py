"""Looking for records in a chunk by the bytes of a key, so that only lines that hold it are parsed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiond.jsonl import CUT, KEEP_LAST_BYTES, Chunk, blocks_at_end, records

Record = dict[str, Any]
ENVELOPE = b'{"parentUuid"'
"""How Claude Code begins every record with an envelope; others are merely searched in vain."""
NOTE = b'{"type":'
"""How it begins records without one."""
GLUED_BYTES = 512
Found = tuple[int, Record]
"""(offset of the line in the file, record)"""


class Lines:
    """The lines of one chunk; each is parsed at most once.

    A key is looked for as `"key"`. Inside a string its quotes would be escaped, so message text never matches; a key of
    a nested object does, which is why every reader of records looks at the top level only.
    """

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.data = chunk.data
        self._parsed: dict[int, list[Record]] = {}
        self._notes: list[tuple[int, int]] | None = None
        self._note_data = b""

    def first(self, *keys: bytes) -> Iterator[Found]:
        """Records on lines that hold one of the keys, first to last."""
        data = self.data
        hit = self._first_hit(keys, 0)
        while hit < len(data):
            start, end = self._bounds(hit)
            for record in self.at(start, end):
                yield self.chunk.offset(start), record
            hit = self._first_hit(keys, end)

    def _first_hit(self, keys: tuple[bytes, ...], start: int) -> int:
        """Where the first of some keys occurs; the end of the data if nowhere."""
        nearest = len(self.data)
        for key in keys:
            hit = self.data.find(key, start, nearest)
            if hit >= 0:
                nearest = hit
        return nearest

    def last(self, key: bytes, before: int | None = None) -> Iterator[Found]:
        """Records on lines that hold the key, last to first; those before a position in the data if given."""
        hit = self.data.rfind(key, 0, before)
        while hit >= 0:
            start, end = self._bounds(hit)
            for record in reversed(self.at(start, end)):
                yield self.chunk.offset(start), record
            hit = self.data.rfind(key, 0, start)

    def last_note(self, key: bytes) -> Iterator[Found]:
        """Like `last`, for records without an envelope: lines that surely hold nothing else are not searched.

        A line surely holds one enveloped record only when it begins like one and no other begins near its end, as it
        would if a record was cut short and the next one glued to it.
        """
        if self._notes is None:
            self._find_notes()
        if self._notes and self._note_data.rfind(key) >= 0:
            for start, end in reversed(self._notes):
                if self.data.find(key, start, end) >= 0:
                    yield from self.around(start)

    def _find_notes(self) -> None:
        data = self.data
        find, begins, size = data.find, data.startswith, len(data)
        notes = self._notes = []
        start = 0
        while start < size:
            end = find(b"\n", start)
            if end < 0:
                end = size
            if not begins(ENVELOPE, start):
                notes.append((start, end))
            elif end - start > GLUED_BYTES:
                glued = find(NOTE, end - GLUED_BYTES, end)
                if glued >= 0:
                    notes.append((glued, end))
            elif find(NOTE, start, end) >= 0:
                notes.append((start, end))
            start = end + 1
        self._note_data = b"\n".join([data[start:end] for start, end in notes])

    def around(self, position: int) -> Iterator[Found]:
        """Records on the line that a position in the data belongs to, the last first."""
        start, end = self._bounds(position)
        for record in reversed(self.at(start, end)):
            yield self.chunk.offset(start), record

    def line_holds(self, position: int, *parts: bytes) -> bool:
        """Whether the line that a position in the data belongs to holds one of some bytes."""
        start, end = self._bounds(position)
        return any(self.data.find(part, start, end) >= 0 for part in parts)

    def position(self, offset: int) -> int:
        """Where the line at an offset in the file begins in the data."""
        position = offset - self.chunk.start
        for behind, total in self.chunk.dropped:
            if offset - self.chunk.start - total >= behind:
                position = offset - self.chunk.start - total
        return position

    def holds_any(self) -> bool:
        """Whether any line at all is a record."""
        brace = self.data.find(b"{")
        while brace >= 0:
            start, end = self._bounds(brace)
            if self.at(start, end):
                return True
            brace = self.data.find(b"{", end)
        return False

    def _bounds(self, position: int) -> tuple[int, int]:
        end = self.data.find(b"\n", position)
        return self.data.rfind(b"\n", 0, position) + 1, len(self.data) if end < 0 else end

    def at(self, start: int, end: int) -> list[Record]:
        """The records between two positions in the data that hold one line."""
        found = self._parsed.get(start)
        if found is None:
            line = self.data[start:end]
            found = self._parsed[start] = records(line)
            if found and end - start >= KEEP_LAST_BYTES and CUT in line:
                _complete(found[0], line)
        return found


def _complete(record: Record, line: bytes) -> None:
    """Add to the record of an over-long line what its ends tell besides: its type, and text blocks behind the cut.

    A tool's answer is marked as nothing that a person typed.
    """
    message = record.setdefault("message", {})
    if not isinstance(message, dict):
        return
    if "type" not in record and isinstance(message.get("role"), str):
        record["type"] = message["role"]
    if b'"tool_result"' in line:
        record["isMeta"] = True
        return
    content = message.setdefault("content", [])
    if isinstance(content, list):
        content += blocks_at_end(line)

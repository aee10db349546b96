"""Bounded reading of JSON-lines files: head, tail, what was appended, and the gap between. Pure over a binary file.

Every function returns a `Chunk`: whole lines, in which an over-long line is kept as its two ends only. So nothing here
ever holds more than its budget, whatever a file contains.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

HEAD_BYTES = 1 << 20
TAIL_BYTES = 64 << 10
TAIL_MAX_BYTES = 16 << 20
APPEND_MAX_BYTES = 16 << 20
LINE_BYTES = 256 << 10
"""A longer line is never kept whole."""
KEEP_FIRST_BYTES = 64 << 10
KEEP_LAST_BYTES = 4 << 10
FOLLOW_BYTES = 8 << 20
"""How far a line that begins inside the head is followed to its end."""
CUT = b"\x00...\x00"
"""Stands for the dropped middle of an over-long line; no JSON text contains it."""
SALVAGE_TRIES = 64


class BinaryFile(Protocol):
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def read(self, size: int = -1, /) -> bytes | None: ...


class Chunk(NamedTuple):
    """Whole lines of a file, from byte `start` up to but not including byte `end`."""

    start: int
    end: int
    data: bytes
    """The lines with their newlines; shorter than `end - start` when a line was cut (`CUT`)."""
    complete: bool = True
    """False when the last line has no newline yet: it is in `data`, but `end` lies before it."""


def read_at(file: BinaryFile, offset: int, size: int) -> bytes:
    """Up to `size` bytes from `offset`; fewer only at the end of the file."""
    file.seek(offset)
    parts = []
    while size > 0:
        part = file.read(size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_head(file: BinaryFile, size: int) -> Chunk:
    """The first `HEAD_BYTES`, and the line that begins inside them followed to its end for up to `FOLLOW_BYTES`."""
    data = read_at(file, 0, min(size, HEAD_BYTES))
    if len(data) >= size:
        return _to_end(data, 0)
    cut = data.rfind(b"\n") + 1
    rest = _follow(file, len(data), size)
    if rest is None:
        return _shortened(data[:cut], 0, cut) if cut else Chunk(0, 0, _ends(data, b""), complete=False)
    last, end = rest
    return _shortened(data[:cut] + _ends(data[cut:], last), 0, end)


def _follow(file: BinaryFile, offset: int, size: int) -> tuple[bytes, int] | None:
    """What the line that runs on at `offset` ends in, and where the next line begins; None when that is too far."""
    kept = b""
    limit = min(size, offset + FOLLOW_BYTES)
    while offset < limit:
        block = read_at(file, offset, min(LINE_BYTES, limit - offset))
        if not block:
            return None
        newline = block.find(b"\n")
        if newline >= 0:
            return (kept + block[: newline + 1]), offset + newline + 1
        kept = (kept + block)[-LINE_BYTES:]
        offset += len(block)
    return None


def _ends(first: bytes, last: bytes) -> bytes:
    """One line made of its beginning and the rest of it, cut in the middle when over-long."""
    line = first + last
    if len(line) <= LINE_BYTES:
        return line
    return line[:KEEP_FIRST_BYTES] + CUT + line[-KEEP_LAST_BYTES:]


def _shortened(data: bytes, start: int, end: int, *, complete: bool = True) -> Chunk:
    """A chunk in which no line is over-long."""
    if len(data) > LINE_BYTES:
        lines = data.split(b"\n")
        if any(len(line) > LINE_BYTES for line in lines):
            data = b"\n".join([_ends(line, b"") for line in lines])
    return Chunk(start, end, data, complete)


def _to_end(data: bytes, start: int) -> Chunk:
    """A chunk that reaches the end of the file; a last line without newline counts but is not consumed."""
    cut = data.rfind(b"\n") + 1
    return _shortened(data, start, start + cut, complete=cut == len(data))


def read_tail(file: BinaryFile, start: int, size: int, enough: Callable[[bytes], bool]) -> Chunk:
    """The last lines, from 64 KiB on doubled until `enough(data)`, `start` or `TAIL_MAX_BYTES` is reached.

    `start` is the end of what was read before: the tail never reaches below it, and when it gets there it begins there
    exactly. Above it the first, cut line is dropped.
    """
    want = TAIL_BYTES
    while True:
        begin = max(start, size - want)
        data = read_at(file, begin, size - begin)
        whole = data
        if begin > start:
            newline = data.find(b"\n") + 1
            begin, whole = (begin + newline, data[newline:]) if newline else (begin + len(data), b"")
        if size - want <= start or want >= TAIL_MAX_BYTES or (whole and enough(whole)):
            break
        want *= 2
    if not whole:
        return Chunk(size, size, _last_end(data), complete=False)
    return _to_end(whole, begin)


def _last_end(data: bytes) -> bytes:
    """What can be said of a tail inside one enormous line: its last bytes."""
    return CUT + data[-KEEP_LAST_BYTES:]


def read_appended(file: BinaryFile, offset: int, size: int) -> Chunk | None:
    """The lines from `offset` on; None when there are more than `APPEND_MAX_BYTES` of them."""
    if size - offset > APPEND_MAX_BYTES:
        return None
    return _to_end(read_at(file, offset, size - offset), offset)


def read_blocks(file: BinaryFile, start: int, end: int, block_bytes: int) -> Iterator[Chunk]:
    """The lines between two offsets in blocks, for the gap pass; a line longer than a block is passed over."""
    while start < end:
        data = read_at(file, start, min(block_bytes, end - start))
        if not data:
            return
        cut = data.rfind(b"\n") + 1
        if start + len(data) >= end:
            cut = len(data)
        if cut:
            yield _shortened(data[:cut], start, start + cut)
            start += cut
        else:
            rest = _follow(file, start + len(data), end)
            start = rest[1] if rest else end


def parse(line: bytes) -> dict[str, Any] | None:
    """One record, or None when the line is no JSON object.

    Bytes that are no UTF-8 are replaced. A record cut short and glued to the next one on the same line costs the cut
    one: the line is tried once more from each `{"` at which the rest may be one whole object, the last first.
    """
    record = _object(line)
    if record is None and line.count(b'{"') > 1 and line.rstrip().endswith(b"}"):
        at = len(line)
        for _ in range(SALVAGE_TRIES):
            at = line.rfind(b'{"', 0, at)
            if at <= 0:
                break
            record = _object(line[at:])
            if record is not None and "type" in record:
                return record
        return None
    return record


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, dict) else None

"""Bounded reading: head, tail, what was appended, and the gap between, each a `Chunk` of whole lines.

An over-long line is kept as its two ends only, so nothing here ever holds more than its budget, whatever a file
contains. A line ends at byte 0x0A and nowhere else.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from sessiond.jsonl.record import CUT, KEEP_FIRST_BYTES, KEEP_LAST_BYTES, LINE_BYTES

HEAD_BYTES = 1 << 20
TAIL_BYTES = 64 << 10
TAIL_MAX_BYTES = 16 << 20
APPEND_MAX_BYTES = 16 << 20
_NEAR_BYTES = 16 << 10
"""Read along with the head: mostly its last line ends there."""
FOLLOW_BYTES = 8 << 20
"""How far a line that begins inside the head is followed to its end."""
SEAL_FIRST_BYTES = 512
SEAL_LAST_BYTES = 1 << 10
READ_LINE_BYTES = 16 << 20
"""A longer line of a whole log is given as its two ends."""


class BinaryFile(Protocol):
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def read(self, size: int = -1, /) -> bytes | None: ...


class Chunk(NamedTuple):
    """Whole lines of a file, from byte `start` up to but not including byte `end`."""

    start: int
    end: int
    data: bytes
    """The lines with their newlines; shorter than `end - start` when a line was cut (`CUT`).

    A line whose end is beyond all budgets ends in `CUT`; what lies below `start` or above `end` is not consumed.
    """
    complete: bool = True
    """False when the last line has no newline yet: it is in `data`, but `end` lies before it."""
    dropped: tuple[tuple[int, int], ...] = ()
    """(position in `data`, bytes dropped before it in all) behind each cut."""

    def offset(self, position: int) -> int:
        """The offset in the file of a position in `data`."""
        missing = 0
        for behind, total in self.dropped:
            if position < behind:
                break
            missing = total
        return self.start + position + missing


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
    """The first `HEAD_BYTES`, and the line that begins inside them followed to its end for up to `FOLLOW_BYTES`.

    A line that goes on even longer is there by its first part, behind `end`.
    """
    data = read_at(file, 0, min(size, HEAD_BYTES + min(_NEAR_BYTES, FOLLOW_BYTES)))
    if size <= HEAD_BYTES or len(data) < HEAD_BYTES:
        return _to_end(data, 0)
    end = data.find(b"\n", HEAD_BYTES - 1) + 1
    if end:
        return _shortened(data[:end], 0, end)
    return _long_head(file, data, size)


def _long_head(file: BinaryFile, data: bytes, size: int) -> Chunk:
    """A head whose last line runs on behind all that was read."""
    cut = data.rfind(b"\n") + 1
    head = _shortened(data[:cut], 0, cut)
    last, end = _follow(file, len(data), size, HEAD_BYTES + FOLLOW_BYTES - len(data))
    if end is None:
        return head._replace(data=head.data + data[cut : min(cut + KEEP_FIRST_BYTES, HEAD_BYTES)] + CUT)
    line = _followed_line(data[cut:], last, end - cut)
    if last.endswith(b"\n"):
        return head._replace(data=head.data + line, end=end)
    return head._replace(data=head.data + line, complete=False)


def _follow(file: BinaryFile, offset: int, size: int, most: int | None = None) -> tuple[bytes, int | None]:
    """The last bytes of the line that runs on at `offset`, and where it ends; no end when that is too far away.

    `most` is how many bytes are looked at, `FOLLOW_BYTES` by default.
    """
    kept = b""
    limit = min(size, offset + (FOLLOW_BYTES if most is None else most))
    while offset < limit:
        block = read_at(file, offset, min(LINE_BYTES, limit - offset))
        if not block:
            break
        newline = block.find(b"\n")
        if newline >= 0:
            return kept + block[: newline + 1], offset + newline + 1
        kept = (kept + block)[-LINE_BYTES:]
        offset += len(block)
    return kept, offset if offset >= size else None


def _followed_line(first: bytes, last: bytes, length: int) -> bytes:
    """A line of which the beginning and, by `_follow`, the end were read."""
    if length <= LINE_BYTES:
        return first + last
    if len(last) < KEEP_LAST_BYTES:
        last = first[-KEEP_LAST_BYTES:] + last
    return first[:KEEP_FIRST_BYTES] + CUT + last[-KEEP_LAST_BYTES:]


def _shortened(data: bytes, start: int, end: int, *, complete: bool = True) -> Chunk:
    """A chunk in which no line is over-long."""
    parts: list[bytes] = []
    dropped: list[tuple[int, int]] = []
    line = kept_from = kept = missing = 0
    while len(data) - line > LINE_BYTES:
        fitting = data.rfind(b"\n", line, line + LINE_BYTES + 1) + 1
        if fitting:
            line = fitting
            continue
        newline = data.find(b"\n", line)
        if newline < 0:
            newline = len(data)
        parts += [data[kept_from : line + KEEP_FIRST_BYTES], CUT]
        kept += line + KEEP_FIRST_BYTES - kept_from + len(CUT)
        kept_from = newline - KEEP_LAST_BYTES
        missing += newline - line - KEEP_FIRST_BYTES - KEEP_LAST_BYTES - len(CUT)
        dropped.append((kept, missing))
        line = newline + 1
    if parts:
        data = b"".join([*parts, data[kept_from:]])
    return Chunk(start, end, data, complete, tuple(dropped))


def _to_end(data: bytes, start: int) -> Chunk:
    """A chunk that reaches the end of the file; a last line without newline counts but is not consumed."""
    cut = data.rfind(b"\n") + 1
    return _shortened(data, start, start + cut, complete=cut == len(data))


def read_tail(file: BinaryFile, start: int, size: int, enough: Callable[[bytes], bool]) -> Chunk:
    """The last lines, from 64 KiB on doubled until `enough(data)`, `start` or `TAIL_MAX_BYTES` is reached.

    `start` is the end of what was read before: the tail never reaches below it, and when it gets there it begins there
    exactly. Above it the first, cut line is dropped; inside one enormous line its last part is all there is.
    """
    want = TAIL_BYTES
    begin = size
    data = b""
    while True:
        low = max(start, size - want - 1)  # one more: a line that begins right there is whole
        data = read_at(file, low, begin - low) + data
        begin = low
        first = 0 if begin == start else data.find(b"\n") + 1
        last = begin == start or want >= TAIL_MAX_BYTES
        if first or begin == start:
            chunk = _to_end(data[first:], begin + first)
            if chunk.data and (last or enough(chunk.data)):
                return chunk
        if last:
            return _end_of_line(data, begin)
        want *= 2


def _end_of_line(data: bytes, begin: int) -> Chunk:
    """What can be said of a tail inside one enormous line."""
    complete = data.endswith(b"\n")
    end = begin + len(data) if complete else begin
    return Chunk(end, end, CUT + data[-KEEP_LAST_BYTES:], complete)


def read_appended(file: BinaryFile, offset: int, size: int) -> Chunk | None:
    """The lines from `offset` on; None when there are more than `APPEND_MAX_BYTES` of them."""
    if size - offset > APPEND_MAX_BYTES:
        return None
    return _to_end(read_at(file, offset, size - offset), offset)


def read_blocks(file: BinaryFile, start: int, end: int, block_bytes: int) -> Iterator[Chunk]:
    """The lines between two offsets in blocks, first to last; of a line longer than a block, what `_follow` keeps."""
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
            continue
        last, behind = _follow(file, start + len(data), end, end)
        if behind is None:
            return
        yield Chunk(start, behind, _followed_line(data, last, behind - start))
        start = behind


def read_back(file: BinaryFile, start: int, end: int, block_bytes: int) -> Iterator[Chunk]:
    """The lines that begin between two offsets in blocks, last to first; `end` is where a line begins.

    A line longer than a block is passed over.
    """
    inside_line = False
    while start < end:
        low = max(start, end - block_bytes)
        before = min(low, 1)
        data = read_at(file, low - before, end - low + before)
        if inside_line:
            newline = data.rfind(b"\n") + 1
            inside_line, end = newline == 0, low - before + newline if newline else low
            continue
        first = data.find(b"\n") + 1 if before else 0
        inside_line = first == len(data) or first < before
        if inside_line:
            end = low
            continue
        yield _shortened(data[first:], low - before + first, end)
        end = low - before + first


def read_lines(file: BinaryFile) -> Iterator[bytes]:
    """Every line of a file, without its newline, in constant memory: over `READ_LINE_BYTES` only its two ends."""
    file.seek(0)
    rest = b""
    tail: bytes | None = None
    while block := file.read(1 << 20):
        if tail is not None:
            head, newline, block = block.partition(b"\n")
            tail = (tail + head)[-KEEP_LAST_BYTES:]
            if not newline:
                continue
            yield rest + CUT + tail
            rest, tail = b"", None
        *lines, rest = (rest + block).split(b"\n") if b"\n" in block else (rest + block,)
        yield from lines
        if len(rest) > READ_LINE_BYTES:
            rest, tail = rest[:KEEP_FIRST_BYTES], rest[-KEEP_LAST_BYTES:]
    if tail is not None:
        yield rest + CUT + tail
    elif rest:
        yield rest


def seal_of(head: Chunk) -> list[int] | None:
    """The seal of a file whose beginning is at hand; None when parts of it were dropped."""
    if head.dropped or head.start or len(head.data) < head.end:
        return None
    data, end = head.data, head.end
    if end <= SEAL_FIRST_BYTES:
        return [zlib.crc32(data[:end]), 0]
    return [zlib.crc32(data[:SEAL_FIRST_BYTES]), zlib.crc32(data[max(SEAL_FIRST_BYTES, end - SEAL_LAST_BYTES) : end])]


def seal(file: BinaryFile, end: int) -> list[int]:
    """Two checksums, of the first bytes and of the last ones before `end`: whether a file was only appended to."""
    first = read_at(file, 0, min(end, SEAL_FIRST_BYTES))
    if end <= len(first):
        return [zlib.crc32(first), 0]
    low = max(len(first), end - SEAL_LAST_BYTES)
    return [zlib.crc32(first), zlib.crc32(read_at(file, low, end - low))]

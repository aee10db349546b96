"""The name file `<uuid>/custom-title.json` beside a transcript."""

from __future__ import annotations

from sessiond.jsonl import BinaryFile, parse, read_at
from sessiond.model import Reading
from sessiond.provider import one_line

MAX_BYTES = 64 << 10


def observe(file: BinaryFile, size: int, session_id: str) -> Reading:
    """The name that a person gave; what was known stays while the file is being written or cannot be read."""
    record = parse(read_at(file, 0, size).replace(b"\n", b" ")) if size <= MAX_BYTES else None
    if record is None:
        return Reading({}, partial=True, problem="holds no JSON object")
    title = one_line(record.get("customTitle"))
    return Reading({session_id: {"custom_title": title} if title else {}})

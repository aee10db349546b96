"""session_index.jsonl: one line per rename, the last line of an id wins (docs/formats/codex.md, names)."""

from __future__ import annotations

from typing import Any

from sessiond.jsonl import BinaryFile, parse, read_blocks
from sessiond.provider import one_line
from sessiond.providers.codex.fold import lines_with
from sessiond.providers.codex.layout import is_thread_id

_BLOCK_BYTES = 1 << 20
_MAX_BYTES = 8 << 20
"""More renames than fit into the last so many bytes are not looked at."""


def observe(file: BinaryFile, size: int) -> dict[str, dict[str, Any]]:
    """Thread id -> its last name that is not empty: Codex lists a thread by that, too (seen in 0.171)."""
    found: dict[str, dict[str, Any]] = {}
    for chunk in read_blocks(file, max(0, size - _MAX_BYTES), size, _BLOCK_BYTES):
        for line in lines_with(chunk.data, (b'"thread_name"',)):
            record = parse(line)
            name = one_line(record.get("thread_name")) if record is not None else None
            if record is not None and name is not None and is_thread_id(record.get("id")):
                found[record["id"]] = {"name": name}
    return found

"""When a session was last used, by the times of its records. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sessiond.providers.base import time_ms
from sessiond.providers.claude_code.known import Known
from sessiond.providers.claude_code.lines import Lines, Record

CONVERSATION_KEYS = (b'"user"', b'"assistant"')
_TIMESTAMP = b'"timestamp"'
_STAMP_END = len('"timestamp":"2026-01-31T10:00:00.000Z"')
STAMP_BYTES = 48
"""No time is written longer."""


def is_conversation(record: Record) -> bool:
    return record.get("type") in ("user", "assistant")


def last_activity(lines: Lines, known: Known) -> None:
    """The newest `timestamp` of a conversation record; not the last: copies of old records may be appended later."""
    newest_ms = known["updated_ms"][1] if "updated_ms" in known else 0
    for stamp, position in _newest_first(lines.data):
        text = stamp.decode("ascii", "replace")
        moment = time_ms(text)
        if moment is None:
            continue
        if moment <= newest_ms:
            return
        if lines.line_holds(position, *CONVERSATION_KEYS):
            for offset, record in lines.around(position):
                if is_conversation(record) and record.get("timestamp") == text:
                    known["updated_ms"] = offset, moment
                    return


def _newest_first(data: bytes) -> Iterator[tuple[bytes, int]]:
    """(value, position) of `timestamp` keys, the largest value first: mostly that of the newest record is enough.

    It is looked for among the values as Claude Code writes them, without white space around them.
    """
    stamps = []
    hit = data.rfind(_TIMESTAMP)
    while hit >= 0:
        stamps.append(data[hit + len(_TIMESTAMP) : hit + _STAMP_END])
        hit = data.rfind(_TIMESTAMP, 0, hit)
    if not stamps:
        return
    newest = max(stamps)
    if newest.endswith(b'Z"') and min(stamps).startswith(b':"'):
        yield newest[2:-1], data.rfind(newest)
    yield from sorted(_stamps(data), reverse=True)


def _stamps(data: bytes) -> list[tuple[bytes, int]]:
    """(value, position) of all `timestamp` keys, of whatever records."""
    found = []
    hit = data.rfind(_TIMESTAMP)
    while hit >= 0:
        start = hit + len(_TIMESTAMP) + 2
        end = start + len("2026-01-31T10:00:00.000Z")
        if data[start - 2 : start] != b':"' or data[end : end + 1] != b'"':
            start = data.find(b'"', start - 2, start + 2) + 1
            end = data.find(b'"', start, start + STAMP_BYTES)
        if start:
            found.append((data[start:end], hit))
        hit = data.rfind(_TIMESTAMP, 0, hit)
    return found

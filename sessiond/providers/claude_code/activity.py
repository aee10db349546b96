"""When a session was last used, by the times of its records. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sessiond.provider import time_ms
from sessiond.providers.claude_code.known import Known
from sessiond.providers.claude_code.records import Lines, Record

CONVERSATION_KEYS = (b'"user"', b'"assistant"')
_TIMESTAMP = b'"timestamp"'
_STAMP_END = len('"timestamp":"2026-01-31T10:00:00.000Z"')
_COLON_BYTES = len(' : "')
STAMP_BYTES = 48
"""No time is written longer."""


def is_conversation(record: Record) -> bool:
    return record.get("type") in ("user", "assistant")


def last_activity(lines: Lines, known: Known) -> None:
    """The newest `timestamp` of a conversation record; not the last: copies of old records may be appended later."""
    active_at, newest_ms = known.get("updated_ms", (0, 0))
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
                    known["updated_ms"] = max(offset, active_at), moment
                    return


def _newest_first(data: bytes) -> Iterator[tuple[bytes, int]]:
    """(value, position) of `timestamp` keys, the latest moment first: mostly that of the newest record is enough.

    Written as Claude Code writes them, all in UTC and equally long, the largest text is the latest moment.
    """
    stamps = []
    hit = data.rfind(_TIMESTAMP)
    while hit >= 0:
        stamps.append(data[hit + len(_TIMESTAMP) : hit + _STAMP_END])
        hit = data.rfind(_TIMESTAMP, 0, hit)
    if not stamps:
        return
    if min(stamps).startswith(b':"') and b"\n".join([*stamps, b""]).count(b'Z"\n') == len(stamps):
        newest = max(stamps)
        yield newest[2:-1], data.rfind(newest)
        yield from sorted(_stamps(data), reverse=True)
    else:
        yield from sorted(_stamps(data), key=_moment, reverse=True)


def _stamps(data: bytes) -> list[tuple[bytes, int]]:
    """(value, position) of all `timestamp` keys, of whatever records."""
    found = []
    hit = data.rfind(_TIMESTAMP)
    while hit >= 0:
        start = hit + len(_TIMESTAMP)
        start = data.find(b'"', start, start + _COLON_BYTES) + 1
        end = data.find(b'"', start, start + STAMP_BYTES)
        if start and end >= 0:
            found.append((data[start:end], hit))
        hit = data.rfind(_TIMESTAMP, 0, hit)
    return found


def _moment(stamp: tuple[bytes, int]) -> int:
    return time_ms(stamp[0].decode("ascii", "replace")) or 0

"""Records out of one line, whole, damaged, or known only by its two ends."""

from __future__ import annotations

import json
import re
from typing import Any

Record = dict[str, Any]

LINE_BYTES = 256 << 10
"""A longer line is never kept whole."""
KEEP_FIRST_BYTES = 64 << 10
KEEP_LAST_BYTES = 4 << 10
CUT = b"\x00...\x00"
"""Stands for the dropped middle of an over-long line; no JSON text contains it."""
SALVAGE_TRIES = 64
PAIR_TRIES = 128
NESTING = 16
"""How deep the first part of an over-long line is followed into objects that are not closed."""
LONG_TEXTS = frozenset({"text", "content", "message"})
"""Keys whose value is worth having when it is cut short: talk, never a path, an id or a time."""

_decoder = json.JSONDecoder(strict=False)
_scan = _decoder.scan_once  # type: ignore[attr-defined]  # raw_decode without its overhead
_SPACE = " \t\r\n,"
_KEY_START = re.compile(r',\s*(?=")')
_TEXT_BLOCK = re.compile(r'\{\s*"(?:type|text)"\s*:')
_WHITE = b" \t\r\n\0"
_MARK = b"\xef\xbb\xbf"
"""What some editors put before the first line."""


def parse(line: bytes) -> Record | None:
    """The record of a line, the last one when two share it; None when the line holds none."""
    found = records(line)
    return found[-1] if found else None


def records(line: bytes) -> list[Record]:
    """The JSON objects on one line, in order; usually one.

    Bytes that are no UTF-8 are replaced. NULs around an object are passed over. Two whole objects glued together both
    count. A record cut short and glued to the next one costs the cut one: the rest of the line is tried once more from
    each `{"` at which it may be one whole object, the last first. Of an over-long line, what its two ends say for sure.
    """
    if len(line) >= KEEP_LAST_BYTES and CUT in line:
        return _partial(line)
    text = line.decode("utf-8", "replace")
    try:
        value, end = _scan(text, 0)
    except (StopIteration, ValueError, RecursionError, MemoryError):
        return _salvaged(line)
    if end < len(text) and text[end:].strip(_SPACE):
        return _salvaged(line)
    return [value] if isinstance(value, dict) else []


def _salvaged(line: bytes) -> list[Record]:
    text = line.removeprefix(_MARK).strip(_WHITE).decode("utf-8", "replace")
    found: list[Record] = []
    at = 0
    while at < len(text):
        try:
            value, at = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError, MemoryError):
            break
        if isinstance(value, dict):
            found.append(value)
        while at < len(text) and text[at] in " \t\r\0":
            at += 1
    else:
        return found
    last = _last_whole(text, at)
    return found if last is None else [*found, last[1]]


def _last_whole(text: str, start: int) -> tuple[int, Record] | None:
    """(position, record) of the record that ends the text, after a torn one that begins at `start`."""
    if not text.endswith("}"):
        return None
    at = len(text)
    for _ in range(SALVAGE_TRIES):
        at = text.rfind('{"', start + 1, at)
        if at < 0:
            return None
        try:
            value, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError, MemoryError):
            continue
        if end == len(text) and isinstance(value, dict) and "type" in value:
            return at, value
    return None


def _partial(line: bytes) -> list[Record]:
    """What the two ends of an over-long line say: its top-level pairs, and what the first part opens but not closes.

    A whole record glued to its end counts for itself; a line cut short before it costs the cut record, as any would.
    """
    first, _, last = line.partition(CUT)
    known = _opened(first.removeprefix(_MARK).strip(_WHITE).decode("utf-8", "replace"), 0, "", 0) if first else {}
    if not isinstance(known, dict):
        known = {}
    text = last.decode("utf-8", "replace").rstrip()
    glued = _last_whole(text, -1)
    if glued is not None:
        at, record = glued
        ending = _closing_pairs(text[:at].rstrip(_SPACE))
        return [known | ending, record] if ending else [record]
    known |= _closing_pairs(text)
    return [known] if known else []


def _opened(text: str, at: int, key: str, depth: int) -> Any:
    """The value that begins at `at` and never ends: its complete parts; None when there is nothing certain."""
    opening = text[at : at + 1]
    if depth >= NESTING:
        return None
    if opening == '"':
        return _opened_string(text, at) if key in LONG_TEXTS else None
    if opening == "[":
        return _opened_list(text, at + 1, key, depth)
    if opening != "{":
        return None
    pairs: Record = {}
    at += 1
    while (at := _past_space(text, at)) < len(text):
        try:
            name, at = _decoder.raw_decode(text, at)
        except ValueError:
            break
        at = _past_space(text, at)
        if not isinstance(name, str) or text[at : at + 1] != ":":
            break
        at = _past_space(text, at + 1)
        try:
            value, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value = _opened(text, at, name, depth + 1)
            if value is not None:
                pairs[name] = value
            break
        if end == len(text) and not isinstance(value, dict | list | str):
            break
        pairs[name] = value
        at = _past_space(text, end)
        if text[at : at + 1] == "}":
            break
    return pairs


def _opened_list(text: str, at: int, key: str, depth: int) -> list[Any]:
    items: list[Any] = []
    while (at := _past_space(text, at)) < len(text):
        try:
            value, at = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value = _opened(text, at, key, depth + 1)
            return items if value is None else [*items, value]
        items.append(value)
    return items


def _opened_string(text: str, at: int) -> str | None:
    body = text[at + 1 :]
    for shorter in range(12):
        try:
            return str(_decoder.decode('"' + body[: len(body) - shorter] + '"'))
        except ValueError:
            continue
    return None


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _closing_pairs(text: str) -> Record:
    """The top-level pairs at the end of a line.

    `{` put before a suffix gives one whole object only when the suffix begins at a key of the outermost object: deeper
    down there would be a brace too many, inside a string the quotes would not match.
    """
    if not text.endswith("}"):
        return {}
    found: Record = {}
    starts = [match.end() for match in _KEY_START.finditer(text)]
    for at in reversed(starts[-PAIR_TRIES:]):
        try:
            found = json.loads("{" + text[at:], strict=False)
        except (ValueError, RecursionError):
            continue
    return found


def blocks_at_end(line: bytes) -> list[Record]:
    """The whole `{"type":"text","text":…}` blocks in the last part of an over-long line."""
    text = line.rpartition(CUT)[2].decode("utf-8", "replace")
    found = []
    for match in _TEXT_BLOCK.finditer(text):
        try:
            block, _ = _decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if block.get("type") == "text":
            found.append(block)
    return found

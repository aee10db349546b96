"""The first line of a rollout: who the thread is, and which generation the file is of. Pure."""

import json
import re
from typing import Any, NamedTuple

from sessiond.jsonl import CUT, records
from sessiond.provider import plain, time_ms
from sessiond.providers.codex.layout import is_thread_id

NO_GENERATION = 1
"""The value of the fact `generation` for every file before the envelope."""

_OPENING_LINES = 16
"""How many damaged or blank lines may come before the header."""
_LATE_FIELD = re.compile(r'"(id|timestamp|cwd|source|thread_source|forked_from_id|history_base|git)"\s*:\s*')
_decoder = json.JSONDecoder(strict=False)
_SUBAGENT = "subagent"
_INTERNAL = "internal"
_HIDDEN_KINDS = {
    "subagent": _SUBAGENT,
    "memory_consolidation": _INTERNAL,
    "guardian_review": _INTERNAL,
}


class Header(NamedTuple):
    """What a line says; `is_record` is False when it is no header of any generation."""

    id: str | None
    facts: dict[str, Any]
    is_record: bool
    is_alone: bool = True
    """False when other records share the line."""


def opening(data: bytes, named_id: str | None) -> tuple[Header, bytes]:
    """The header of a file, and the lines besides it.

    Damaged and blank lines may come first. Behind them a header counts only with the id that the file's name tells:
    where the own one was lost, the next can be that of the thread it was forked from.
    """
    start = 0
    for number in range(_OPENING_LINES):
        stop = data.find(b"\n", start) + 1 or len(data)
        header = read_header(data[start:stop].rstrip(b"\n"))
        if header.is_record and (number == 0 or named_id is None or header.id == named_id):
            return header, data[:start] + data[stop if header.is_alone else start :]
        if header.is_record:
            break
        if header.facts:
            return header, data
        if stop == len(data):
            break
        start = stop
    return Header(None, {}, is_record=False), data


def read_header(line: bytes) -> Header:
    found = records(line)
    headers = [_header(record, line) for record in found]
    header = next(
        (one for one in headers if one.is_record), headers[0] if headers else Header(None, {}, is_record=False)
    )
    return header._replace(is_alone=len(found) == 1)


def _header(record: dict[str, Any], line: bytes) -> Header:
    payload = record.get("payload")
    if isinstance(payload, dict):
        if record.get("type") != "session_meta":
            return Header(None, {}, is_record=False)
        payload = whole_payload(payload, line)
        return Header(thread_id(payload), of_meta(payload, record.get("timestamp")), is_record=True)
    if "type" in record:
        return Header(None, {"generation": NO_GENERATION}, is_record=False)
    if "id" in record and "timestamp" in record:
        return Header(thread_id(record), of_meta(record, None) | {"generation": NO_GENERATION}, is_record=True)
    return Header(None, {}, is_record=False)


def whole_payload(payload: dict[str, Any], line: bytes) -> dict[str, Any]:
    """A `session_meta` payload with the fields in the last part of an over-long line; `git` is written last."""
    if CUT not in line:
        return payload
    end = line.rpartition(CUT)[2].decode("utf-8", "replace")
    found = {}
    for match in _LATE_FIELD.finditer(end):
        try:
            found[match[1]] = _decoder.raw_decode(end, match.end())[0]
        except (ValueError, RecursionError):
            continue
    return found | payload


def thread_id(payload: dict[str, Any]) -> str | None:
    found = payload.get("id")
    found = found.lower() if isinstance(found, str) else None
    return found if is_thread_id(found) else None


def of_meta(payload: dict[str, Any], written: object) -> dict[str, Any]:
    """The facts of a `session_meta` payload, or of the first line before the envelope."""
    source, hidden = read_source(payload.get("source"))
    base = payload.get("history_base")
    parent = plain(payload.get("forked_from_id")) or (plain(base.get("thread_id")) if isinstance(base, dict) else None)
    facts = {
        "created_ms": time_ms(payload.get("timestamp")) or time_ms(written),
        "cwd": plain(payload.get("cwd")),
        "branch": branch_of(payload),
        "provider": plain(payload.get("model_provider")),
        "version": plain(payload.get("cli_version")),
        "origin": plain(payload.get("originator")),
        "source": source,
        "hidden": hidden or hidden_by(payload.get("thread_source")),
        "forked_from": None if parent == thread_id(payload) else parent,
        "talk": 1 if parent else None,
        "updated_ms": time_ms(written),
    }
    return {key: value for key, value in facts.items() if value is not None}


def branch_of(payload: dict[str, Any]) -> str | None:
    git = payload.get("git")
    return plain(git.get("branch")) if isinstance(git, dict) else None


def read_source(source: object) -> tuple[str | None, str | None]:
    """(what started the thread, `subagent` or `internal` for a helper thread).

    A source is a word or an object of one key; an object is no sign of a helper: `{"custom":"atlas"}` is a product.
    """
    if isinstance(source, dict):
        for key in (_SUBAGENT, _INTERNAL):
            if key in source:
                return None, key
        name = plain(source.get("custom"))
        return (f"custom:{name}" if name else None), None
    word = plain(source)
    return (word[:80] if word else None), None


def hidden_by(thread_source: object) -> str | None:
    return _HIDDEN_KINDS.get(thread_source) if isinstance(thread_source, str) else None

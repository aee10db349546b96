"""The first line of a rollout: who the thread is, and which generation the file is of. Pure."""

import json
from typing import Any, NamedTuple

from sessiond.jsonl import CUT, parse
from sessiond.providers.base import plain, time_ms
from sessiond.providers.codex.places import is_thread_id

NO_GENERATION = 1
"""The value of the fact `generation` for every file before the envelope."""

_LATE_FIELDS = ("id", "timestamp", "cwd", "source", "thread_source", "forked_from_id", "history_base", "git")
_decoder = json.JSONDecoder(strict=False)
_SUBAGENT = "subagent"
_INTERNAL = "internal"
_HIDDEN_KINDS = {
    "subagent": _SUBAGENT,
    "memory_consolidation": _INTERNAL,
    "guardian_review": _INTERNAL,
}


class Header(NamedTuple):
    """What the first line says; `is_record` is False when it is no header of any generation."""

    id: str | None
    facts: dict[str, Any]
    is_record: bool


def read_header(line: bytes) -> Header:
    record = parse(line)
    if record is None:
        return Header(None, {}, is_record=False)
    payload = record.get("payload")
    if isinstance(payload, dict):
        if record.get("type") != "session_meta":
            return Header(None, {}, is_record=False)
        if CUT in line:
            payload = _after_the_cut(line) | payload
        return Header(thread_id(payload), of_meta(payload, record.get("timestamp")), is_record=True)
    if "type" in record:
        return Header(None, {"generation": NO_GENERATION}, is_record=False)
    if "id" in record and "timestamp" in record:
        return Header(thread_id(record), of_meta(record, None) | {"generation": NO_GENERATION}, is_record=True)
    return Header(None, {}, is_record=False)


def _after_the_cut(line: bytes) -> dict[str, Any]:
    """Fields of the payload in the last part of an over-long first line; `git` is written last."""
    end = line.rpartition(CUT)[2].decode("utf-8", "replace")
    found = {}
    for key in _LATE_FIELDS:
        at = end.rfind(f'"{key}":')
        if at >= 0:
            try:
                found[key] = _decoder.raw_decode(end, at + len(key) + 3)[0]
            except (ValueError, RecursionError):
                continue
    return found


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

"""The settings of a turn: model, effort, approval, sandbox, folder, as the newest lines state them. Pure."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from sessiond.jsonl import records
from sessiond.provider import plain

Facts = dict[str, Any]

SETTINGS = ("model", "effort", "approval", "sandbox", "cwd")
SETTINGS_KEYS = (b'"turn_context"', b'"thread_settings_applied"')
SETTING_CHARS = 4000
"""A longer recorded setting is reduced to its type."""
_SETTINGS_LINES = 64
_COMPACT = (",", ":")


def newest_settings(data: bytes) -> Facts:
    """The last value of each setting that the lines state; None where they state that there is none."""
    found: Facts = {}
    keys = [key for key in SETTINGS_KEYS if key in data]
    wanted = (*SETTINGS, "provider") if SETTINGS_KEYS[1] in keys else SETTINGS
    end = len(data)
    for _ in range(_SETTINGS_LINES):
        at = max((data.rfind(key, 0, end) for key in keys), default=-1)
        if at < 0 or all(key in found for key in wanted):
            break
        start = data.rfind(b"\n", 0, at) + 1
        stop = data.find(b"\n", at)
        end = start
        for record in reversed(records(data[start : stop if stop >= 0 else len(data)])):
            for key, value in _stated(record).items():
                found.setdefault(key, value)
    return found


def _stated(record: dict[str, Any]) -> Facts:
    """The settings in a `turn_context`, or in the event of August 2026 that carries the same."""
    payload = record.get("payload")
    if not isinstance(payload, dict):
        return {}
    if record.get("type") == "turn_context":
        profile = payload.get("permission_profile")
        stated: Facts = {
            "model": plain(payload.get("model")),
            "approval": recorded(payload.get("approval_policy")),
            "sandbox": recorded_sandbox(
                payload.get("sandbox_policy") if profile is None else profile, payload.get("cwd")
            ),
            "cwd": plain(payload.get("cwd")),
        }
        always: Facts = {"effort": plain(payload.get("effort"))}
    elif record.get("type") == "event_msg" and payload.get("type") == "thread_settings_applied":
        settings = payload.get("thread_settings")
        if not isinstance(settings, dict):
            return {}
        stated = {
            "model": plain(settings.get("model")),
            "provider": plain(settings.get("model_provider_id")),
            "approval": recorded(settings.get("approval_policy")),
            "sandbox": recorded_sandbox(settings.get("permission_profile"), settings.get("cwd")),
            "cwd": plain(settings.get("cwd")),
        }
        always = {"effort": plain(settings["reasoning_effort"])} if "reasoning_effort" in settings else {}
    else:
        return {}
    return {key: value for key, value in stated.items() if value is not None} | always


def recorded(value: object) -> str | None:
    """An approval or sandbox setting as it was recorded: a word, or an object as compact JSON.

    An object that is too large to keep is reduced to its type, which no reader takes for more than it says.
    """
    if isinstance(value, dict):
        text = json.dumps(value, ensure_ascii=False, separators=_COMPACT)
        if len(text) > SETTING_CHARS:
            text = json.dumps({"type": str(value.get("type"))[:40]}, separators=_COMPACT)
        return plain(text)
    return plain(value[:SETTING_CHARS]) if isinstance(value, str) else None


def recorded_sandbox(value: object, folder: object) -> str | None:
    """A sandbox setting as it was recorded, without what protects single paths of a managed profile.

    Those entries take a kilobyte a session and change nothing about what may be written in the folder as a whole:
    reading allowed somewhere, and writing allowed for temporary files. What denies something is kept.
    """
    files = value.get("file_system") if isinstance(value, dict) else None
    entries = files.get("entries") if isinstance(files, dict) else None
    if not isinstance(value, dict) or not isinstance(files, dict) or not isinstance(entries, list):
        return recorded(value)
    if not isinstance(folder, str) or not folder.strip("/"):
        return recorded(value)
    kept = [entry for entry in entries if _matters(entry, folder)]
    return recorded({**value, "file_system": {**files, "entries": kept}})


def _matters(entry: object, folder: str) -> bool:
    path = entry.get("path") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(path, dict):
        return True
    special = path.get("value") if path.get("type") == "special" else None
    kind = special.get("kind") if isinstance(special, dict) else None
    if entry.get("access") == "write":
        return kind not in ("tmpdir", "slash_tmp") or folder.startswith("/tmp")  # noqa: S108 - what the entry names
    if entry.get("access") != "read":
        return True
    if isinstance(special, dict):
        return kind not in ("root", "minimal") and not special.get("subpath")
    name = path.get("path")
    return not isinstance(name, str) or not name.startswith(folder.rstrip("/") + "/")


@lru_cache(maxsize=1024)
def sandbox_of_row(text: str, folder: str | None) -> str | None:
    """The same of a row's text; rows of one folder mostly hold the same."""
    if not text.startswith('{"type":"managed"'):
        return plain(text)
    try:
        return recorded_sandbox(json.loads(text), folder)
    except (ValueError, RecursionError):
        return None

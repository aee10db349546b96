"""What rows, rollouts and names of one thread amount to (docs/formats/codex.md, merging). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiond.model import DATABASE, Excluded, Observation, Reason, Session
from sessiond.provider import time_ms
from sessiond.providers.codex.layout import COMPRESSED, NAMES, ROLLOUT, is_archived, logical_name, stamp_in_name

_LAG_MS = 60_000
"""A rollout written to so much later than its row knows is continued by a program that does not write this row."""
_EXCLUDED = {"subagent": Excluded(Reason.SIDECHAIN), "internal": Excluded(Reason.INTERNAL)}
_NOT_INTERACTIVE = ("exec", "mcp")


def merge(observations: Sequence[Observation]) -> Session | Excluded:
    files = [o for o in observations if o.source.kind == ROLLOUT]
    row = _best_row([o for o in observations if o.source.kind == DATABASE], files)
    if row is None and not files:
        return Excluded(Reason.MISSING)
    file = _best_file(files, row)
    facts: dict[str, Any] = dict(file.facts) if file is not None else {}
    columns: dict[str, Any] = dict(row.facts) if row is not None else {}
    hidden = facts.get("hidden") or columns.get("hidden")
    if hidden:
        return _EXCLUDED[hidden]

    prompt = _first_of(files, "prompt") or columns.get("prompt") or _first_of(files, "goal")
    title, title_from = _title(observations, facts, columns, prompt)
    if not title and not any(o.facts.get("talk") or o.facts.get("sealed") for o in (*files, *((row,) if row else ()))):
        return Excluded(_why_empty(files))

    if file is not None and facts.get("updated_ms", 0) > columns.get("updated_ms", 0) + _LAG_MS:
        first, second = facts, columns
    else:
        first, second = columns, facts
    where = file or row
    assert where is not None
    home = where.source.home
    archived = is_archived(file.source.path, home) if file is not None else bool(columns.get("archived"))
    source = facts.get("source") or columns.get("source")
    return Session(
        app=where.source.app,
        id=where.id,
        home=home,
        path=None if file is None else file.source.path,
        cwd=facts.get("cwd") or _plain_path(columns.get("cwd")),
        branch=columns.get("branch") or facts.get("branch"),
        title=title,
        title_from=title_from,
        first_prompt=prompt,
        model=first.get("model") or second.get("model"),
        model_provider=first.get("provider") or second.get("provider"),
        effort=(first if first.get("model") else second).get("effort") or first.get("effort"),
        approval=first.get("approval") or second.get("approval"),
        sandbox=first.get("sandbox") or second.get("sandbox"),
        version=facts.get("version") or columns.get("version"),
        origin=facts.get("origin") or columns.get("origin"),
        created_ms=facts.get("created_ms") or columns.get("created_ms") or _named_ms(file),
        updated_ms=_updated_ms(files, columns),
        bytes=None if file is None else file.fingerprint.size,
        archived=archived,
        interactive=source not in _NOT_INTERACTIVE,
        resumable=file is not None and file.fingerprint.size > 0 and not archived and "generation" not in facts,
        forked_from=facts.get("forked_from"),
    )


def _best_row(rows: list[Observation], files: list[Observation]) -> Observation | None:
    """Of several databases' rows the newest one whose file exists."""
    names = {logical_name(o.source.path) for o in files}

    def rank(o: Observation) -> tuple[bool, int]:
        return logical_name(o.facts.get("path", "")) in names, o.facts.get("updated_ms", 0)

    return max(rows, key=rank, default=None)


def _best_file(files: list[Observation], row: Observation | None) -> Observation | None:
    """The file the row names, else the one begun last; of two forms of one file the plain one, of copies the newest."""
    recorded = _plain_path(row.facts.get("path")) if row is not None else None
    name = logical_name(recorded) if recorded else None

    def rank(o: Observation) -> tuple[bool, bool, bool, int, bool, int]:
        path = o.source.path.removesuffix(COMPRESSED)
        return (
            o.fingerprint.size > 0,
            path == recorded,
            logical_name(path) == name,
            _begun_ms(o),
            not o.source.path.endswith(COMPRESSED),
            o.facts.get("updated_ms", 0),
        )

    return max(files, key=rank, default=None)


def _begun_ms(o: Observation) -> int:
    return o.facts.get("created_ms") or _named_ms(o) or 0


def _named_ms(o: Observation | None) -> int | None:
    """The time in the file's name; it is local time, so hours may be wrong."""
    return None if o is None else time_ms(stamp_in_name(o.source.path))


def _first_of(files: list[Observation], key: str) -> str | None:
    """The prompt, or the goal that stands in for it, of the oldest file that has one."""
    return next((str(o.facts[key]) for o in sorted(files, key=_begun_ms) if o.facts.get(key)), None)


def _title(
    observations: Sequence[Observation], facts: dict[str, Any], columns: dict[str, Any], prompt: str | None
) -> tuple[str | None, str | None]:
    """The name a person gave, else what the thread began with, and which of them it is."""
    name = _chosen_name(observations, facts, columns, prompt)
    if name:
        return name, "custom"
    preview = columns.get("preview")
    if preview and preview != prompt:
        return preview, "preview"
    if prompt:
        return prompt, "prompt"
    title = columns.get("title")
    return title, "preview" if title else None


def _chosen_name(
    observations: Sequence[Observation], facts: dict[str, Any], columns: dict[str, Any], prompt: str | None
) -> str | None:
    if columns.get("paginated"):
        name: str | None = columns.get("name")
        return name
    title = columns.get("title")
    is_name = columns.get("titled")
    if is_name == 0 and prompt is not None:
        is_name = title != prompt
    if title and is_name:
        return str(title)
    if columns.get("name"):
        return str(columns["name"])
    renamed = [str(o.facts["name"]) for o in observations if o.source.kind == NAMES]
    return renamed[0] if renamed else facts.get("name")


def _updated_ms(files: list[Observation], columns: dict[str, Any]) -> int | None:
    told = [o.facts["updated_ms"] for o in files if "updated_ms" in o.facts]
    if "updated_ms" in columns:
        told.append(columns["updated_ms"])
    return max(told) if told else max((o.fingerprint.mtime_ns // 1_000_000 for o in files), default=None)


def _plain_path(path: str | None) -> str | None:
    r"""A path without the `\\?\` that Windows builds put before canonical ones, `\\?\UNC\` before those of a share."""
    if path and path.startswith("\\\\?\\UNC\\"):
        return "\\\\" + path[8:]
    return path.removeprefix("\\\\?\\") if path else None


def _why_empty(files: list[Observation]) -> Reason:
    if files and all(o.fingerprint.size == 0 for o in files):
        return Reason.EMPTY
    if files and not any(o.facts for o in files):
        return Reason.UNREADABLE
    return Reason.NO_CONVERSATION

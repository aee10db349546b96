"""The directory of a session, told by its records and tested against its project folder's name. Pure."""

from __future__ import annotations

import json
import re

from sessiond.provider import plain
from sessiond.providers.claude_code.folder import matching
from sessiond.providers.claude_code.known import Known
from sessiond.providers.claude_code.records import Lines, Record

_CWD = re.compile(rb'"cwd"\s*:\s*("(?:[^"\\\n]|\\.)*")')


def last_directory(lines: Lines, known: Known, name: str) -> None:
    """The newest directory told of, or one above it, that the project folder is named after.

    Told by `cwd` of any record, `relocatedCwd` of `relocated` ones, `worktreePath` of `worktree-state` ones.
    """
    best = _matching_cwd(lines, name)
    for key, read in ((b'"relocatedCwd"', _relocated), (b'"worktreePath"', _worktree_path)):
        for offset, record in lines.last_note(key):
            value = read(record)
            match = matching(value, name) if value else None
            if match is not None:
                if best is None or offset > best[0]:
                    best = offset, match
                break
    if best is not None:
        known["cwd"] = best


def _matching_cwd(lines: Lines, name: str) -> tuple[int, str] | None:
    data = lines.data
    elsewhere: set[bytes] = set()
    hit = data.rfind(b'"cwd"')
    while hit >= 0:
        value = _CWD.match(data, hit)
        if value is not None and value[1] not in elsewhere:
            if _fitting(value[1], name) is None:
                elsewhere.add(value[1])
            else:
                for offset, record in lines.around(hit):
                    directory = plain(record.get("cwd"))
                    match = matching(directory, name) if directory else None
                    if match is not None:
                        return offset, match
        hit = data.rfind(b'"cwd"', 0, hit)
    return None


def _fitting(text: bytes, name: str) -> str | None:
    try:
        directory = plain(json.loads(text)) if b"\\" in text else plain(text[1:-1].decode())
    except ValueError:
        return None
    return matching(directory, name) if directory else None


def _relocated(record: Record) -> str | None:
    return plain(record.get("relocatedCwd")) if record.get("type") == "relocated" else None


def _worktree_path(record: Record) -> str | None:
    state = worktree(record)
    return (state[0] or None) if state else None


def worktree(record: Record) -> list[str] | None:
    """[path, directory before] of the last `worktree-state` record; empty after the worktree was left."""
    if record.get("type") != "worktree-state":
        return None
    state = record.get("worktreeSession")
    if not isinstance(state, dict):
        return [] if state is None and "worktreeSession" in record else None
    return [plain(state.get("worktreePath")) or "", plain(state.get("originalCwd")) or ""]

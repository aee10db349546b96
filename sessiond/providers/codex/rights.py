"""Recorded approval and sandbox values of every generation, as flags of `codex` (docs/formats/codex.md). Pure."""

from __future__ import annotations

import json
import posixpath
from typing import Any

SANDBOXES = frozenset({"read-only", "workspace-write", "danger-full-access"})
NO_FLAG = "no flag can express it"

_MODES = {"disabled": "danger-full-access", **{word: word for word in SANDBOXES}}
_PROJECT = frozenset({"project_roots", "current_working_directory"})
_DENIED = frozenset({"deny", "none"})


def approval_word(recorded: str) -> str | None:
    """`untrusted`, `on-request`, `on-failure`, `never`, `granular`, another single word, or None for anything else."""
    value = _value(recorded)
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("granular", "reject"):
        return "granular"
    return value if isinstance(value, str) else None


def sandbox_word(recorded: str, folder: str | None) -> str | None:
    """The `--sandbox` value that the recorded policy amounts to in the folder; None when there is none."""
    value = _value(recorded)
    if isinstance(value, str):
        return value if value in SANDBOXES else None
    if not isinstance(value, dict):
        return None
    kind = value.get("type", value.get("mode"))
    if kind == "managed":
        return _managed(value, folder)
    return _MODES.get(kind) if isinstance(kind, str) else None


def denies_paths(recorded: str) -> bool:
    """Whether single paths are shut off, which no `--sandbox` value says."""
    return any(entry.get("access") in _DENIED for entry in _entries(_value(recorded)))


def _value(recorded: str) -> Any:
    """The JSON value, or the text itself where it is none."""
    try:
        return json.loads(recorded)
    except (ValueError, RecursionError):
        return recorded


def _managed(policy: dict[str, Any], folder: str | None) -> str | None:
    files = policy.get("file_system")
    kind = files.get("type") if isinstance(files, dict) else None
    if kind == "unrestricted":
        return "danger-full-access" if policy.get("network") == "enabled" else None
    if kind == "restricted":
        return "workspace-write" if _writable(_entries(policy), folder) else "read-only"
    return None


def _entries(policy: Any) -> list[dict[str, Any]]:
    files = policy.get("file_system") if isinstance(policy, dict) else None
    entries = files.get("entries") if isinstance(files, dict) else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _writable(entries: list[dict[str, Any]], folder: str | None) -> bool:
    """Whether the folder may be written: the entry nearest to it decides, and of two as near the stricter one."""
    here = posixpath.normpath(folder or "/nowhere")
    nearest, writable = -1, False
    for entry in entries:
        covered = _covered(entry.get("path"), here)
        if covered is None or (here != covered and not here.startswith(covered.rstrip("/") + "/")):
            continue
        write = entry.get("access") == "write"
        if len(covered) > nearest:
            nearest, writable = len(covered), write
        elif len(covered) == nearest:
            writable = writable and write
    return writable


def _covered(path: Any, here: str) -> str | None:
    """The folder that an entry is about, None when it cannot be told."""
    if not isinstance(path, dict):
        return None
    name = path.get("path")
    if path.get("type") == "path" and isinstance(name, str):
        return posixpath.normpath(name)
    special = path.get("value") if path.get("type") == "special" else None
    kind = special.get("kind") if isinstance(special, dict) else None
    if kind == "root":
        return "/"
    if kind == "slash_tmp":
        return "/tmp"  # noqa: S108 - the folder that the policy names
    if isinstance(special, dict) and kind in _PROJECT:
        below = special.get("subpath") or "."
        return posixpath.normpath(posixpath.join(here, below)) if isinstance(below, str) else None
    return None

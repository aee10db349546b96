"""Where Codex keeps its files, and what their names say."""

from __future__ import annotations

import os
import re

ROLLOUT = "rollout"
NAMES = "names"

SESSIONS = "sessions"
ARCHIVED = "archived_sessions"
NAMES_FILE = "session_index.jsonl"
COMPRESSED = ".zst"

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_STAMP = re.compile(r"rollout-(\d{4}-\d{2}-\d{2})(?:T(\d{2})-(\d{2})-(\d{2}))?", re.ASCII)
_DATABASE = re.compile(r"state(?:_(\d{1,9}))?\.sqlite", re.ASCII)
_SIDECARS = ("-wal", "-journal")
_CONFIG_BYTES = 1 << 20


def is_rollout(name: str) -> bool:
    """Whether a file name is that of a rollout of any generation; temporary siblings end in `.tmp`."""
    return name.startswith("rollout-") and name.endswith((".jsonl", ".jsonl.zst", ".json"))


def is_thread_id(text: object) -> bool:
    return isinstance(text, str) and _UUID.fullmatch(text) is not None


def id_in_name(path: str) -> str | None:
    """The thread id at the end of a rollout's name."""
    stem = os.path.basename(path).removesuffix(COMPRESSED).removesuffix(".jsonl").removesuffix(".json")
    found = stem[-36:].lower()
    return found if _UUID.fullmatch(found) else None


def stamp_in_name(path: str) -> str | None:
    """The time in a rollout's name, by the writer's local clock: RFC 3339 without a zone."""
    found = _STAMP.match(os.path.basename(path))
    if found is None:
        return None
    day, hour, minute, second = found.groups()
    return f"{day}T{hour or '00'}:{minute or '00'}:{second or '00'}"


def logical_name(path: str) -> str:
    """The name by which the plain and the compressed form of one rollout are the same; both path styles."""
    return path.replace("\\", "/").rpartition("/")[2].removesuffix(COMPRESSED)


def is_archived(path: str, home: str) -> bool:
    return path.startswith(f"{home}/{ARCHIVED}/")


def database_number(name: str) -> int | None:
    """The generation in a state database's name (0 for `state.sqlite`), None for any other file."""
    found = _DATABASE.fullmatch(name)
    return None if found is None else int(found[1] or 0)


def database_of(name: str) -> str | None:
    """The state database that a changed file belongs to: itself, its `-wal` or its `-journal`."""
    for sidecar in _SIDECARS:
        name = name.removesuffix(sidecar)
    return name if database_number(name) is not None else None


def listed_databases(folder: str) -> list[str]:
    """Paths of the state databases in a folder, the newest generation first; raises OSError as `os.scandir` does."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            number = database_number(entry.name)
            if number is not None and entry.is_file(follow_symlinks=False):
                found.append((number, entry.path))
    return [path for _, path in sorted(found, reverse=True)]


def configured_sqlite_home(home: str) -> str | None:
    """`sqlite_home` of the home's config.toml, absolute.

    Nothing but this key is kept: tables of the same file can hold tokens.
    """
    try:
        descriptor = os.open(os.path.join(home, "config.toml"), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        try:
            text = file.read(_CONFIG_BYTES) or b""
        except OSError:
            return None
    return sqlite_home_in(text, home)


def sqlite_home_in(config: bytes, home: str) -> str | None:
    """The value of `sqlite_home` at the top level of a config.toml; a relative one lies in the home."""
    if b"sqlite_home" not in config:
        return None
    import tomllib  # noqa: PLC0415 - few people set the key

    try:
        value = tomllib.loads(config.decode()).get("sqlite_home")
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, str) or not value.strip():
        return None
    return os.path.normpath(os.path.join(home, os.path.expanduser(value.strip())))

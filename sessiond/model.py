"""The nouns that flow through the program. Times are integer milliseconds UTC, sizes are bytes."""

import enum
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

DATABASE = "database"
"""The kind of a source that is a live SQLite file: its provider reads a private copy, never the open file."""

Facts = Mapping[str, Any]
"""What one source says about one session, in the provider's own keys; JSON values, a missing key is not stated."""

TITLE_CHARS = 200
"""Titles and prompts are cut to this many characters."""


class Fingerprint(NamedTuple):
    """Tells whether a file has to be read again; for a database the files beside it are counted in."""

    dev: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int


def fingerprint_of(status: os.stat_result) -> Fingerprint:
    """The fingerprint of one file."""
    return Fingerprint(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class Source(NamedTuple):
    """One file that is read."""

    app: str
    home: str
    path: str
    kind: str
    """The provider's word for what the file is: `transcript`, `title`, `rollout`, `names`, `database`."""


class Previous(NamedTuple):
    """What the last reading of a source left behind."""

    state: bytes
    """Where and how to continue, in the provider's own encoding."""
    facts: dict[str, dict[str, Any]]
    """Session id -> facts as they were stored; of a database they are many and left out."""
    moved: bool = False
    """True when the file lay at another path then."""


class Reading(NamedTuple):
    """What one reading of a source yields."""

    facts: dict[str, dict[str, Any]]
    """Session id -> facts."""
    state: bytes = b""
    gap_bytes: int = 0
    """Bytes between head and tail that nobody has looked at yet."""
    problem: str | None = None
    """Why the source could not be read as it should, in words for the user."""
    partial: bool = False
    """True when the facts could not be had this time, so that the stored ones stay."""
    same: frozenset[str] = frozenset()
    """Ids whose stored facts still hold and are not repeated in `facts`; only where `previous` was given."""


class Observation(NamedTuple):
    """What one source says about one session."""

    source: Source
    fingerprint: Fingerprint
    id: str
    facts: Facts


class Reason(enum.StrEnum):
    """Why something on disk is not listed as a session; the values are shown by `sessions why`."""

    MISSING = "no file or row holds it any more"
    EMPTY = "the file is empty"
    NO_CONVERSATION = "no message of a conversation in it"
    SIDECHAIN = "work of a sub-agent"
    TEAMMATE = "a teammate of another session"
    DAEMON = "a background helper of the app"
    INTERNAL = "an internal helper session of the app"
    UNREADABLE = "no record in it could be read"


class Excluded(NamedTuple):
    reason: Reason


class Session(NamedTuple):
    """One row of the list. Field for field the columns of `columns.COLUMNS`, which says what they mean."""

    app: str
    id: str
    home: str
    path: str | None = None
    cwd: str | None = None
    repo: str | None = None
    branch: str | None = None
    title: str | None = None
    title_from: str | None = None
    first_prompt: str | None = None
    model: str | None = None
    model_provider: str | None = None
    effort: str | None = None
    approval: str | None = None
    sandbox: str | None = None
    version: str | None = None
    origin: str | None = None
    created_ms: int | None = None
    updated_ms: int | None = None
    bytes: int | None = None
    archived: bool = False
    interactive: bool = True
    resumable: bool = True
    gone_ms: int | None = None
    forked_from: str | None = None


class Walk:
    """What a discovery met besides sources: how many folders it listed, and where it could not look."""

    def __init__(self) -> None:
        self.directories: list[str] = []
        self.unreadable: dict[str, str] = {}
        """Folder -> why; nothing below it may be taken for deleted."""

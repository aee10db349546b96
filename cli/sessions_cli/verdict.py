"""Why something on disk is listed as a session or is not: claimed, read and merged now, for one id or one path."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sessiond.model import Excluded, Observation, Reading, Reason, Session, Source
from sessiond.provider import Provider
from sessiond.reading.opened import read_safely
from sessiond.store.reader import Reader

Key = tuple[str, str]
"""(app, id)"""


class Look(NamedTuple):
    """One source, read now."""

    path: str
    source: Source | None
    """None: no app keeps sessions there."""
    observations: tuple[Observation, ...] = ()
    problem: str | None = None


class Verdict(NamedTuple):
    """What all sources of one id amount to."""

    key: Key
    looks: tuple[Look, ...]
    merged: Session | Excluded
    why_not: str = ""
    """Why they amount to no session, in the vendor's words."""


def look(path: str, providers: Iterable[Provider]) -> Look:
    """Claim and read one path."""
    for provider in providers:
        source = provider.claim(path)
        if source is not None:
            return _read(source, provider)
    return Look(path, None)


def _read(source: Source, provider: Provider) -> Look:
    try:
        fingerprint = provider.fingerprint(source)
    except OSError as error:
        return Look(source.path, source, problem=error.strerror or str(error))

    def observe(file: io.FileIO, size: int) -> Reading:
        return provider.observe(source, file, size, None)

    opened = read_safely(source, fingerprint, observe)
    if opened.reading is None:
        return Look(source.path, source, problem=opened.problem)
    observations = [Observation(source, opened.fingerprint, i, facts) for i, facts in opened.reading.facts.items()]
    return Look(source.path, source, tuple(observations), opened.reading.problem)


def of_session(key: Key, known_paths: Iterable[str], providers: Sequence[Provider]) -> Verdict:
    """Every source that is known to tell of a session, read now, and what they amount to."""
    (provider,) = [p for p in providers if p.app == key[0]]
    looks = tuple(look(path, [provider]) for path in dict.fromkeys(known_paths))
    said = [o for one in looks for o in one.observations if o.id == key[1]]
    merged = provider.merge(said) if said else Excluded(Reason.MISSING)
    return Verdict(key, looks, merged, provider.says(merged.reason) if isinstance(merged, Excluded) else "")


def known_paths(reader: Reader, key: Key) -> list[str]:
    """Where the index has the session from."""
    return [os.fsdecode(row[1]) for row in reader.observations(*key) if isinstance(row[1], (str, bytes))]


def why_hidden(session: Session) -> list[str]:
    """Why a session is not in the default list; nothing when it is."""
    reasons = [
        (session.gone_ms is not None, "its files were deleted: see it with --gone"),
        (session.archived, "it is archived: see it with --archived"),
        (not session.interactive, "it was run by a script, not by a person: see it with --all"),
        (not session.resumable and not session.archived and session.gone_ms is None,
         "its app cannot continue it: see it with --all"),
    ]  # fmt: skip
    return [text for holds, text in reasons if holds]

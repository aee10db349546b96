"""Codex's rollouts by date, for whoever reads whole logs. No file is opened."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import date

from sessiond.provider import LogFile
from sessiond.providers.codex import layout


def dated(homes: Sequence[str], after: str | None, before: str | None) -> Iterator[LogFile]:
    """Rollouts newest first, by the local date of their folder or name; no file is opened."""
    found: list[LogFile] = []
    for home in homes:
        for tree in (layout.SESSIONS, layout.ARCHIVED):
            found += _below(os.path.join(home, tree), (), after, before)
    found.sort(key=lambda log: (log.date, os.path.basename(log.path)), reverse=True)
    return iter(found)


def _below(folder: str, above: tuple[str, ...], after: str | None, before: str | None) -> Iterator[LogFile]:
    """The rollouts below a folder; a date folder outside the wanted days is not entered."""
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
    except OSError:
        return
    for entry in listed:
        if entry.is_dir(follow_symlinks=False):
            inner = (*above, entry.name)
            if not _is_outside(inner, after, before):
                yield from _below(entry.path, inner, after, before)
        elif layout.is_rollout(entry.name) and entry.is_file(follow_symlinks=False):
            day = _day(entry, above)
            if (after is None or day >= after) and (before is None or day < before):
                yield LogFile("codex", entry.path, layout.id_in_name(entry.name) or "", day)


def _is_outside(folders: tuple[str, ...], after: str | None, before: str | None) -> bool:
    """Whether a folder `YYYY`, `YYYY/MM` or `YYYY/MM/DD` holds no wanted day."""
    if not _is_dated(folders):
        return False
    prefix = "-".join(folders)
    return (after is not None and prefix < after[: len(prefix)]) or (before is not None and prefix >= before)


def _is_dated(folders: tuple[str, ...]) -> bool:
    widths = (4, 2, 2)[: len(folders)]
    return tuple(map(len, folders)) == widths and all(map(str.isdecimal, folders))


def _day(entry: os.DirEntry[str], folders: tuple[str, ...]) -> str:
    if len(folders) == 3 and _is_dated(folders):
        return "-".join(folders)
    stamp = layout.stamp_in_name(entry.name)
    if stamp is not None:
        return stamp[:10]
    return date.fromtimestamp(entry.stat(follow_symlinks=False).st_mtime).isoformat()  # noqa: DTZ012 - local on purpose

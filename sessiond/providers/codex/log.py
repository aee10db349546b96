"""Codex's logs as a library reads them: files by date, records in order, what was said."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from sessiond import jsonl
from sessiond.errors import UnreadableLogError
from sessiond.jsonl import BinaryFile
from sessiond.providers.base import LogFile
from sessiond.providers.codex import compressed, document, places


def dated(homes: Sequence[str], after: str | None, before: str | None) -> Iterator[LogFile]:
    """Rollouts newest first, by the local date of their folder or name; no file is opened."""
    found: list[LogFile] = []
    for home in homes:
        for tree in (places.SESSIONS, places.ARCHIVED):
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
        elif places.is_rollout(entry.name) and entry.is_file(follow_symlinks=False):
            day = _day(entry, above)
            if (after is None or day >= after) and (before is None or day < before):
                yield LogFile("codex", entry.path, places.id_in_name(entry.name) or "", day)


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
    stamp = places.stamp_in_name(entry.name)
    if stamp is not None:
        return stamp[:10]
    return date.fromtimestamp(entry.stat(follow_symlinks=False).st_mtime).isoformat()  # noqa: DTZ012 - local on purpose


def records(file: BinaryFile) -> Iterator[dict[str, Any]]:
    """Every record of a rollout of any generation, plain or compressed, in order and in constant memory."""
    file.seek(0)
    start = file.read(4) or b""
    if start == compressed.MAGIC:
        stream = compressed.unpacked(file)
        if stream is None:
            raise UnreadableLogError("the log is compressed: install sessiond[zstd], or use Python 3.14 or newer")
        try:
            for line in jsonl.read_lines(stream):
                yield from jsonl.records(line)
        except compressed.DamagedError as error:
            raise UnreadableLogError(f"the compressed log is {error.strerror}; what came before it is whole") from error
        return
    if _is_document(file):
        for _, part in document.parts(file):
            yield part
        return
    for line in jsonl.read_lines(file):
        yield from jsonl.records(line)


def _is_document(file: BinaryFile) -> bool:
    """Whether the file is one indented object, as the first generation's were."""
    file.seek(0)
    start = (file.read(4096) or b"").lstrip(b"\xef\xbb\xbf \t\r\n")
    first, _, rest = start.partition(b"\n")
    return first.strip() == b"{" or (start.startswith(b'{"session":') and not rest.startswith(b"{"))

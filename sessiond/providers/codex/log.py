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


def _below(folder: str, dates: tuple[str, ...], after: str | None, before: str | None) -> Iterator[LogFile]:
    """The rollouts below a folder; a date folder outside the wanted days is not entered."""
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
    except OSError:
        return
    for entry in listed:
        if entry.is_dir(follow_symlinks=False):
            inner = (*dates, entry.name)
            if not _is_outside(inner, after, before):
                yield from _below(entry.path, inner, after, before)
        elif places.is_rollout(entry.name) and entry.is_file(follow_symlinks=False):
            day = _day(entry, dates)
            if (after is None or day >= after) and (before is None or day < before):
                yield LogFile("codex", entry.path, places.id_in_name(entry.name) or "", day)


def _is_outside(dates: tuple[str, ...], after: str | None, before: str | None) -> bool:
    """Whether a folder `YYYY`, `YYYY/MM` or `YYYY/MM/DD` holds no wanted day."""
    widths = (4, 2, 2)
    if len(dates) > 3 or not all(
        part.isdecimal() and len(part) == width for part, width in zip(dates, widths, strict=False)
    ):
        return False
    prefix = "-".join(dates)
    return (after is not None and prefix < after[: len(prefix)]) or (
        before is not None and (prefix > before[: len(prefix)] or prefix >= before)
    )


def _day(entry: os.DirEntry[str], dates: tuple[str, ...]) -> str:
    if len(dates) == 3 and not _is_outside(dates, None, None) and all(part.isdecimal() for part in dates):
        return "-".join(dates)
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

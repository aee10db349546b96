"""Where sessions lie below a home, and which of its files are one. Nothing here opens a file.

Read are `projects/<folder>/<uuid>.jsonl` and `projects/<folder>/<uuid>/custom-title.json`, nothing else: a home also
holds credentials, settings and sockets (docs/formats/claude-code.md, "Never opened").
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

from sessiond.model import Fingerprint, Source, Walk, fingerprint_of

APP = "claude-code"
TRANSCRIPT = "transcript"
TITLE = "title"
TITLE_NAME = "custom-title.json"

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_is_uuid = re.compile(_UUID).fullmatch
_is_transcript = re.compile(_UUID + r"\.jsonl").fullmatch
_UUID_CHARS = 36
_TRANSCRIPT_CHARS = _UUID_CHARS + len(".jsonl")


def projects(home: str) -> str:
    return os.path.join(home, "projects")


def is_transcript_path(path: str) -> bool:
    """Whether a file lies and is called as the transcripts of any home are."""
    parts = path.split("/")
    return _is_transcript(parts[-1]) is not None and parts[-3:-2] == ["projects"]


def source(home: str, path: str) -> Source | None:
    """The source at a path below the home's projects, or None. Pure."""
    parts = path[len(projects(home)) + 1 :].split("/")
    if len(parts) == 2 and _is_transcript(parts[1]):
        return Source(APP, home, path, TRANSCRIPT)
    if len(parts) == 3 and parts[2] == TITLE_NAME and _is_uuid(parts[1]):
        return Source(APP, home, path, TITLE)
    return None


def session_id(source: Source) -> str:
    """The id to resume: the file's own name, never the `sessionId` inside."""
    path = source.path if source.kind == TRANSCRIPT else os.path.dirname(source.path)
    return os.path.basename(path)[:_UUID_CHARS]


def project_folder(source: Source) -> str:
    """The path of the project folder that a source belongs to."""
    folder = os.path.dirname(source.path)
    return folder if source.kind == TRANSCRIPT else os.path.dirname(folder)


def in_home(home: str, walk: Walk, below: str | None) -> Iterator[tuple[str, Fingerprint]]:
    """Every source of one home, or of the part of it below a folder."""
    root = projects(home)
    if below is None or below == root or root.startswith(below.rstrip("/") + "/"):
        for folder in _project_folders(root, walk):
            yield from _in_folder(folder, walk)
    elif below.startswith(root + "/"):
        parts = below[len(root) + 1 :].split("/")
        if len(parts) == 1:
            yield from _in_folder(below, walk)
        elif len(parts) == 2 and _is_uuid(parts[1]):
            yield from _title_of(below)


def _project_folders(root: str, walk: Walk) -> list[str]:
    """The project folders, a link to one followed once: never to a folder that is listed already."""
    try:
        with os.scandir(root) as entries:
            root_status = os.stat(root)
            folders, links = [], []
            inodes = set()
            for entry in entries:
                if entry.is_symlink():
                    links.append(entry.path)
                elif entry.is_dir():
                    folders.append(entry.path)
                    inodes.add((root_status.st_dev, entry.inode()))
    except OSError as error:
        walk.unreadable[root] = error.strerror or str(error)
        return []
    walk.directories.append(root)
    inodes.add((root_status.st_dev, root_status.st_ino))
    for link in sorted(links):
        try:
            status = os.stat(link)
        except OSError as error:
            walk.unreadable[link] = error.strerror or str(error)
            continue
        identity = (status.st_dev, status.st_ino)
        if stat.S_ISDIR(status.st_mode) and identity not in inodes:
            inodes.add(identity)
            folders.append(link)
    return folders


def _in_folder(folder: str, walk: Walk) -> list[tuple[str, Fingerprint]]:
    """The sources of one project folder; most of the time of a scan without changes is spent in this loop."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if len(name) == _TRANSCRIPT_CHARS:
                    if _is_transcript(name):
                        try:
                            status = entry.stat(follow_symlinks=False)
                        except FileNotFoundError:
                            continue
                        if stat.S_ISREG(status.st_mode):
                            found.append((entry.path, fingerprint_of(status)))
                elif len(name) == _UUID_CHARS and _is_uuid(name) and entry.is_dir(follow_symlinks=False):
                    found += _title_of(entry.path)
    except (FileNotFoundError, NotADirectoryError):
        return found
    except OSError as error:
        walk.unreadable[folder] = error.strerror or str(error)
        return found
    walk.directories.append(folder)
    return found


def _title_of(side_folder: str) -> list[tuple[str, Fingerprint]]:
    path = side_folder + "/" + TITLE_NAME
    if not os.access(path, os.F_OK):  # most have none: an answer is cheaper than an exception
        return []
    try:
        status = os.lstat(path)
    except OSError:
        return []
    return [(path, fingerprint_of(status))] if stat.S_ISREG(status.st_mode) else []


def fingerprint(source: Source) -> Fingerprint:
    """The source's state on disk; what is no regular file is not there."""
    status = os.lstat(source.path)
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(source.path)
    return fingerprint_of(status)

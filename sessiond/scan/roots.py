"""Whether an absence proves a deletion: only below a root that is there, readable, and still the same folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from sessiond.provider import Root

Identities = dict[str, str]
"""Root -> `dev:ino` of the folder that was there when it was last scanned."""


def identity(path: str) -> str | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return f"{status.st_dev}:{status.st_ino}"


def identities(roots: Iterable[Root]) -> Identities:
    """The folders that the roots are now."""
    found = ((root.path, identity(root.path)) for root in roots)
    return {path: now for path, now in found if now is not None}


def why_hidden(path: str, roots: Sequence[Root], last: Identities) -> tuple[str, str] | None:
    """(folder, why) when the absence of `path` may have another reason than its deletion; None when it is deleted."""
    inside = [root.path for root in roots if path.startswith(root.path + "/")]
    if not inside:
        return path, "it lies in no folder that is looked at"
    root = max(inside, key=len)
    now = identity(root)
    if now is None:
        return root, "the folder is missing"
    if last.get(root, now) != now:
        return root, "the folder was replaced"
    folder = os.path.dirname(path)
    while len(folder) > len(root) and not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    try:
        os.scandir(folder).close()
    except OSError as error:
        return folder, error.strerror or str(error)
    return None


def replaced(roots: Sequence[Root], last: Identities, known: Iterable[str], found: Iterable[str]) -> dict[str, str]:
    """Roots that are other folders than at the last scan and hold none of the files known from there -> why.

    An unmounted file system and a folder moved away leave such an empty place behind; a person who cleans up does not.
    """
    hidden = {}
    found_set = found if isinstance(found, dict) else set(found)
    for root in roots:
        now = identity(root.path)
        if now is None or last.get(root.path, now) == now:
            continue
        inside = [path for path in known if path.startswith(root.path + "/")]
        if inside and not any(path in found_set for path in inside):
            hidden[root.path] = "another folder has taken its place, and holds none of its sessions"
    return hidden


def never_seen(roots: Sequence[Root], known_folders: Iterable[str]) -> list[str]:
    """Roots that are missing and from which nothing is known: the app is not installed, which is no problem."""
    missing = [root.path for root in roots if not os.path.lexists(root.path)]
    return [path for path in missing if not any((folder + "/").startswith(path + "/") for folder in known_folders)]

"""The bare reference of a rescan: list the folders that hold sessions, stat every file, remember nothing."""

from __future__ import annotations

import os
import sys
from os import scandir


def walk(folder: str, depth: int) -> int:
    """Files met, each with one stat; a sidecar folder is entered one level deep, sub-agents are passed by."""
    count = 0
    folders = []
    with scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                entry.stat(follow_symlinks=False)
                count += 1
    if depth:
        for inner in folders:
            count += walk(inner, depth - 1)
    return count


def walk_homes(home: str) -> int:
    """Both apps' folders below `home`: Claude's with the side folders of sessions, Codex's by date."""
    total = 0
    for folder, depth in ((".claude/projects", 2), (".codex/sessions", 3), (".codex/archived_sessions", 0)):
        path = os.path.join(home, folder)
        if os.path.isdir(path):
            total += walk(path, depth)
    return total


if __name__ == "__main__":
    walk_homes(sys.argv[1])

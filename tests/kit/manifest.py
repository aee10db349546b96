"""What must not change below a source: every byte of metadata but the access time."""

from __future__ import annotations

import os


def manifest(*roots):
    """Path -> what `lstat` and the extended attributes say, for everything below the roots."""
    return {path: _entry(path) for root in roots for path in _walk(str(root))}


def _walk(root):
    yield root
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            yield os.path.join(folder, name)


def _entry(path):
    status = os.lstat(path)
    attributes = {}
    if hasattr(os, "listxattr"):
        for name in os.listxattr(path, follow_symlinks=False):
            attributes[name] = os.getxattr(path, name, follow_symlinks=False)
    return (
        status.st_dev, status.st_ino, status.st_mode, status.st_nlink, status.st_uid, status.st_gid, status.st_size,
        status.st_mtime_ns, status.st_ctime_ns, attributes,
    )  # fmt: skip

"""How well a folder can be watched: which directories the kernel watches for us, and file systems without events."""

from __future__ import annotations

import os
import sys

_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre")
_GUEST = ("9p", "vboxsf", "prl_fs", "virtiofs", "fakeowner", "fuse.grpcfuse", "fuse.vmhgfs-fuse")
_MUTE = frozenset((*_NETWORK, *_GUEST, "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.glusterfs"))
"""File systems on which others' changes raise no events here."""


def watched_inodes() -> set[int] | None:
    """The inodes of all directories that this process watches, as procfs tells; None where it does not."""
    if not sys.platform.startswith("linux"):
        return None
    found: set[int] = set()
    try:
        for descriptor in os.listdir("/proc/self/fd"):
            try:
                if os.readlink(f"/proc/self/fd/{descriptor}") != "anon_inode:inotify":
                    continue
                with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as lines:
                    found.update(int(line.split(" ino:")[1].split()[0], 16) for line in lines if " ino:" in line)
            except FileNotFoundError:
                continue
    except OSError:
        return None
    return found


def is_mute(path: str) -> bool:
    """Whether the file system that holds `path` is one that does not report others' changes."""
    return _file_system(os.path.realpath(path)) in _MUTE


def _file_system(path: str) -> str:
    """The type of the file system, empty where the system has no mount table to read."""
    best, kind = -1, ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                left, _, right = line.partition(" - ")
                point = left.split(" ")[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
                inside = path == point or path.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= best:
                    best, kind = len(point), right.split(" ", 1)[0]
    except OSError:
        return ""
    return kind


def watch_limit() -> int:
    """The present limit of directories to watch, 0 where it cannot be read."""
    try:
        with open("/proc/sys/fs/inotify/max_user_watches", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0

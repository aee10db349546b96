"""A note beside the index: how its file was when it was last closed, all of it well.

Looking through a whole index takes as long as a scan that finds nothing new. While not even the times of the file have
changed since, nobody wrote to it, and one look at it is enough (docs/decisions/0073-a-note-that-the-index-is-sound.md).
"""

import contextlib
import os
import stat

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NOTE_BYTES = 200


def note(path: str) -> None:
    """Leave the note for the index at `path`; nothing more comes of it when that is not possible."""
    new = _note_file(path) + ".new"
    with contextlib.suppress(OSError):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        with open(os.open(new, _WRITE, 0o600), "wb") as file:
            file.write(_look(path))
        os.replace(new, _note_file(path))
        return
    with contextlib.suppress(OSError):
        os.unlink(new)


def is_noted(path: str) -> bool:
    """Whether the index at `path` is still the file that the note was left for."""
    try:
        with open(os.open(_note_file(path), _READ), "rb", 0) as file:
            return stat.S_ISREG(os.fstat(file.fileno()).st_mode) and file.read(_NOTE_BYTES) == _look(path)
    except OSError:
        return False


def _note_file(path: str) -> str:
    return path + "-sound"


def _look(path: str) -> bytes:
    """What changes with every write; raises OSError when a write-ahead log is left, whose pages count as well."""
    if os.path.exists(path + "-wal") and os.path.getsize(path + "-wal"):
        raise FileExistsError(path + "-wal")
    status = os.stat(path)
    return b"%d %d %d %d %d" % (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

"""A private copy of a vendor's live SQLite file (docs/decisions/0020-database-snapshots.md).

The source is never opened through SQLite: in place, `mode=ro` creates files beside it and `immutable=1` hides the rows
that are still in the `-wal`. It is copied, and the copy is accepted only when it must be whole:

* Within one generation of the `-wal` (same salts in its header) the `-wal` only grows, and every page that a checkpoint
  may have put into the database during the copy is in the `-wal` too. So database first, then `-wal`, with an equal
  header before, in the copy and after, replays to the last complete commit; SQLite drops half-written frames itself.
* Without a usable `-wal` nothing may have changed at all: inode, size, times, change counter, and the `-journal` with
  the number that tells one transaction from the next. A journal is copied too, and rolled back in the copy.
"""

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from sessiond.vendor_database.scratch import Scratch

Connection = sqlite3.Connection
T = TypeVar("T")

WAL_HEADER_BYTES = 32
JOURNAL_HEADER_BYTES = 28
MAX_BYTES = 1 << 30
"""A larger database is not copied."""
KEEP_BYTES = 8 << 20
"""From this size on the copy of the database is kept, and only the `-wal` is copied again while its salts stay."""
QUIET_S = 0.02
"""A tick of the coarsest file system's clock, twice."""
PATIENCE_S = 2.0
"""How long a copy is tried for."""
_BLOCK_BYTES = 1 << 20
_WAL_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class SnapshotError(Exception):
    """Why there is no usable copy, in words for the user."""


class _Look(NamedTuple):
    """What decides whether a copy can be trusted."""

    inode: tuple[int, int]
    unchanged: tuple[int, int, int]
    """Size, mtime and ctime of the database."""
    counter: bytes
    """The first 100 bytes of the database: journal mode, change counter."""
    wal: bytes
    """The header of the `-wal`, empty when there is no usable one."""
    journal: tuple[int, int, bytes] | None
    """Inode, size and first bytes of the `-journal`, in which a random number tells its transaction."""
    bytes: int

    @property
    def is_settled(self) -> bool:
        """Whether times can prove that nothing changed: the last change is older than a clock's tick.

        It matters where a `-wal` was just folded in and removed: that leaves the change counter as it was.
        """
        in_wal_mode = self.counter[18:20] == b"\2\2"
        age_s = time.time() - max(self.unchanged[1], self.unchanged[2]) / 1e9
        return bool(self.wal) or not in_wal_mode or not -1 < age_s < QUIET_S


class Snapshots:
    """Reads databases by private copies in one scratch folder."""

    def __init__(self, scratch: Scratch, *, keep_bytes: int = KEEP_BYTES, max_bytes: int = MAX_BYTES) -> None:
        self._scratch = scratch
        self._keep_bytes = keep_bytes
        self._max_bytes = max_bytes
        self._kept: dict[str, _Kept] = {}
        self._read_before: set[str] = set()
        """A copy is kept from the second reading on: a process that reads once has no use for it."""

    def read(self, path: str, use: Callable[[Connection], T]) -> T:
        """What `use` makes of a connection to the copy; raises SnapshotError when no good copy can be had."""
        try:
            copy, checked = self._copied(path)
            try:
                with contextlib.closing(_opened(copy)) as connection:
                    if not checked:
                        _check(connection)
                    return use(connection)
            finally:
                self._tidy(path, copy)
        except sqlite3.Error as error:
            self.forget(path)
            raise SnapshotError(f"corrupt: {error}") from error
        except FileNotFoundError as error:
            raise SnapshotError("it went away while it was copied") from error
        except OSError as error:
            raise SnapshotError(f"cannot be copied: {error.strerror or error}") from error
        finally:
            self._read_before.add(path)
            if not self._kept:
                self._scratch.leave()

    def forget(self, path: str) -> None:
        """Remove the kept copy of a database."""
        kept = self._kept.pop(path, None)
        if kept is not None:
            _remove(kept.path)

    def _copied(self, path: str) -> tuple[str, bool]:
        """The path of a whole copy, and whether its main part was checked before."""
        deadline = time.monotonic() + PATIENCE_S
        pause_s = 0.001
        while True:
            try:
                copy = self._try(path)
            except FileNotFoundError:
                if not os.path.lexists(path):
                    raise
                copy = None
            if copy is not None:
                return copy
            if time.monotonic() > deadline:
                raise SnapshotError("stale: it changes too fast to be copied; tried for 2 s")
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, QUIET_S)

    def _try(self, path: str) -> tuple[str, bool] | None:
        before = _look(path)
        if before.bytes > self._max_bytes:
            raise SnapshotError(f"too large to be copied ({before.bytes >> 20} MiB); indexed from the rollouts alone")
        if not before.is_settled:
            return None
        kept = self._kept.get(path)
        if kept is not None and before.wal and (kept.look.wal, kept.look.inode) == (before.wal, before.inode):
            copied = _Copied(kept.look.counter, _copy(path + "-wal", kept.path + "-wal"), b"")
            return (kept.path, True) if _is_whole(before, copied, _look(path)) else None
        self.forget(path)
        copy = self._scratch.file()
        try:
            is_whole = _is_whole(before, _copy_all(path, copy, before), _look(path))
        except BaseException:
            _remove(copy)
            raise
        if not is_whole:
            _remove(copy)
            return None
        if before.wal and path in self._read_before and os.path.getsize(copy) >= self._keep_bytes:
            self._kept[path] = _Kept(copy, before)
        return copy, False

    def _tidy(self, path: str, copy: str) -> None:
        kept = self._kept.get(path)
        _remove(copy, main=kept is None or kept.path != copy)


class _Kept(NamedTuple):
    path: str
    look: _Look


class _Copied(NamedTuple):
    """The first bytes of each copied file."""

    counter: bytes
    wal: bytes
    journal: bytes


def _is_whole(before: _Look, copied: _Copied, after: _Look) -> bool:
    if after.inode != before.inode or after.journal != before.journal or after.wal != before.wal:
        return False
    if before.wal:
        return copied.wal[:WAL_HEADER_BYTES] == before.wal
    if before.journal is not None and copied.journal[:JOURNAL_HEADER_BYTES] != before.journal[2]:
        return False
    return after.unchanged == before.unchanged and after.counter == copied.counter == before.counter


def _copy_all(path: str, copy: str, before: _Look) -> _Copied:
    counter = _copy(path, copy)[:100]
    wal = _copy(path + "-wal", copy + "-wal") if before.wal else b""
    journal = _copy(path + "-journal", copy + "-journal") if before.journal is not None else b""
    return _Copied(counter, wal, journal)


def _copy(source: str, target: str) -> bytes:
    """Copy a file; its first bytes as they were copied."""
    first = b""
    descriptor = os.open(source, _FLAGS)
    try:
        out = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            while block := os.read(descriptor, _BLOCK_BYTES):
                first = first or block[:100]
                rest = memoryview(block)
                while rest:
                    rest = rest[os.write(out, rest) :]
        finally:
            os.close(out)
    finally:
        os.close(descriptor)
    return first


def _look(path: str) -> _Look:
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise SnapshotError("not a regular file")
        counter = os.read(descriptor, 100)
    finally:
        os.close(descriptor)
    wal, wal_bytes = _wal_header(path + "-wal")
    return _Look(
        (status.st_dev, status.st_ino),
        (status.st_size, status.st_mtime_ns, status.st_ctime_ns),
        counter,
        wal,
        _journal(path + "-journal"),
        status.st_size + wal_bytes,
    )


def _wal_header(path: str) -> tuple[bytes, int]:
    try:
        descriptor = os.open(path, _FLAGS)
    except FileNotFoundError:
        return b"", 0
    try:
        header = os.read(descriptor, WAL_HEADER_BYTES)
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    usable = len(header) == WAL_HEADER_BYTES and header.startswith(_WAL_MAGIC)
    return (header, size) if usable else (b"", 0)


def _journal(path: str) -> tuple[int, int, bytes] | None:
    try:
        descriptor = os.open(path, _FLAGS)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(descriptor)
        return status.st_ino, status.st_size, os.read(descriptor, JOURNAL_HEADER_BYTES)
    finally:
        os.close(descriptor)


def _opened(copy: str) -> Connection:
    """A connection to the copy; it may only write to roll a copied journal back."""
    mode = "rw" if os.path.exists(copy + "-journal") else "ro"
    name = copy.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return sqlite3.connect(f"file:{name}?mode={mode}", uri=True, isolation_level=None)


def rows(connection: Connection, query: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query; when a text is no UTF-8, they come once more from the start with such bytes replaced."""
    try:
        yield from connection.execute(query)
    except sqlite3.OperationalError as error:
        if "UTF-8" not in str(error):
            raise
        connection.text_factory = _tolerant
        yield from connection.execute(query)


def _tolerant(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _check(connection: Connection) -> None:
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(str(verdict))


def _remove(copy: str, *, main: bool = True) -> None:
    for suffix in ("-wal", "-shm", "-journal", *([""] if main else [])):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(copy + suffix)

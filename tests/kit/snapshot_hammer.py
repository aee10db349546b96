"""Private copies of a database against a writer that does everything to it; two ways of reading that must fail.

    python -m tests.kit.snapshot_hammer [--reads 10000] [--journal delete] [--seed 1]

The writer keeps `ROWS` rows of one generation number: each transaction raises all of them by one, and then says so. A
read is *torn* when it meets several generations, a wrong number of rows or a damaged file, and *stale* when it is older
than what the writer had said before the read began. Between commits the writer checkpoints in all modes, vacuums, rolls
back (after it wrote uncommitted pages to disk), closes and opens anew; from time to time it is killed and another one
takes over.
"""

from __future__ import annotations

import argparse
import contextlib
import mmap
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator

from sessiond.vendor_database import snapshot
from sessiond.vendor_database.scratch import Scratch
from sessiond.vendor_database.snapshot import SnapshotError, Snapshots

ROWS = 400
PADDING = "x" * 900
"""Makes the file large enough that a copy takes a while."""
TABLE = "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, generation INTEGER NOT NULL, padding TEXT NOT NULL)"
CONTROLS = ("naive copy", "immutable")
CONTROL_S = 15
"""How much longer the ways of reading that must fail are given to do so."""
CHECKPOINTS = ("PASSIVE", "FULL", "RESTART", "TRUNCATE")


class Said:
    """The generation that the writer has committed, shared between processes; outlives a killed one."""

    def __init__(self, path: str) -> None:
        with open(path, "ab") as file:
            file.truncate(8)
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 8)

    @property
    def generation(self) -> int:
        return struct.unpack("<q", self._memory[:8])[0]

    @generation.setter
    def generation(self, value: int) -> None:
        self._memory[:8] = struct.pack("<q", value)

    def close(self) -> None:
        self._memory.close()


# -- the writer --------------------------------------------------------------------------------------------------------


def write_for_ever(path: str, said: Said, journal: str, seed: int) -> None:
    """Until this process is killed, or nobody waits for it any more."""
    chance = random.Random(seed)
    connection = _opened_to_write(path, journal)
    generation = connection.execute("SELECT max(generation) FROM t").fetchone()[0]
    parent = os.getppid()
    while os.getppid() == parent:
        action = chance.random()
        if action < 0.10:
            _raise_all(connection, generation + 1)
            connection.execute("ROLLBACK")
        elif action < 0.12:
            connection.execute("VACUUM")
        elif action < 0.20:
            connection.close()
            connection = _opened_to_write(path, journal)
        elif action < 0.55 and journal == "wal":
            connection.execute(f"PRAGMA wal_checkpoint({chance.choice(CHECKPOINTS)})").fetchall()
        else:
            generation += 1
            _raise_all(connection, generation)
            connection.execute("COMMIT")
            said.generation = generation
            if chance.random() < 0.2:
                time.sleep(chance.random() * 0.03)


def _raise_all(connection: sqlite3.Connection, generation: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE t SET generation = ?, padding = ?", (generation, PADDING[generation % 9 :]))


def _opened_to_write(path: str, journal: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=10)
    connection.execute("PRAGMA busy_timeout=10000")
    connection.execute(f"PRAGMA journal_mode={journal}").fetchall()
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA cache_size=20")  # so small that uncommitted pages reach the disk
    connection.execute(TABLE)
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("SELECT count(*) FROM t").fetchone() == (0,):
        connection.executemany("INSERT INTO t VALUES (?, 1, ?)", [(i, PADDING) for i in range(ROWS)])
    connection.execute("COMMIT")
    return connection


class Writer:
    """The writing process; it can be killed and followed by another one."""

    def __init__(self, folder: str, journal: str, seed: int) -> None:
        self.path = os.path.join(folder, "state_5.sqlite")
        self.said = Said(os.path.join(folder, "..", "said"))
        self._journal = journal
        self._seed = seed
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        said = os.path.join(os.path.dirname(self.path), "..", "said")
        self._seed += 1
        arguments = [sys.executable, "-m", "tests.kit.snapshot_hammer", "--writer", self.path, said]
        self._process = subprocess.Popen([*arguments, "--journal", self._journal, "--seed", str(self._seed)])
        seen, deadline = self.said.generation, time.monotonic() + 20
        while self.said.generation == seen:
            assert self._process.poll() is None, "the writer ended by itself"
            assert time.monotonic() < deadline, "the writer did not commit within 20 s"
            time.sleep(0.005)

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


# -- the readers -------------------------------------------------------------------------------------------------------

State = tuple[int, int, int]
"""Rows, lowest and highest generation."""


def state_of(connection: sqlite3.Connection) -> State:
    return connection.execute("SELECT count(*), min(generation), max(generation) FROM t").fetchone()


def by_snapshot(snapshots: Snapshots, path: str) -> State:
    return snapshots.read(path, state_of)


def by_naive_copy(folder: str, path: str) -> State:
    """Negative control: the database, then the `-wal` and the `-journal`, as they come."""
    copy = os.path.join(folder, "naive.sqlite")
    for suffix in ("-shm", "-wal", "-journal", ""):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(copy + suffix)
    snapshot._copy(path, copy)
    for suffix in ("-wal", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            snapshot._copy(path + suffix, copy + suffix)
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        return state_of(connection)


def by_immutable(_folder: str, path: str) -> State:
    """Negative control: in place, as if nobody wrote."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
        return state_of(connection)


def judged(read: Callable[[], State], said: Said) -> str:
    """`good`, `torn`, `stale`, or `none` when the reader itself says that it has no good copy."""
    before = said.generation
    try:
        count, low, high = read()
    except SnapshotError as error:
        return "torn" if "corrupt" in str(error) else "none"
    except sqlite3.Error:
        return "torn"
    if count != ROWS or low != high:
        return "torn"
    return "stale" if low < before else "good"


def hammer(journal: str, reads: int, seed: int, limit_s: float) -> dict[str, Counter[str]]:
    """Verdicts by reader after so many reads by snapshot, or after the time."""
    verdicts: dict[str, Counter[str]] = {n: Counter() for n in ("snapshot", "kept copy", *CONTROLS)}
    chance = random.Random(seed)
    with _folders() as (source, own), _slow_copies(chance):
        writer = Writer(source, journal, seed)
        plain, kept = Snapshots(Scratch(own)), Snapshots(Scratch(own), keep_bytes=1)
        readers: dict[str, Callable[[], State]] = {
            "snapshot": lambda: by_snapshot(plain, writer.path),
            "kept copy": lambda: by_snapshot(kept, writer.path),
            "naive copy": lambda: by_naive_copy(own, writer.path),
            "immutable": lambda: by_immutable(own, writer.path),
        }
        deadline = time.monotonic() + limit_s
        try:
            writer.start()
            for number in range(reads):
                if number and number % 150 == 0:
                    writer.kill()
                    assert_untouched(source, lambda: by_snapshot(plain, writer.path))
                    writer.start()
                for name, read in readers.items():
                    verdicts[name][judged(read, writer.said)] += 1
                if time.monotonic() > deadline:
                    break
            deadline = time.monotonic() + CONTROL_S
            while (weak := weak_controls(verdicts)) and time.monotonic() < deadline:
                for name in weak:
                    verdicts[name][judged(readers[name], writer.said)] += 1
        finally:
            writer.kill()
            writer.said.close()
        names = set(os.listdir(source))
        assert names <= {"state_5.sqlite" + suffix for suffix in ("", "-wal", "-shm", "-journal")}, names
    return verdicts


def weak_controls(verdicts: dict[str, Counter[str]]) -> list[str]:
    """The ways of reading that should have failed and did not."""
    return [name for name in CONTROLS if not verdicts[name]["torn"] + verdicts[name]["stale"]]


@contextlib.contextmanager
def _slow_copies(chance: random.Random) -> Iterator[None]:
    """Every copy, a good or a naive one, waits before each file for as long as one of some megabytes takes."""
    fast = snapshot._copy

    def slow(source: str, target: str) -> bytes:
        time.sleep(chance.random() * 0.005)
        return fast(source, target)

    snapshot._copy = slow
    try:
        yield
    finally:
        snapshot._copy = fast


def assert_untouched(folder: str, read: Callable[[], State]) -> None:
    """Reading what a killed writer left behind changes no byte, no time and no name."""
    before = _everything(folder)
    count, low, high = read()
    assert (count, low) == (ROWS, high)
    assert _everything(folder) == before


def _everything(folder: str) -> dict[str, tuple[int, int, int, bytes]]:
    found = {}
    for entry in os.scandir(folder):
        status = entry.stat()
        with open(entry.path, "rb") as file:
            found[entry.name] = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, file.read())
    return found


@contextlib.contextmanager
def _folders() -> Iterator[tuple[str, str]]:
    folder = tempfile.mkdtemp(prefix="hammer-")
    try:
        source, own = os.path.join(folder, "source"), os.path.join(folder, "own")
        os.mkdir(source)
        os.mkdir(own, 0o700)
        yield source, own
    finally:
        shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reads", type=int, default=10_000)
    parser.add_argument("--journal", choices=("wal", "delete", "truncate", "persist"), default="wal")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--writer", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.writer:
        write_for_ever(options.writer[0], Said(options.writer[1]), options.journal, options.seed)
        return 0
    began = time.monotonic()
    verdicts = hammer(options.journal, options.reads, options.seed, limit_s=float("inf"))
    for name, counts in verdicts.items():
        print(f"{name:<11}", ", ".join(f"{counts[kind]} {kind}" for kind in ("good", "torn", "stale", "none")))
    print(f"{time.monotonic() - began:.0f} s, journal mode {options.journal}, seed {options.seed}")
    bad = sum(verdicts[name][kind] for name in ("snapshot", "kept copy") for kind in ("torn", "stale"))
    weak = weak_controls(verdicts)
    if weak:
        print("too weak: every read was good by", ", ".join(weak))
    return 1 if bad or weak else 0


if __name__ == "__main__":
    sys.exit(main())

"""Private copies of a live database: what they see, and that the source does not notice."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys

import pytest

from sessiond.vendor_database import snapshot
from sessiond.vendor_database.scratch import Scratch, sweep
from sessiond.vendor_database.snapshot import SnapshotError, Snapshots, rows


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    return folder / "state_5.sqlite"


@pytest.fixture
def own(tmp_path):
    return tmp_path / "own"


@pytest.fixture
def snapshots(own):
    return Snapshots(Scratch(str(own)))


@contextlib.contextmanager
def writer(path, journal="wal"):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode={journal}")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
    try:
        yield connection
    finally:
        connection.close()


def values(connection):
    return [x for (x,) in connection.execute("SELECT x FROM t ORDER BY x")]


def everything(folder):
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns, path.stat().st_ctime_ns, path.read_bytes())
        for path in folder.iterdir()
    }


def killed_writer(path, *statements, journal="wal"):
    """Let a process carry out statements and die without closing the database."""
    code = (
        "import os, sqlite3, sys\n"
        f"c = sqlite3.connect({str(path)!r}, isolation_level=None)\n"
        f"c.execute('PRAGMA journal_mode={journal}')\n"
        "c.execute('PRAGMA wal_autocheckpoint=0')\n"
        "c.execute('PRAGMA cache_size=5')\n"
        "for s in sys.argv[1:]: c.execute(s)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, *statements], check=False)


def test_a_row_that_is_only_in_the_wal_is_seen(source, snapshots):
    with writer(source) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        assert snapshots.read(str(source), values) == [1]


def test_a_brand_new_database_whose_table_is_only_in_the_wal_is_seen(source, snapshots):
    with writer(source) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        assert source.stat().st_size <= 4096
        assert snapshots.read(str(source), values) == [1]


def test_an_uncommitted_row_is_not_seen(source, snapshots):
    with writer(source) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (2)")
        assert snapshots.read(str(source), values) == [1]
        connection.execute("ROLLBACK")


def test_uncommitted_pages_that_reached_the_wal_are_not_seen(source, snapshots):
    with writer(source) as connection:
        connection.execute("PRAGMA cache_size=5")
        connection.execute("INSERT INTO t VALUES (1)")
        size = (source.parent / "state_5.sqlite-wal").stat().st_size
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 2000,)] * 100)
        assert (source.parent / "state_5.sqlite-wal").stat().st_size > size
        assert snapshots.read(str(source), values) == [1]
        connection.execute("ROLLBACK")


def test_what_a_killed_writer_committed_is_seen(source, snapshots):
    killed_writer(source, "CREATE TABLE t (x)", "INSERT INTO t VALUES (7)")
    assert (source.parent / "state_5.sqlite-wal").exists()
    assert snapshots.read(str(source), values) == [7]


def test_a_killed_transaction_in_rollback_mode_is_rolled_back_in_the_copy_alone(source, snapshots):
    fill = "INSERT INTO t VALUES " + ", ".join(["(1)"] * 9)
    raise_all = "UPDATE t SET x = zeroblob(3000)"
    killed_writer(source, "CREATE TABLE t (x)", fill, "BEGIN", raise_all, journal="delete")
    before = everything(source.parent)
    assert "state_5.sqlite-journal" in before
    assert snapshots.read(str(source), values) == [1] * 9
    assert everything(source.parent) == before


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("state", ["closed", "open", "killed"])
def test_reading_leaves_every_byte_time_and_name_beside_the_source_as_it_was(source, snapshots, journal, state):
    if state == "killed":
        killed_writer(source, "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)", journal=journal)
    with contextlib.ExitStack() as stack:
        if state != "killed":
            connection = stack.enter_context(writer(source, journal))
            connection.execute("INSERT INTO t VALUES (1)")
            if state == "closed":
                stack.close()
        before = everything(source.parent)
        assert snapshots.read(str(source), values) == [1]
        assert everything(source.parent) == before


def test_a_source_in_a_read_only_folder_is_read(source, snapshots):
    with writer(source) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    source.parent.chmod(0o500)
    try:
        assert snapshots.read(str(source), values) == [1]
    finally:
        source.parent.chmod(0o700)


def test_no_lock_of_the_writer_is_waited_for(source, snapshots):
    with writer(source) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("BEGIN EXCLUSIVE")
        assert snapshots.read(str(source), values) == [1]
        connection.execute("ROLLBACK")


def test_a_database_renamed_over_the_old_one_is_read_anew(source, own):
    snapshots = Snapshots(Scratch(str(own)), keep_bytes=1)
    with writer(source) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        assert snapshots.read(str(source), values) == [1]
    other = source.parent / "rebuilt"
    with writer(other) as connection:
        connection.execute("INSERT INTO t VALUES (2)")
    os.replace(other, source)
    assert snapshots.read(str(source), values) == [2]


def test_a_kept_copy_follows_the_wal_through_commits_and_checkpoints(source, own):
    snapshots = Snapshots(Scratch(str(own)), keep_bytes=1)
    with writer(source) as connection:
        for number in range(30):
            connection.execute("INSERT INTO t VALUES (?)", (number,))
            if number % 7 == 3:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            if number % 11 == 5:
                connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
            assert snapshots.read(str(source), values) == list(range(number + 1))


def test_only_the_wal_is_copied_again_while_its_salts_stay(source, own, monkeypatch):
    copied = []
    copy = snapshot._copy
    monkeypatch.setattr(snapshot, "_copy", lambda a, b: copied.append(os.path.basename(a)) or copy(a, b))
    snapshots = Snapshots(Scratch(str(own)), keep_bytes=1)
    with writer(source) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        snapshots.read(str(source), values)
        snapshots.read(str(source), values)
        connection.execute("INSERT INTO t VALUES (2)")
        copied.clear()
        assert snapshots.read(str(source), values) == [1, 2]
        assert copied == ["state_5.sqlite-wal"]


def test_a_copy_that_is_not_kept_is_deleted_when_it_was_read(source, snapshots, own):
    with writer(source) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        snapshots.read(str(source), values)
        assert list(own.iterdir()) == []


def test_a_process_that_reads_once_keeps_no_copy(source, own):
    snapshots = Snapshots(Scratch(str(own)), keep_bytes=1)
    with writer(source) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        snapshots.read(str(source), values)
        assert list(own.iterdir()) == []
        snapshots.read(str(source), values)
        assert [p.suffix for p in own.rglob("*.db*")] == [".db"]
        snapshots.forget(str(source))


def test_a_copy_is_deleted_when_copying_fails(source, snapshots, own, monkeypatch):
    def full(path, copy, _before):
        with open(copy, "w") as file:
            file.write("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(snapshot, "_copy_all", full)
    with writer(source), pytest.raises(SnapshotError, match="No space left"):
        snapshots.read(str(source), values)
    assert list(own.iterdir()) == []


def test_a_copy_is_deleted_when_using_it_fails(source, snapshots, own):
    with writer(source):
        pass
    with pytest.raises(SnapshotError):
        snapshots.read(str(source), lambda connection: connection.execute("SELECT nothing FROM nowhere"))
    assert list(own.iterdir()) == []


def test_copies_can_be_entered_by_their_user_alone(source, own):
    snapshots = Snapshots(Scratch(str(own)))
    modes = []

    def note(connection):
        path = connection.execute("PRAGMA database_list").fetchone()[2]
        modes.append((os.stat(path).st_mode & 0o777, os.stat(os.path.dirname(path)).st_mode & 0o777))

    with writer(source) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        umask = os.umask(0)
        try:
            snapshots.read(str(source), note)
        finally:
            os.umask(umask)
    assert modes == [(0o600, 0o700)]


LOOK = snapshot._Look((1, 2), (4096, 5, 5), b"counter", b"w" * 32, (3, 512, b"j" * 28), 8192)
COPIED = snapshot._Copied(b"counter", b"w" * 32 + b"frames", b"j" * 28 + b"pages")


@pytest.mark.parametrize(
    ("before", "copied", "after", "whole"),
    [
        (LOOK, COPIED, LOOK, True),
        (LOOK, COPIED, LOOK._replace(unchanged=(8192, 6, 6), counter=b"other"), True),
        (LOOK, COPIED, LOOK._replace(wal=b"x" * 32), False),
        (LOOK, COPIED._replace(wal=b"x" * 32), LOOK, False),
        (LOOK, COPIED._replace(wal=b""), LOOK, False),
        (LOOK, COPIED, LOOK._replace(inode=(1, 9)), False),
        (LOOK, COPIED, LOOK._replace(journal=None), False),
        (LOOK._replace(wal=b""), COPIED, LOOK._replace(wal=b""), True),
        (LOOK._replace(wal=b""), COPIED, LOOK, False),
        (LOOK._replace(wal=b""), COPIED, LOOK._replace(wal=b"", unchanged=(4096, 6, 5)), False),
        (LOOK._replace(wal=b""), COPIED, LOOK._replace(wal=b"", counter=b"other"), False),
        (LOOK._replace(wal=b""), COPIED._replace(counter=b"other"), LOOK._replace(wal=b""), False),
        (LOOK._replace(wal=b""), COPIED._replace(journal=b"k" * 28), LOOK._replace(wal=b""), False),
    ],
)
def test_a_copy_is_whole_only_when_nothing_that_matters_changed_meanwhile(before, copied, after, whole):
    assert snapshot._is_whole(before, copied, after) is whole


DAMAGE = {
    "no bytes": lambda data: b"",
    "no database": lambda data: b"hello" * 1000,
    "cut off": lambda data: data[: len(data) // 2],
    "header zeroed": lambda data: bytes(100) + data[100:],
    "page overwritten": lambda data: data[:4096] + b"\xaa" * 4096 + data[8192:],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_database_is_an_error_in_words(source, snapshots, damage):
    with writer(source, "delete") as connection:
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 100)
    source.write_bytes(damage(source.read_bytes()))
    if damage is DAMAGE["no bytes"]:
        with pytest.raises(SnapshotError, match="no such table"):
            snapshots.read(str(source), values)
    else:
        with pytest.raises(SnapshotError, match=r"^corrupt: "):
            snapshots.read(str(source), values)


def test_a_missing_database_is_an_error_in_words(source, snapshots):
    with pytest.raises(SnapshotError, match="went away"):
        snapshots.read(str(source), values)


def test_a_pipe_is_never_waited_for(source, snapshots):
    os.mkfifo(source)
    with pytest.raises(SnapshotError, match="not a regular file"):
        snapshots.read(str(source), values)


def test_a_database_over_the_size_limit_is_not_copied(source, own):
    with writer(source) as connection:
        connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
    with pytest.raises(SnapshotError, match="too large"):
        Snapshots(Scratch(str(own)), max_bytes=50_000).read(str(source), values)


def test_a_database_that_never_rests_is_given_up_after_a_bounded_time(source, snapshots, monkeypatch):
    with writer(source, "delete"):
        pass
    monkeypatch.setattr(snapshot, "_is_whole", lambda *_: False)
    monkeypatch.setattr(snapshot, "PATIENCE_S", 0.05)
    with pytest.raises(SnapshotError, match=r"^stale: "):
        snapshots.read(str(source), values)


def test_text_that_is_no_utf_8_does_not_stop_the_reading(source, snapshots):
    with writer(source) as connection:
        connection.execute("INSERT INTO t VALUES (CAST(x'61FF62' AS TEXT))")
        found = snapshots.read(str(source), lambda connection: list(rows(connection, "SELECT x FROM t")))
        assert found == [("a\ufffdb",)]


# -- nothing left behind -----------------------------------------------------------------------------------------------


def test_what_a_killed_process_left_is_removed_when_the_next_one_begins(own):
    own.mkdir(0o700)
    code = (
        "import os, sys\n"
        "from sessiond.vendor_database.scratch import Scratch\n"
        "s = Scratch(sys.argv[1])\n"
        "open(s.file(), 'w').write('private')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(own)], check=False)
    assert [p.read_text() for p in own.rglob("*.db")] == ["private"]
    Scratch(str(own)).file()
    assert list(own.rglob("*.db")) == []


def test_the_copies_of_a_living_process_are_left_alone(own):
    first = Scratch(str(own))
    path = first.file()
    with open(path, "w") as file:
        file.write("private")
    sweep(str(own))
    assert os.path.exists(path)


def test_a_process_that_ends_by_itself_leaves_nothing(own):
    code = (
        "import sys\n"
        "from sessiond.vendor_database.scratch import Scratch\n"
        "s = Scratch(sys.argv[1])\n"
        "open(s.file(), 'w').close()\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(own)], check=True)
    assert list(own.iterdir()) == []


def test_a_scratch_folder_that_was_removed_is_made_again(own):
    scratch = Scratch(str(own))
    for _ in range(2):
        path = scratch.file()
        with open(path, "w"):
            pass
        shutil.rmtree(os.path.dirname(path))

"""Group I of docs/faults.md: what can happen to our own index."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from tests.kit.oracle import assert_sound, equals_oracle
from tests.kit.privileges import Mount, need_mounts, need_strace, obedient
from tests.kit.world import REPOSITORY, id_of, until


def damages():
    def zeroed_header(path):
        with open(path, "r+b") as file:
            file.write(bytes(100))

    def garbage_in_the_middle(path):
        with open(path, "r+b") as file:
            file.seek(4096 * 3)
            file.write(b"\xde\xad\xbe\xef" * 6000)

    def cut_short(path):
        os.truncate(path, os.path.getsize(path) // 2 + 123)

    def emptied(path):
        os.truncate(path, 0)

    def text(path):
        with open(path, "w") as file:
            file.write("this is no database\n" * 1000)

    return [zeroed_header, garbage_in_the_middle, cut_short, emptied, text]


def grow(world, count=30):
    return [world.claude(f"prompt {number}", project=f"-project-{number % 3}") for number in range(count)]


# -- I1, I2: the process or the machine dies -------------------------------------------------------------------------


def test_i1_a_killed_daemon_leaves_a_sound_index_that_goes_on(world, daemon):
    paths = grow(world, 10)
    dice = random.Random(1)
    for turn in range(12):
        process = daemon(wait=False)
        stop = time.monotonic() + dice.uniform(0.05, 0.5)
        while time.monotonic() < stop:
            world.name(dice.choice(paths), f"turn {turn}")
            if dice.random() < 0.2:
                paths.append(world.claude(f"born in turn {turn}"))
            time.sleep(0.003)
        process.kill()
        if os.path.exists(world.index):
            assert_sound(world.index)
    daemon()
    assert len(world.titles()) == len(paths)
    equals_oracle(world)


def test_i2_an_index_whose_last_writes_were_lost_is_sound_and_catches_up(world, daemon):
    paths = grow(world)
    process = daemon(checkpoint_s=3600)
    for number in range(10):
        world.name(paths[number], f"name {number}")
        until(lambda n=number: f"name {n}" in world.titles().values(), "the name is seen")
    process.kill()
    wal = world.index + "-wal"
    size = os.path.getsize(wal)
    assert size > 0
    dice = random.Random(2)
    kept = {}
    for suffix in ("", "-wal"):
        with open(world.index + suffix, "rb") as file:
            kept[suffix] = file.read()
    for offset in [dice.randrange(size) for _ in range(4)]:
        for suffix, data in kept.items():
            with open(world.index + suffix, "wb") as file:
                file.write(data)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(world.index + "-shm")
        os.truncate(wal, offset)
        assert_sound_or_empty(world.index)
        world.once()
        equals_oracle(world)


def assert_sound_or_empty(index):
    """Losing the whole log of a young index loses its tables, too: that is an empty index, and no damage."""
    with contextlib.closing(sqlite3.connect(index)) as connection:
        assert connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]


# -- I3, I4: the file is damaged, deleted or replaced ----------------------------------------------------------------


@pytest.mark.parametrize("damage", damages())
def test_i3_a_damaged_index_is_set_aside_and_built_anew(world, damage):
    grow(world)
    world.once()
    damage(world.index)
    world.once()
    equals_oracle(world)
    assert os.path.exists(world.index + ".damaged") or damage.__name__ == "emptied"


def test_i3_one_damaged_copy_is_kept_and_no_more(world):
    grow(world, 2)
    for _ in range(3):
        world.once()
        with open(world.index, "r+b") as file:
            file.write(bytes(100))
    world.once()
    assert sorted(name for name in os.listdir(world.state) if "damaged" in name) == ["index.db.damaged"]


def test_i3_rows_of_vanished_sessions_survive_a_damage_elsewhere(world):
    paths = grow(world, 100)
    world.once()
    os.unlink(paths[0])
    world.once()
    time.sleep(2.1)
    world.once()
    assert world.rows("SELECT id FROM sessions WHERE gone_ms IS NOT NULL") == [(id_of(paths[0]),)]
    (page, size) = world.rows("SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema"
                              " WHERE name = 'sources'")[0]  # fmt: skip
    with open(world.index, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    world.once()
    assert world.rows("SELECT id, title FROM sessions WHERE gone_ms IS NOT NULL") == [(id_of(paths[0]), "prompt 0")]
    equals_oracle(world)


def test_i3_a_page_that_goes_bad_under_a_running_daemon_is_mended(world, daemon):
    paths = grow(world)
    process = daemon(checkpoint_s=0.2)
    until(lambda: os.path.getsize(world.index + "-wal") == 0, "the log is in the file")
    with open(world.index, "r+b") as file:
        size = os.path.getsize(world.index)
        for page in range(1, size // 4096):
            file.seek(page * 4096)
            file.write(b"\xa5" * 4096)
    for number, path in enumerate(paths):
        world.name(path, f"after the damage {number}")
    process.send(signal.SIGHUP)  # the check that comes by itself every ten minutes
    until(lambda: set(world.titles().values()) == {f"after the damage {n}" for n in range(30)}, "it is built anew", 15)
    assert process.is_alive()
    equals_oracle(world)


@pytest.mark.parametrize("how", ["unlinked", "renamed over", "folder emptied but for the locks"])
def test_i4_an_index_that_goes_away_under_a_running_daemon_is_built_anew(world, daemon, how):
    paths = grow(world)
    process = daemon()
    if how == "unlinked":
        os.unlink(world.index)
    elif how == "renamed over":
        with contextlib.closing(sqlite3.connect(world.index + ".new")) as connection:
            connection.execute("VACUUM")
        os.replace(world.index + ".new", world.index)
    else:
        for suffix in ("", "-wal", "-shm"):
            os.unlink(world.index + suffix)
    world.name(paths[0], "after the loss")
    until(lambda: "after the loss" in world.titles().values(), "it is built anew")
    until(lambda: len(world.titles()) == 30, "everything is back")
    assert process.is_alive()
    equals_oracle(world)


# -- I5 to I8: locked, crowded, read-only, full ----------------------------------------------------------------------


def test_i5_an_index_locked_for_long_is_caught_up_with_and_readable_meanwhile(world, daemon):
    (path, *_) = grow(world, 3)
    process = daemon(busy_ms=200)
    with contextlib.closing(sqlite3.connect(world.index, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        world.name(path, "written while locked")
        until(lambda: "is locked" in process.status(), "the service manager is told")
        assert len(world.titles()) == 3
        connection.execute("ROLLBACK")
    until(lambda: "written while locked" in world.titles().values(), "the change is in the index")


def test_i6_many_clients_and_a_daemon_at_once_build_one_index(world, daemon):
    grow(world)
    clients = [
        subprocess.Popen(
            [sys.executable, "-m", "sessions_cli.main", "list", "--json", "--limit", "0"],
            env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(16)
    ]  # fmt: skip
    process = daemon()
    ends = [(client.communicate(timeout=60), client.returncode) for client in clients]
    for (out, err), code in ends:
        assert "locked" not in err, err
        assert (code, "prompt 0" in out) == (0, True) or code == 9, (code, err)
    assert process.is_alive()
    equals_oracle(world)


def test_i7_a_folder_that_cannot_be_written_ends_a_start_with_the_configuration_code(world):
    prefix = obedient()
    grow(world, 1)
    world.once()
    os.chmod(world.index, 0o400)
    os.chmod(world.state, 0o500)
    try:
        done = world.run(prefix=prefix)
    finally:
        os.chmod(world.state, 0o700)
    assert done.returncode == 11
    assert len(done.stderr.strip().splitlines()) == 1


def test_i7_a_read_only_index_answers_all_the_same(world):
    prefix = obedient()
    grow(world, 1)
    world.once()
    os.chmod(world.index, 0o400)
    os.chmod(world.state, 0o500)
    try:
        done = world.run("list", "--no-refresh", module="sessions_cli.main", prefix=prefix)
    finally:
        os.chmod(world.state, 0o700)
    assert "prompt 0" in done.stdout, done.stderr


def test_i8_a_full_disk_keeps_the_index_readable_and_mends_itself(world, daemon):
    need_mounts()
    paths = grow(world, 5)
    with Mount(world.state, "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs"):
        process = daemon(retry_max_s=0.5)
        ballast = os.path.join(world.state, "ballast")
        with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        for number in range(60):
            paths.append(world.claude(f"too much {number} " + "x" * 180))
        until(lambda: "free some disk space" in process.status(), "the service manager is told")
        assert len(world.titles()) >= 5
        os.unlink(ballast)
        until(lambda: len(world.titles()) == len(paths), "everything is listed", 15)
        assert process.is_alive()
        equals_oracle(world)
        process.stop()


# -- I9, I10: other schemas ------------------------------------------------------------------------------------------


def test_i9_an_index_of_a_newer_program_is_refused_and_left_alone(world):
    grow(world, 1)
    world.once()
    world.write_index("PRAGMA user_version = 9999")
    with open(world.index, "rb") as file:
        before = file.read()
    done = world.run()
    assert (done.returncode, "upgrade" in done.stderr) == (4, True)
    with open(world.index, "rb") as file:
        assert file.read() == before


def test_i9_a_database_of_another_program_is_refused_and_left_alone(world):
    os.makedirs(world.state, mode=0o700)
    with contextlib.closing(sqlite3.connect(world.index)) as connection:
        connection.execute("CREATE TABLE precious (data)")
    done = world.run()
    assert (done.returncode, "another program" in done.stderr) == (4, True)
    assert world.rows("SELECT name FROM sqlite_schema") == [("precious",)]


def make_old(world):
    """What an older version would have left: fewer columns, other tables and search tables, a gone row."""
    with contextlib.closing(sqlite3.connect(world.index)) as connection:
        connection.execute("ALTER TABLE sessions DROP COLUMN forked_from")
        connection.execute("CREATE TABLE of_old (a)")
        connection.execute("CREATE VIRTUAL TABLE old_fts USING fts5(text)")
        connection.execute("INSERT INTO old_fts VALUES ('words of old')")
        connection.execute("CREATE VIEW old_view AS SELECT * FROM of_old")
        connection.execute("CREATE TRIGGER old_trigger AFTER INSERT ON of_old BEGIN DELETE FROM of_old; END")
        connection.execute("PRAGMA user_version = 0")
        connection.commit()


def test_i10_an_older_index_is_rebuilt_in_place_with_its_gone_rows(world):
    paths = grow(world, 5)
    world.once()
    os.unlink(paths[0])
    world.once()
    time.sleep(2.1)
    world.once()
    make_old(world)
    inode = os.stat(world.index).st_ino
    world.once()
    assert os.stat(world.index).st_ino == inode
    assert world.rows("SELECT id, title FROM sessions WHERE gone_ms IS NOT NULL") == [(id_of(paths[0]), "prompt 0")]
    assert world.rows("SELECT name FROM sqlite_schema WHERE name LIKE '%old%'") == []
    equals_oracle(world)
    found = world.run("find", "--no-refresh", "--all", "prompt 0", module="sessions_cli.main")
    assert "prompt 0" in found.stdout


def test_i10_a_reader_sees_the_old_or_the_new_index_and_nothing_between(world):
    grow(world, 200)
    world.once()
    with contextlib.closing(sqlite3.connect(f"file:{world.index}?mode=ro", uri=True, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM sessions").fetchone() == (200,)
        make_old(world)
        world.once()
        assert reader.execute("SELECT count(*) FROM sessions").fetchone() == (200,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM sessions").fetchone() == (200,)


# -- I11 to I14 ------------------------------------------------------------------------------------------------------


def test_i11_the_log_shrinks_once_a_pinned_reader_has_left(world, daemon):
    paths = grow(world, 20)
    daemon(checkpoint_s=0.3)
    with contextlib.closing(sqlite3.connect(f"file:{world.index}?mode=ro", uri=True, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sessions").fetchone()
        for number, path in enumerate(paths):
            world.name(path, f"name {number}")
        until(lambda: "name 19" in world.titles().values(), "the writer is not held up")
        assert os.path.getsize(world.index + "-wal") > 0
        reader.execute("COMMIT")
    world.name(paths[0], "after the reader")
    until(lambda: os.path.getsize(world.index + "-wal") == 0, "the log is empty")


def test_i12_a_search_table_out_of_step_is_mended_at_the_start(world, daemon):
    grow(world, 5)
    world.once()
    world.write_index("DELETE FROM sessions_fts_data WHERE id > 10")
    daemon()
    assert_sound(world.index)
    found = world.run("find", "prompt", module="sessions_cli.main")
    assert "prompt 0" in found.stdout


def test_i12_a_search_table_that_breaks_under_a_running_daemon_is_mended(world, daemon):
    paths = grow(world, 5)
    daemon()
    world.write_index("UPDATE sessions_fts_data SET block = x'ffffffff' WHERE id > 10")
    world.write_index("UPDATE sessions_fts_data SET block = x'ff' WHERE id = 10")
    for number, path in enumerate(paths):
        world.name(path, f"another name {number}")
    until(lambda: "another name 4" in world.titles().values(), "the change is in the index", 15)
    until(lambda: len(world.titles()) == 5, "everything is back")
    equals_oracle(world)


def test_i12_without_a_daemon_a_broken_search_table_is_mended_by_the_next_scan(world):
    paths = grow(world, 5)
    world.once()
    world.write_index("UPDATE sessions_fts_data SET block = x'ff' WHERE id = 10")
    for path in paths:
        world.name(path, "another name")
    world.once()
    equals_oracle(world)


def test_i12_a_search_table_that_only_reading_would_find_broken_is_mended_by_the_thorough_scan(world):
    grow(world, 5)
    world.once()
    world.write_index("UPDATE sessions_fts_data SET block = x'ffffffff' WHERE id > 10")
    found = world.run("find", "prompt", module="sessions_cli.main")
    assert "run: sessiond --once --gaps" in found.stderr
    world.once("--gaps")
    equals_oracle(world)


def test_i12_tables_that_somebody_dropped_are_made_again(world, daemon):
    paths = grow(world, 5)
    daemon()
    world.write_index("DROP TABLE observations")
    world.name(paths[0], "after the drop")
    until(lambda: "after the drop" in world.titles().values(), "the index is built anew", 15)
    equals_oracle(world)


def test_i13_row_numbers_mean_nothing_outside(world):
    (path,) = grow(world, 1)
    world.once()
    with open(path, "rb") as file:
        data = file.read()
    os.truncate(path, 0)
    world.once()
    other = world.claude("takes the number")
    world.once()
    with open(path, "wb") as file:
        file.write(data)
    world.once()
    assert world.titles() == {id_of(other): "takes the number", id_of(path): "prompt 0"}
    found = world.run("find", "prompt 0", module="sessions_cli.main")
    assert found.stdout.count("\n") == 1


SLOW = """
import time
from sessiond.scan import scanner
scanner.BATCH_SOURCES = 5
read = scanner.read
scanner.read = lambda *a: (time.sleep(0.02), read(*a))[1]
"""


def test_i14_a_half_built_index_says_so(world, daemon):
    grow(world, 60)
    process = daemon(code=SLOW, complete=False)
    until(lambda: str(world.meta("state")).startswith("building "), "the build is under way")
    done = world.run("find", "no such words", module="sessions_cli.main")
    assert (done.returncode, "still being built" in done.stderr) == (9, True), done.stderr
    assert "indexing" in process.status()
    until(lambda: world.meta("state") == "complete", "the build is done")
    assert len(world.titles()) == 60


# -- I15, I16: how SQLite wants to be used ---------------------------------------------------------------------------


def test_i15_the_daemon_opens_the_index_once_and_through_sqlite_alone(world, tmp_path):
    need_strace()
    grow(world, 3)
    world.once()
    trace = str(tmp_path / "trace")
    done = world.run("--once", prefix=("strace", "-f", "-qq", "-e", "trace=open,openat", "-o", trace))
    assert done.returncode == 0
    with open(trace) as file:
        opened = [line for line in file if re.search(r'index\.db"', line) and "= -1" not in line]
    assert len(opened) == 1


def test_i16_no_process_is_ever_forked_over_an_open_index():
    found = subprocess.run(
        ["grep", "-rnE", r"os\.fork|multiprocessing|ProcessPool", os.path.join(REPOSITORY, "sessiond")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.stdout == ""


def test_i16_a_running_daemon_has_no_children(world, daemon):
    grow(world, 3)
    process = daemon()
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        assert file.read() == ""


def test_a_stopped_daemon_leaves_one_file_of_an_index(world, daemon):
    grow(world, 3)
    process = daemon()
    assert process.stop(signal.SIGTERM) == 0
    assert sorted(name for name in os.listdir(world.state) if name.startswith("index")) == ["index.db"]
    shutil.copy(world.index, world.index + ".copy")
    assert_sound(world.index + ".copy")


def test_readers_are_never_kept_waiting_by_a_busy_daemon(world, daemon):
    paths = grow(world, 20)
    daemon()
    stop = threading.Event()

    def write():
        while not stop.is_set():
            for path in paths:
                world.name(path, "busy")
            time.sleep(0.005)

    thread = threading.Thread(target=write)
    thread.start()
    slowest = 0.0
    try:
        for _ in range(200):
            began = time.monotonic()
            assert world.rows("SELECT count(*) FROM sessions") == [(20,)]
            slowest = max(slowest, time.monotonic() - began)
    finally:
        stop.set()
        thread.join()
    assert slowest < 0.5

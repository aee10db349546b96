"""Group S of docs/faults.md: Codex's state database, which is copied and never opened in place.

The hammer against torn copies, with its negative controls, is in tests/unit/test_snapshot_hammer.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import uuid

import pytest

from tests.kit import statedb
from tests.kit.manifest import manifest
from tests.kit.oracle import equals_oracle
from tests.kit.privileges import need_strace
from tests.kit.world import id_of, until


def titles(world):
    return dict(world.try_rows("SELECT id, title FROM sessions"))


def listed(world, thread_id, title, within_s=6.0):
    until(lambda: titles(world).get(thread_id) == title, f"{thread_id} is listed as {title!r}", within_s)


def test_s1_rows_that_are_only_in_the_wal_are_listed(world, daemon):
    with contextlib.closing(statedb.connect(statedb.path_of(world))) as connection:
        early = statedb.add(connection, "in the file")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        late = statedb.add(connection, "in the wal")
        daemon()
        assert titles(world) == {early: "in the file", late: "in the wal"}


def test_s1_a_commit_to_the_wal_is_seen_by_its_event(world, daemon):
    with contextlib.closing(statedb.connect(statedb.path_of(world))) as connection:
        daemon()
        listed(world, statedb.add(connection, "committed later"), "committed later")


def test_s2_the_folder_of_a_live_database_is_left_untouched(world, daemon):
    with contextlib.closing(statedb.connect(statedb.path_of(world))) as connection:
        thread_id = statedb.add(connection, "in the wal")
        before = manifest(world.codex_home)
        process = daemon()
        listed(world, thread_id, "in the wal")
        process.stop()
        assert manifest(world.codex_home) == before


def test_s2_s13_below_the_homes_everything_is_opened_for_reading_alone(world, tmp_path):
    """Nothing of ours can write, lock or checkpoint the vendor's database, so no bug of its SQLite is ever ours."""
    need_strace()
    world.claude("one")
    world.codex("two")
    with contextlib.closing(statedb.connect(statedb.path_of(world))) as connection:
        statedb.add(connection, "three")
        trace = str(tmp_path / "trace")
        calls = (
            "trace=open,openat,openat2,creat,unlink,unlinkat,rename,renameat2,chmod,fchmodat,utimensat,truncate,mkdir"
        )
        done = world.run("--once", prefix=("strace", "-f", "-qq", "-e", calls, "-o", trace))
    assert done.returncode == 0, done.stderr
    with open(trace) as file:
        below = [line for line in file if world.claude_home in line or world.codex_home in line]
    assert any("state_5.sqlite-wal" in line for line in below)
    assert [line for line in below if "O_RDONLY" not in line or "O_CREAT" in line] == []


def test_s3_a_checkpoint_in_between_loses_nothing(world, daemon):
    with contextlib.closing(statedb.connect(statedb.path_of(world))) as connection:
        daemon()
        ids = []
        for number in range(30):
            ids.append(statedb.add(connection, f"thread {number}"))
            if number % 3 == 0:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if number % 10 == 9:
                connection.execute("VACUUM")
        until(lambda: len(titles(world)) == 30, "every thread is listed")
        assert set(titles(world)) == set(ids)


def test_s4_a_database_in_rollback_mode_with_a_hot_journal_shows_committed_rows_only(world):
    path = statedb.path_of(world)
    with contextlib.closing(statedb.connect(path, journal="delete")) as connection:
        kept = statedb.add(connection, "committed")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(200):
            statedb.add(connection, "uncommitted " + "x" * 500)
        assert os.path.exists(path + "-journal")
        world.once()
        assert titles(world) == {kept: "committed"}
        connection.execute("ROLLBACK")


def test_s5_a_database_renamed_over_by_recovery_is_read_anew(world, daemon):
    path = statedb.path_of(world)
    with contextlib.closing(statedb.connect(path)) as connection:
        statedb.add(connection, "before recovery")
    daemon()
    with contextlib.closing(statedb.connect(path + ".recovered")) as connection:
        thread_id = statedb.add(connection, "after recovery")
    os.rename(path, path + ".bak")
    os.rename(path + ".recovered", path)
    listed(world, thread_id, "after recovery")


def test_s5_a_column_added_while_we_read_is_no_trouble(world, daemon):
    with contextlib.closing(statedb.connect(statedb.path_of(world), statedb.MIDDLE)) as connection:
        daemon()
        connection.execute("ALTER TABLE threads ADD COLUMN model TEXT")
        thread_id = statedb.add(connection, "of the new build", model="gpt-9")
        listed(world, thread_id, "of the new build")
        assert world.rows("SELECT model FROM sessions") == [("gpt-9",)]


def test_s5_a_locked_database_is_read_all_the_same(world, daemon):
    with contextlib.closing(statedb.connect(statedb.path_of(world))) as connection:
        kept = statedb.add(connection, "committed")
        connection.execute("BEGIN EXCLUSIVE")
        daemon()
        listed(world, kept, "committed")
        connection.execute("ROLLBACK")


def zeroed_header(path):
    with open(path, "r+b") as file:
        file.write(bytes(100))


def garbage_in_the_middle(path):
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xde\xad\xbe\xef" * 3000)


def cut_short(path):
    os.truncate(path, os.path.getsize(path) // 2 + 123)


def emptied(path):
    os.truncate(path, 0)


def text(path):
    with open(path, "w") as file:
        file.write("this is no database\n" * 1000)


@pytest.mark.parametrize("damage", [zeroed_header, garbage_in_the_middle, cut_short, emptied, text])
def test_s6_a_damaged_database_leaves_the_rollouts_listed_and_is_reported(world, daemon, damage):
    path = statedb.path_of(world)
    rollout = world.codex("from its rollout")
    with contextlib.closing(statedb.connect(path)) as connection:
        for number in range(200):
            statedb.add(connection, f"thread {number}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    damage(path)
    daemon()
    assert titles(world)[id_of(rollout)] == "from its rollout"
    (state,) = world.health()["databases"]
    expected = "stale" if damage is emptied else "corrupt"  # SQLite takes an empty file for a sound empty database
    assert (state["path"], state["state"]) == (path, expected), state


def test_s6_a_mended_database_is_read_again(world, daemon):
    path = statedb.path_of(world)
    text(path)
    daemon()
    os.unlink(path)
    with contextlib.closing(statedb.connect(path)) as connection:
        listed(world, statedb.add(connection, "mended"), "mended")


@pytest.mark.parametrize("columns", [statedb.OLDEST, statedb.MIDDLE, statedb.NEWEST, statedb.STRANGE, "id TEXT"])
def test_s7_databases_of_every_age_are_read(world, columns):
    thread_id = str(uuid.uuid4())
    rollout = world.codex("prompt", thread_id=thread_id)
    with contextlib.closing(statedb.connect(statedb.path_of(world), columns)) as connection:
        if columns == "id TEXT":
            connection.execute("INSERT INTO threads VALUES (?)", (thread_id,))
        else:
            statedb.add(connection, "prompt", thread_id=thread_id, rollout_path=rollout)
    world.once()
    assert titles(world) == {thread_id: "prompt"}
    assert world.rows("SELECT problem FROM scan_problems") == []


def test_s7_a_database_without_the_table_says_nothing(world):
    rollout = world.codex("from its rollout")
    with contextlib.closing(sqlite3.connect(statedb.path_of(world))) as connection:
        connection.execute("CREATE TABLE sessions_of_tomorrow (id TEXT)")
    world.once()
    assert titles(world) == {id_of(rollout): "from its rollout"}


def test_s8_only_state_databases_are_taken_the_highest_number_first(world):
    for number, title in ((9, "old"), (10, "new")):
        with contextlib.closing(statedb.connect(statedb.path_of(world, number))) as connection:
            statedb.add(connection, title, thread_id=f"{number:08}-0000-4000-8000-000000000000")
    newest = statedb.path_of(world, 10)
    for decoy in (
        "state_x.sqlite",
        "state_99.sqlite.bak",
        "state_11.sqlite.recovered",
        "xstate_12.sqlite",
        "logs_1.sqlite",
    ):
        shutil.copy(statedb.path_of(world, 9), os.path.join(world.codex_home, decoy))
    with open(os.path.join(world.codex_home, ".codex-recovery.lock"), "w"):
        pass
    os.mkdir(os.path.join(world.codex_home, "state_77.sqlite"))
    world.once()
    assert world.rows("SELECT path FROM sources WHERE kind = 'database'") == [(newest,)]
    assert titles(world)["00000010-0000-4000-8000-000000000000"] == "new"


def test_s9_rows_without_files_and_files_without_rows_are_both_listed(world):
    rollouts = [world.codex(f"rollout {number}") for number in range(17)]
    with contextlib.closing(statedb.connect(statedb.path_of(world))) as connection:
        statedb.add(connection, "rollout 0", thread_id=id_of(rollouts[0]), rollout_path=rollouts[0])
        lost = statedb.add(connection, "its file is lost")
    world.once()
    assert len(titles(world)) == 18
    assert world.rows("SELECT resumable, path FROM sessions WHERE id = ?", lost) == [(0, None)]


@pytest.mark.parametrize("name", ["CODEX_SQLITE_HOME", "CODEX_HOME", "config.toml"])
def test_s10_a_database_that_was_moved_is_found(world, name):
    elsewhere = os.path.join(world.folder, "elsewhere")
    os.mkdir(elsewhere)
    with contextlib.closing(statedb.connect(os.path.join(elsewhere, "state_5.sqlite"))) as connection:
        thread_id = statedb.add(connection, "moved")
    if name == "config.toml":
        with open(os.path.join(world.codex_home, "config.toml"), "w") as file:
            file.write(f"sqlite_home = {json.dumps(elsewhere)}\n")
        world.once()
    else:
        world.once(**{name: elsewhere})
    assert titles(world) == {thread_id: "moved"}


def test_s11_a_change_to_a_large_database_reads_what_is_new(world, daemon):
    path = statedb.path_of(world)
    with contextlib.closing(statedb.connect(path)) as connection:
        connection.execute("CREATE TABLE ballast (data BLOB)")
        connection.executemany("INSERT INTO ballast VALUES (?)", [(os.urandom(1 << 20),)] * 20)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        process = daemon()
        listed(world, statedb.add(connection, "first"), "first")
        with open(f"/proc/{process.pid}/io") as file:
            before = int(file.readline().split()[1])
        listed(world, statedb.add(connection, "second"), "second")
        with open(f"/proc/{process.pid}/io") as file:
            read = int(file.readline().split()[1]) - before
    assert read < 5 << 20


def test_s12_rows_of_hostile_values_cost_only_themselves(world):
    with contextlib.closing(
        statedb.connect(statedb.path_of(world), statedb.NEWEST.replace(" NOT NULL", ""))
    ) as connection:
        good = statedb.add(connection, "good")
        for changes in (
            {"title": b"\xff\x00\xfe", "cwd": 17, "git_branch": b"\x00"},
            {"title": "x" * 10_000_000, "first_user_message": "y" * 1_000_000},
            {"title": "nul\0inside", "cwd": "/a\0b"},
            {"created_at": "yesterday", "updated_at": 1e300, "source": "[" * 100_000},
            {"source": '{"subagent":{"thread_spawn":{"parent_thread_id":"x","depth":1}}}'},
            {"thread_id": "not an id", "title": "never listed"},
            {"approval_mode": '{"granular":{}}', "sandbox_policy": "{" * 5000, "archived": "perhaps"},
        ):
            statedb.add(connection, **{"title": "hostile", **changes})
        for strange in (None, 17, b"blob"):
            connection.execute("INSERT INTO threads (id) VALUES (?)", (strange,))
    done = world.once()
    assert "Traceback" not in done.stderr
    assert titles(world)[good] == "good"
    assert "never listed" not in titles(world).values()
    assert all(len(title) <= 200 for title in titles(world).values() if title)
    assert world.rows("SELECT count(*) FROM scan_problems") == [(0,)]
    equals_oracle(world)

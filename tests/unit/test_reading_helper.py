"""The second process of a first index: it shortens the work and changes nothing of what comes out of it."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sessiond.config import Config, Homes
from sessiond.model import Fingerprint, Walk
from sessiond.provider import load_all
from sessiond.reading import helper, opened
from sessiond.scan import refresh
from tests.kit.world import PUBLIC

shared = helper.shared

FIXTURES = Path(__file__).parents[2] / "fixtures"
SHARE = helper.BATCH * helper.ASKED_MAX
"""So many files are asked for at once: of no more than these, the helper reads every one."""
MIB = 1 << 20


def of_size(size, count):
    return [(f"/{number}", Fingerprint(1, number, size, 1, 1)) for number in range(count)]


@pytest.fixture
def homes():
    """Those of all fixtures."""
    claude, codex = (tuple(map(str, sorted(FIXTURES.glob(f"{app}/*/home")))) for app in ("claude-code", "codex"))
    return Homes({"claude-code": claude, "codex": codex})


@pytest.fixture
def items(homes):
    return [item for provider in load_all(homes) for item in provider.discover(Walk())]


def read_here(homes, item):
    """What this process makes of a file."""
    for provider in load_all(homes):
        source = provider.claim(item[0])
        if source is not None:
            return opened.read(provider, source, item[1], None)
    return None


def without_time(answer):
    return None if answer is None else answer._replace(read_ms=0)


def children():
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]


def exists(pid):
    return os.path.exists(f"/proc/{pid}")


def test_every_file_is_told_of_once(homes, items):
    assert sorted(path for path, _, _ in helper.shared(items, homes)) == sorted(path for path, _ in items)


def test_the_helper_tells_what_this_process_would(homes, items):
    for first in range(0, len(items), SHARE):
        for path, fingerprint, answer in helper.shared(items[first : first + SHARE], homes):
            assert without_time(answer) == without_time(read_here(homes, (path, fingerprint))), path


def test_a_database_is_left_to_the_process_that_knows_it(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "state_5.sqlite")) as connection:
        connection.execute("CREATE TABLE threads (id TEXT)")
    homes = Homes({"codex": (str(tmp_path),)})
    ((path, fingerprint),) = (item for provider in load_all(homes) for item in provider.discover(Walk()))
    assert list(helper.shared([(path, fingerprint)], homes)) == [(path, fingerprint, None)]


def indexed(folder, homes, monkeypatch, worth_ms):
    """What an index holds once it is built, or brought up to date, with a helper for so much to read."""
    monkeypatch.setattr(helper, "WORTH_MS", worth_ms)
    monkeypatch.setattr(helper, "_cores", lambda: 2)
    refresh(str(folder), homes, Config(), wait_s=None)
    with contextlib.closing(sqlite3.connect(folder / "index.db")) as connection:
        return [
            sorted(connection.execute(f"SELECT {columns} FROM {table}"), key=repr)
            for columns, table in [
                (PUBLIC, "sessions"),
                ("path, kind, size, gap_bytes, state, problem", "sources"),
                ("id, facts", "observations"),
            ]
        ]


NEVER, ALWAYS = 1e9, -1.0


def test_an_index_is_the_same_with_a_helper(homes, tmp_path, monkeypatch):
    assert indexed(tmp_path / "a", homes, monkeypatch, ALWAYS) == indexed(tmp_path / "b", homes, monkeypatch, NEVER)


def test_after_an_upgrade_a_helper_reads_anew_what_is_known(homes, tmp_path, monkeypatch):
    before = indexed(tmp_path / "a", homes, monkeypatch, NEVER)
    for app in ("claude_code.ClaudeCode", "codex.Codex"):
        monkeypatch.setattr(f"sessiond.providers.{app}.reader_version", 1000)
    asked = []
    monkeypatch.setattr(helper, "shared", lambda items, homes: (asked.extend(items), shared(items, homes))[1])
    assert indexed(tmp_path / "a", homes, monkeypatch, ALWAYS) == before
    assert {path for path, _ in asked} == {path for path, *_ in before[1]}


def killed(pid):
    os.kill(pid, signal.SIGKILL)


def stopped(pid):
    os.kill(pid, signal.SIGSTOP)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the helper below /proc")
@pytest.mark.parametrize("fate", [killed, stopped])
@pytest.mark.parametrize("after", [0, 1, 20])
def test_what_a_helper_that_ends_did_not_tell_is_read_without_it(homes, items, monkeypatch, fate, after):
    monkeypatch.setattr(helper, "WAIT_S", 0.2)
    before = children()
    answers = helper.shared(items, homes)
    told = [next(answers) for _ in range(after)]
    if not after:
        told.append(next(answers))
    (pid,) = set(children()) - set(before)
    fate(pid)
    told += answers
    assert sorted(path for path, _, _ in told) == sorted(path for path, _ in items)
    assert not exists(pid)


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\1\0half of an answer"])
def test_an_answer_that_stops_half_way_is_not_waited_for_for_ever(sent):
    reader, writer = os.pipe()
    os.write(writer, sent)
    with open(reader, "rb", 0) as file, pytest.raises(TimeoutError):
        helper._received(file, 0.05)
    os.close(writer)


def test_a_question_that_nobody_takes_is_given_up():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with open(writer, "wb", 0) as file, pytest.raises(TimeoutError):
        helper._send(file, b"x" * MIB, 0.05)
    os.close(reader)


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/false"])
def test_where_no_helper_can_be_started_all_is_read_without_one(homes, items, monkeypatch, program):
    monkeypatch.setattr(sys, "executable", program)
    assert sorted(helper.shared(items, homes)) == sorted((*item, None) for item in items)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the helper below /proc")
def test_a_scan_that_is_given_up_ends_its_helper(homes, items):
    before = children()
    answers = helper.shared(items, homes)
    next(answers)
    (pid,) = set(children()) - set(before)
    answers.close()
    assert not exists(pid)


ORPHAN = """
import sys
from sessiond.config import Config, Homes
from sessiond.model import Fingerprint
from sessiond.reading import helper
answers = helper.shared([(f"/none/{n}", Fingerprint(1, n, 1, 1, 1)) for n in range(100)], Homes())
next(answers)
print(open(f"/proc/self/task/{__import__('os').getpid()}/children").read(), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="finds the helper below /proc")
def test_a_helper_does_not_outlive_the_process_it_helps():
    with subprocess.Popen([sys.executable, "-c", ORPHAN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        pid = int(process.stdout.readline())
        process.kill()
    deadline = time.monotonic() + 10
    while exists(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not exists(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the helper below /proc")
@pytest.mark.parametrize("at_work", [False, True])
def test_the_key_that_interrupts_is_not_for_the_helper(homes, items, at_work):
    before = children()
    answers = helper.shared(items, homes)
    told = [next(answers)]
    (pid,) = set(children()) - set(before)
    while at_work and not any(answer for _, _, answer in told):
        told.append(next(answers))
    os.kill(pid, signal.SIGINT)
    told += answers
    assert told[-1][2] is not None, "the last batch is always the helper's"


def test_modules_in_the_present_folder_are_not_run(homes, items, tmp_path, monkeypatch):
    for name in ("sessiond.py", "json.py", "pickle.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert any(answer for _, _, answer in helper.shared(items, homes))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("items", "is_worth_it"),
    [
        (of_size(0, 0), False),
        (of_size(10_000, 100), False),
        (of_size(10_000, 2000), True),
        (of_size(500 * MIB, 20), False),
        (of_size(500 * MIB, 1000), True),
    ],
)
def test_a_helper_is_for_many_files_and_only_their_beginnings_count(monkeypatch, items, is_worth_it):
    monkeypatch.setattr(helper, "_cores", lambda: 2)
    assert helper.is_worth_it(items) == is_worth_it


def test_on_one_core_there_is_none(monkeypatch):
    monkeypatch.setattr(helper, "_cores", lambda: 1)
    assert not helper.is_worth_it(of_size(10_000, 100_000))

"""With a daemon the client only reads; without one it brings the index up to date first."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sessiond import paths
from sessiond.model import Session
from sessions_cli import context

ROOT = Path(__file__).parents[2]
SAMPLE = "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58"


def session(session_id="aaaaaaaa", **facts):
    return Session("claude-code", session_id, "/h", **{"updated_ms": 1, "title": "word", **facts})


@pytest.fixture
def sample_home(home):
    """The sample homes as the user's own."""
    shutil.copytree(ROOT / "fixtures/claude-code/sample/home", home / ".claude")
    shutil.copytree(ROOT / "fixtures/codex/sample/home", home / ".codex")
    return home


# -- without a daemon --------------------------------------------------------------------------------------------------


def test_the_first_call_builds_the_index(sample_home, lone_client):
    answer = lone_client("checkout")
    assert SAMPLE in answer.ids
    assert answer.code == 0
    assert answer.err == ""


def test_a_later_call_sees_what_was_written_since(sample_home, lone_client):
    lone_client("list")
    transcript = next(sample_home.glob(f".claude/projects/*/{SAMPLE}.jsonl"))
    with transcript.open("a") as file:
        file.write(json.dumps({"type": "custom-title", "customTitle": "Renamed since", "sessionId": SAMPLE}) + "\n")
    assert lone_client("renamed", "since").ids == [SAMPLE]


def test_no_refresh_answers_from_what_is_there(sample_home, lone_client):
    lone_client.fill(last_full_scan_ms=2**53)
    assert lone_client("checkout", "--no-refresh").code == 1


def test_an_old_index_is_told_and_an_empty_answer_from_it_is_9(lone_client):
    lone_client.fill(session(), last_full_scan_ms=1)
    answer = lone_client("nothing", "--no-refresh")
    assert answer.code == 9
    assert "last brought up to date" in answer.err
    assert lone_client("word", "--no-refresh").code == 0


def test_an_unfinished_index_is_told_and_an_empty_answer_from_it_is_9(client):
    client.fill(session(), state="building 40/1200")
    answer = client("nothing")
    assert answer.code == 9
    assert "40/1200" in answer.err
    assert client("word").code == 0


@pytest.fixture
def another_builder(lone_client, monkeypatch):
    """Somebody else holds the write lock."""
    monkeypatch.setattr(context, "WAIT_S", 0.1)
    os.makedirs(lone_client.state, mode=0o700, exist_ok=True)
    with open(paths.write_lock(lone_client.state), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_while_another_one_builds_what_is_there_answers(lone_client, another_builder):
    lone_client.fill(session())
    answer = lone_client("word")
    assert answer.ids == ["aaaaaaaa"]
    assert "another process" in answer.err
    assert lone_client("nothing").code == 9


def test_while_another_one_makes_the_first_index_there_is_none(lone_client, another_builder):
    assert lone_client("word").code == 3


def test_a_broken_configuration_is_11(home, lone_client):
    (home / ".config" / "sessiond").mkdir(parents=True)
    (home / ".config" / "sessiond" / "config.toml").write_text("nonsense = 1\n")
    assert lone_client("list").code == 11
    lone_client.fill(session())
    assert lone_client("list").code == 11


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_state_folder_that_cannot_be_written_still_answers(lone_client):
    lone_client.fill(session())
    os.chmod(lone_client.state, 0o500)
    try:
        answer = lone_client("word")
    finally:
        os.chmod(lone_client.state, 0o700)
    assert answer.ids == ["aaaaaaaa"]


def test_the_first_build_shows_its_progress_on_a_terminal(monkeypatch):
    shown = []

    class Terminal:
        def isatty(self):
            return True

        def write(self, text):
            shown.append(text)

        def flush(self):
            pass

    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = context._Progress()
    progress._begun_ms -= 10_000
    progress(40, 1200)
    progress.end()
    assert "".join(shown) == "\rindexing 40/1200 \r\x1b[K"


def test_no_progress_is_shown_into_a_pipe(capsys):
    progress = context._Progress()
    progress._begun_ms -= 10_000
    progress(40, 1200)
    progress.end()
    assert capsys.readouterr().err == ""


# -- with a daemon -----------------------------------------------------------------------------------------------------


def test_with_a_daemon_nothing_is_read_but_the_index(sample_home, client):
    client.fill(session())
    assert client("checkout").code == 1


def test_a_daemon_that_has_not_scanned_for_three_periods_is_told(client, now):
    client.fill(session(), last_full_scan_ms=now - 3 * 60_000 - 1)
    answer = client("nothing")
    assert answer.code == 9
    assert "sessions doctor" in answer.err


def test_a_daemon_that_scanned_within_three_periods_is_trusted(client, now):
    client.fill(session(), last_full_scan_ms=now - 3 * 60_000)
    assert client("nothing").code == 1


def test_a_home_of_this_environment_that_the_daemon_does_not_know_is_told(client, home, monkeypatch):
    monkeypatch.setenv("CODEX_HOME", str(home / "other"))
    client.fill(session(), homes=f"codex\t{home}/.codex")
    answer = client("word")
    assert answer.code == 0
    assert f"{home}/other" in answer.err
    assert "add it to codex below [homes]" in answer.err


def test_a_home_that_the_daemon_knows_by_another_spelling_is_not_told(client, home, monkeypatch):
    (home / "real").mkdir()
    (home / "link").symlink_to("real")
    monkeypatch.setenv("CODEX_HOME", str(home / "link"))
    client.fill(session(), homes=f"codex\t{home}/real")
    assert client("word").err == ""


def test_a_daemon_without_an_index_yet_is_waited_for_in_vain(client, monkeypatch):
    monkeypatch.setattr(context, "WAIT_S", 0.1)
    answer = client("list")
    assert answer.code == 3
    assert "daemon" in answer.err


# -- streams -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("list",), ("list", "--json"), ("sql", "SELECT * FROM sessions")])
def test_a_closed_pipe_is_quiet(client, arguments):
    client.fill(*[session(f"{n:08}", title="word " * 30, updated_ms=n) for n in range(3000)], last_full_scan_ms=2**53)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-m", "sessions_cli.main", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as running:
        assert running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(timeout=20) == 0


def test_a_full_disk_is_told(client):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    client.fill(session(), last_full_scan_ms=2**53)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sessions_cli.main", "list"],
            stdout=full, stderr=subprocess.PIPE, text=True, env=env, check=False,
        )  # fmt: skip
    assert done.returncode != 0
    assert "No space left" in done.stderr


def on_terminal(*arguments, columns=80, typed="", **env):
    """What a real terminal of so many columns gets to see, and the exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **env}
        environment["COLUMNS"] = str(columns)
        os.execve(sys.executable, [sys.executable, "-m", "sessions_cli.main", *arguments], environment)
    os.write(terminal, typed.encode())
    shown = b""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode().replace("\r\n", "\n")


def test_a_terminal_shows_fifty_rows_and_says_that_there_are_more(client):
    client.fill(*[session(f"{n:08}", updated_ms=n) for n in range(60)], last_full_scan_ms=2**53)
    code, shown = on_terminal("list", TERM="dumb")
    assert code == 0
    assert len(shown.splitlines()) == 1 + 50 + 1
    assert "--limit 0" in shown.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "env", "is_colored"),
    [
        ((), {"TERM": "xterm"}, True),
        ((), {"TERM": "dumb"}, False),
        ((), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (("--color", "never"), {"TERM": "xterm"}, False),
        (("--color", "always"), {"TERM": "dumb", "NO_COLOR": "1"}, True),
    ],
)
def test_a_terminal_is_coloured_where_wanted(client, options, env, is_colored):
    client.fill(session(), last_full_scan_ms=2**53)
    _, shown = on_terminal("find", "word", *options, **env)
    assert ("\x1b[" in shown) == is_colored


def test_a_terminal_shows_ids_as_short_as_they_are_unique(client):
    client.fill(
        session("019a2f1c-7d0e-1"), session("019a2f1c-7d0f-1"), session("c5e1a7b2-9d40"), last_full_scan_ms=2**53
    )
    _, shown = on_terminal("list", TERM="dumb")
    assert sorted(line.split()[0] for line in shown.splitlines()[1:]) == ["019a2f1c-7d0e", "019a2f1c-7d0f", "c5e1a7b2"]


def test_on_a_terminal_hostile_texts_are_harmless(client):
    hostile = "\x1b]52;c;ZXZpbA==\x07\x9b31m\u202e\u200b"
    client.fill(session(title=hostile, branch=hostile, cwd="/" + hostile), last_full_scan_ms=2**53)
    _, shown = on_terminal("list", columns=300, TERM="dumb")
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert "^[]52" in shown

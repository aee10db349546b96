"""`status` and `doctor`: what is not well, and what mends it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3

import pytest

from sessiond import __version__, paths
from sessiond.errors import RefusedError
from sessiond.model import Fingerprint, Reading, Session, Source
from sessiond.service.job import State
from sessiond.store.writer import Writer
from sessions_cli import checks

ROOT = {
    "app": "codex", "home": "/h/.codex", "path": "/h/.codex/sessions", "mode": "events", "watched": 7, "present": 7,
    "why": None,
}  # fmt: skip


def health(**changed):
    """What a daemon says of itself when all is well, with some of it changed."""
    well = {
        "pid": 4711, "version": __version__, "started_ms": 1, "roots": [ROOT], "overflows": 2, "watch_restarts": 1,
        "databases": [{"path": "/h/.codex/state.sqlite", "state": "ok", "why": None}], "gap_files": 3,
        "wal_bytes": 4096,
    }  # fmt: skip
    return json.dumps({**well, **changed})


# -- status ------------------------------------------------------------------------------------------------------------


def test_status_says_all_that_the_daemon_reports(client):
    client.fill(Session("codex", "aaaaaaaa", "/h"), health=health())
    answer = client("status")
    assert answer.code == 0
    for text in ("complete, 1 session", "pid 4711", f"version {__version__}", "7 of 7", "/h/.codex/state.sqlite (ok)",
                 "2 overflows", "4.1 kB"):  # fmt: skip
        assert text in answer.out


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"roots": [{**ROOT, "mode": "polling", "why": "no more watches"}]}, "no more watches"),
        ({"roots": [{**ROOT, "mode": "unavailable", "why": "denied"}]}, "denied"),
        ({"roots": [{**ROOT, "watched": 6}]}, "6 of 7"),
        ({"databases": [{"path": "/h/s.sqlite", "state": "corrupt", "why": "malformed"}]}, "malformed"),
        ({"databases": [{"path": "/h/s.sqlite", "state": "stale", "why": "busy"}]}, "busy"),
    ],
)
def test_a_degraded_daemon_is_9(client, changed, text):
    client.fill(health=health(**changed))
    answer = client("status")
    assert answer.code == 9
    assert any(line.startswith("degraded") and text in line for line in answer.out.splitlines())


def test_a_root_that_is_waited_for_is_no_fault(client):
    client.fill(health=health(roots=[{**ROOT, "mode": "waiting", "watched": 0, "present": 0}]))
    assert client("status").code == 0


@pytest.mark.parametrize(
    "meta", [{"state": "building 3/9"}, {"last_full_scan_ms": 1}, {"unreadable": "/h/.codex\tdenied"}]
)
def test_an_index_that_may_miss_something_is_9(client, meta):
    client.fill(**{"health": health(), **meta})
    assert client("status").code == 9


def test_no_index_is_3(lone_client):
    assert lone_client("status").code == 3


def test_without_a_daemon_what_one_said_before_it_died_counts_no_more(lone_client):
    lone_client.fill(health=health(roots=[{**ROOT, "mode": "polling", "why": "x"}]))
    answer = lone_client("status")
    assert answer.code == 0
    assert "none; each command" in answer.out


def test_files_with_an_unread_middle_are_counted_with_and_without_a_daemon(lone_client):
    lone_client.fill()
    source = Source("claude-code", "/h", "/h/projects/p/a.jsonl", "transcript")
    with contextlib.closing(Writer(lone_client.state)) as writer, writer.transaction():
        reading = Reading({}, b"", gap_bytes=7)
        writer.replace_source(source, Fingerprint(1, 2, 3, 4, 5), reading, 1, again=False, known=None)
    assert "the middle of 1 file is not looked through yet; sessiond --once --gaps does" in lone_client("status").out
    assert json.loads(lone_client("status", "--json").out)["gap_files"] == 1


def test_status_as_json(client):
    client.fill(health=health(gap_files=5))
    found = json.loads(client("status", "--json").out)
    assert (found["daemon"], found["details"]["gap_files"], found["faults"]) == (True, 5, [])


def test_status_refreshes_nothing(lone_client, home):
    lone_client.fill(last_full_scan_ms=1)
    (home / ".claude" / "projects").mkdir(parents=True)
    lone_client("status")
    assert json.loads(lone_client("status", "--json").out)["last_full_scan_ms"] == 1


# -- doctor ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def well(client, monkeypatch):
    """An index and a daemon that are well, and a service that runs."""
    client.fill(Session("codex", "aaaaaaaa", "/h"), health=health())
    monkeypatch.setattr(checks, "start_up", lambda _env: iter(()))
    monkeypatch.setattr(checks, "shadowed", lambda _env: iter(()))
    monkeypatch.setattr(checks, "CHECKS", tuple(c for c in checks.CHECKS if c.__name__ not in ("start_up", "shadowed")))
    manager = type("Manager", (), {"state": lambda _self: State(installed=True, running=True, detail="active")})
    monkeypatch.setattr("sessiond.service.manager", lambda _env: manager())
    return client


def wrong(check, env=None):
    """(text, mend) of what a check finds wrong."""
    return [(f.text, f.mend) for f in check(os.environ if env is None else env) if f.level == checks.WRONG]


def noted(check):
    return [(f.text, f.mend) for f in check(os.environ) if f.level == checks.NOTE]


def test_nothing_wrong_is_0(well):
    answer = well("doctor")
    assert answer.code == 0, answer.out
    assert "wrong" not in answer.out


def test_something_wrong_is_9_with_the_command_that_mends_it(well):
    os.chmod(well.state, 0o755)
    answer = well("doctor")
    assert answer.code == 9
    assert f"chmod 700 {well.state}" in answer.out


def test_findings_as_json(well):
    os.chmod(well.state, 0o755)
    found = json.loads(well("doctor", "--json").out)
    assert [f["mend"] for f in found if f["level"] == "wrong"] == [f"chmod 700 {well.state}"]


def test_an_index_file_that_others_can_read(well):
    os.chmod(paths.index_file(well.state), 0o644)
    ((_, mend),) = wrong(checks.state_folder)
    assert mend == f"chmod 600 {paths.index_file(well.state)}"


def test_no_state_folder(home):
    assert wrong(checks.state_folder)[0][1] == "sessiond --once"


def test_no_index(home):
    assert wrong(checks.index)[0][1] == "sessiond --once"


def test_a_damaged_index(lone_client):
    lone_client.fill(*[Session("codex", f"{n:08}", "/h", title="x" * 200) for n in range(200)])
    with open(paths.index_file(lone_client.state), "r+b") as file:
        file.seek(8 * 4096)
        file.write(b"\xff" * 4096 * 8)
    findings = checks.run_all(os.environ)
    assert any(f.level == checks.WRONG and "damaged" in f.text for f in findings)


def test_an_index_of_another_schema_is_a_finding_not_a_crash(lone_client):
    lone_client.fill()
    connection = sqlite3.connect(paths.index_file(lone_client.state))
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert any("upgrade" in f.text for f in checks.run_all(os.environ))


def test_a_degraded_daemon(client):
    client.fill(health=health(roots=[{**ROOT, "mode": "polling", "why": "no more watches"}]))
    assert ("/h/.codex/sessions is polling: no more watches", "sessions service restart") in wrong(checks.index)


def test_files_that_could_not_be_read_are_named(lone_client):
    lone_client.fill()
    writer = Writer(lone_client.state)
    source = Source("codex", "/h", "/h/broken.jsonl", "rollout")
    with writer.transaction():
        reading = Reading({}, problem="Permission denied")
        writer.replace_source(source, Fingerprint(1, 2, 3, 4, 5), reading, 1, again=False, known=None)
    writer.close()
    assert ("/h/broken.jsonl: Permission denied", "sessions why /h/broken.jsonl") in noted(checks.index)


def test_a_held_write_lock(lone_client):
    lone_client.fill()
    with open(paths.write_lock(lone_client.state), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert noted(checks.lock_files)


def test_no_daemon(lone_client):
    lone_client.fill()
    assert noted(checks.daemon) == [("no daemon: each command brings the index up to date itself", "")]


def test_a_daemon_of_another_version(client):
    client.fill(health=health(version="0.0.1"))
    assert wrong(checks.daemon)[0][1] == "sessions service restart"


def test_a_home_that_the_daemon_does_not_know(client, home, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "elsewhere"))
    client.fill(health=health())
    ((text, mend),) = wrong(checks.daemon)
    assert f"{home}/elsewhere" in text
    assert "add it to claude-code below [homes]" in mend


@pytest.mark.parametrize(
    ("state", "level", "mend"),
    [
        (State(installed=False, running=False, detail="not found"), checks.NOTE, "sessions service install"),
        (State(installed=True, running=False, detail="failed"), checks.WRONG, "sessions service start"),
        (State(installed=True, running=True, detail="active"), checks.GOOD, ""),
    ],
)
def test_the_service(home, monkeypatch, state, level, mend):
    monkeypatch.setattr("sessiond.service.manager", lambda _env: type("M", (), {"state": lambda _self: state})())
    (finding,) = checks.service(os.environ)
    assert (finding.level, finding.mend) == (level, mend)


def test_no_service_manager(home, monkeypatch):
    def refuse(_self):
        raise RefusedError("no systemd here\nmore")

    monkeypatch.setattr("sessiond.service.manager", lambda _env: type("M", (), {"state": refuse})())
    assert noted(checks.service) == [("no background service: no systemd here", "")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_a_home_that_cannot_be_read(home):
    (home / ".codex").mkdir(mode=0o000)
    assert wrong(checks.homes)[0][1] == f"chmod u+rx {home}/.codex"


def test_no_home_at_all(home):
    assert noted(checks.homes)


def test_too_few_watches(client):
    client.fill(health=health(roots=[{**ROOT, "watched": 10**9, "present": 10**9}]))
    if not os.path.exists("/proc/sys/fs/inotify/max_user_watches"):
        pytest.skip("no inotify here")
    assert "sysctl fs.inotify.max_user_watches" in wrong(checks.watch_limits)[0][1]


def test_another_program_named_sessions(tmp_path, monkeypatch):
    other = tmp_path / "sessions"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert wrong(checks.shadowed) == [
        (f"`sessions` on PATH is another program: {other}", "call it as: sessiond-client")
    ]


def test_sessions_not_on_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert noted(checks.shadowed)[0][1].startswith("export PATH=")


@pytest.mark.parametrize(("told", "there", "said"), [(True, False, True), (True, True, False), (False, False, False)])
def test_no_compiled_files(tmp_path, monkeypatch, told, there, said):
    if there:
        (tmp_path / "__pycache__").mkdir()
    monkeypatch.setattr(checks, "__file__", str(tmp_path / "checks.py"))
    monkeypatch.setattr("sys.dont_write_bytecode", told)
    assert bool(noted(checks.compiled)) == said


def test_foreign_start_up_files(tmp_path, monkeypatch):
    (tmp_path / "slow.pth").write_text("import time; time.sleep(1)\n")
    (tmp_path / "path-only.pth").write_text("/somewhere\n")
    monkeypatch.setattr("site.getsitepackages", lambda: [str(tmp_path)])
    monkeypatch.setattr(checks, "_start_ms", lambda *flags: 10.0 if flags else 110.0)
    ((text, mend),) = noted(checks.start_up)
    assert "100 ms: slow.pth" in text
    assert "pipx" in mend


def test_an_sqlite_without_what_is_needed(monkeypatch):
    monkeypatch.setattr("sessiond.store.ability.what_is_missing", lambda: "no such module: fts5")
    assert "fts5" in wrong(checks.sqlite)[0][0]


def test_a_broken_configuration_is_a_finding(home):
    (home / ".config" / "sessiond").mkdir(parents=True)
    (home / ".config" / "sessiond" / "config.toml").write_text("nonsense = 1\n")
    findings = checks.run_all(os.environ)
    assert any(f.level == checks.WRONG and "nonsense" in f.text for f in findings)

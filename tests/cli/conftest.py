"""The client on an index of known rows, in this process or in one of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from typing import NamedTuple

import pytest

from sessiond import paths
from sessiond.model import Session
from sessiond.store.writer import Writer
from sessions_cli import main

NOW_MS = 1_796_000_000_000
"""2026-11-30T00:53:20Z: what the clock shows in these tests."""
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def session(session_id="c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58", app="claude-code", **facts):
    facts.setdefault("updated_ms", NOW_MS - HOUR_MS)
    return Session(app, session_id, "/home/alex/.claude", **facts)


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def ids(self):
        """The second column of the lines for a pipe."""
        return [line.split("\t")[1] for line in self.out.splitlines()]


class Client:
    """An index of rows, and the client asked about it as if a daemon kept it fresh."""

    def __init__(self, env, capfdbinary):
        self.state = paths.state_dir(env)
        self._capture = capfdbinary
        self._lock = None

    def fill(self, *sessions, **meta):
        writer = Writer(self.state)
        known = {
            "state": "complete",
            "last_full_scan_ms": NOW_MS,
            "homes": "",
            "rescan_s": 60,
            "retention_days": "claude-code\t30",
        }
        with contextlib.closing(writer), writer.transaction():
            for one in sessions:
                writer.put_session(one)
            writer.set_meta(**{**known, **meta})
        return self

    def pretend_daemon(self):
        os.makedirs(self.state, mode=0o700, exist_ok=True)
        self._lock = open(paths.daemon_lock(self.state), "w")  # noqa: SIM115 - held until the test ends
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self):
        if self._lock is not None:
            self._lock.close()

    def __call__(self, *arguments):
        """In this process, into a pipe."""
        self._capture.readouterr()
        code = main.run(arguments)
        sys.stdout.flush()
        captured = self._capture.readouterr()
        return Answer(code, captured.out.decode(), captured.err.decode())


@pytest.fixture
def now(monkeypatch):
    """Stop the clock at NOW_MS."""
    monkeypatch.setattr("sessions_cli.when.now_ms", lambda: NOW_MS)
    return NOW_MS


@pytest.fixture
def client(home, now, capfdbinary):
    made = Client(os.environ, capfdbinary)
    made.pretend_daemon()
    yield made
    made.close()


@pytest.fixture
def lone_client(home, capfdbinary):
    """The same without a daemon, by the real clock."""
    return Client(os.environ, capfdbinary)


def run_process(*arguments, **options):
    """`sessions` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "sessions_cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **options},
    )


@pytest.fixture
def process():
    return run_process


def wait_until(holds, what, bound_s=10.0):
    """Poll to a bound; says what was waited for."""
    deadline = time.monotonic() + bound_s
    while not holds():
        assert time.monotonic() < deadline, f"waited {bound_s} s for {what}"
        time.sleep(0.01)

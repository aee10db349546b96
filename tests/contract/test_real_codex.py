"""The real Codex over the fixtures' rollouts: its list against ours, while it runs and afterwards. Opt-in:

    npm install --prefix DIR @openai/codex
    SESSIOND_TEST_CODEX=DIR/node_modules/.bin/codex pytest tests/contract/test_real_codex.py

It needs no login and no network: nothing is asked of a model.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from sessiond.model import Session
from tests.kit.codex_home import CodexHome, uid

PROGRAM = os.environ.get("SESSIOND_TEST_CODEX")
FIXTURES = Path(__file__).parents[2] / "fixtures" / "codex"
CASES = ("sample", "names", "ide-request", "goal-first", "later-headers", "archived", "not-interactive",
         "paginated-history", "misfiled")  # fmt: skip
"""Not among them, because there we differ on purpose: helper threads that only `thread_source` tells, prompts of a
kind that is no prompt, folders changed inside a thread."""
NAMED_IN_ITS_ROLLOUT = uid(5)
"""Of `names`: builds of one month wrote names there, today's do not look."""
ANSWER_S = 30
OWN_PROVIDER = """
model = "none"
model_provider = "none"
[model_providers.none]
name = "none"
base_url = "http://127.0.0.1:9/v1"
wire_api = "responses"
"""
KINDS = ["cli", "vscode", "exec", "appServer", "unknown"]

pytestmark = pytest.mark.skipif(not PROGRAM, reason="SESSIOND_TEST_CODEX does not name a codex program")


class Server:
    """`codex app-server` over one home, by JSON lines."""

    def __init__(self, home):
        environment = {**os.environ, "CODEX_HOME": str(home), "HOME": str(home.parent)}
        self._process = subprocess.Popen(
            [PROGRAM, "app-server"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True,
        )  # fmt: skip
        self._answers = queue.Queue()
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.call("initialize", clientInfo={"name": "test", "title": "test", "version": "0"})
        self._send({"method": "initialized"})

    def _read(self):
        for line in self._process.stdout:
            self._answers.put(json.loads(line))

    def _send(self, message):
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def call(self, method, **params):
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        deadline = time.monotonic() + ANSWER_S
        while True:
            answer = self._answers.get(timeout=max(0.01, deadline - time.monotonic()))
            if answer.get("id") == self._number:
                assert "result" in answer, answer
                return answer["result"]

    def threads(self, *, archived=False):
        """Every listed thread of every provider and kind."""
        return self.call("thread/list", limit=200, modelProviders=[], sourceKinds=KINDS, archived=archived)["data"]

    def close(self):
        self._process.stdin.close()
        self._process.terminate()
        self._process.wait(timeout=ANSWER_S)
        self._reader.join(timeout=ANSWER_S)
        self._process.stdout.close()


@pytest.fixture
def codex(tmp_path):
    return CodexHome(tmp_path / "codex")


@contextlib.contextmanager
def running(codex, case):
    shutil.copytree(FIXTURES / case / "home", codex.path, dirs_exist_ok=True)
    (codex.path / "config.toml").write_text(OWN_PROVIDER)
    server = Server(codex.path)
    try:
        server.threads()
        yield server
    finally:
        server.close()


def told(thread, *, archived):
    return (thread["name"] or thread["preview"], thread["cwd"], (thread.get("gitInfo") or {}).get("branch"), archived)


def ours(codex):
    found = {}
    for thread_id, session in codex.sessions().items():
        if isinstance(session, Session) and session.title:
            found[thread_id] = (session.title, session.cwd, session.branch, session.archived)
    return found


def theirs(server):
    return {
        thread["id"]: told(thread, archived=archived)
        for archived in (False, True)
        for thread in server.threads(archived=archived)
    }


@pytest.mark.parametrize("case", CASES)
def test_every_thread_that_codex_lists_is_listed_by_us_with_the_same_name_folder_and_branch(codex, case):
    with running(codex, case) as server:
        expected = theirs(server)
        expected.pop(NAMED_IN_ITS_ROLLOUT, None)
        assert (codex.path / "state_5.sqlite-wal").stat().st_size > 0
        found = ours(codex)
        assert expected
        assert {thread_id: found.get(thread_id) for thread_id in expected} == one_line(expected)
    assert {thread_id: ours(codex).get(thread_id) for thread_id in expected} == one_line(expected)


def one_line(threads):
    return {i: (" ".join(name.split()), *rest) for i, (name, *rest) in threads.items()}


def test_a_name_that_codex_sets_is_seen_while_it_runs(codex):
    with running(codex, "sample") as server:
        thread_id = server.threads()[0]["id"]
        server.call("thread/name/set", threadId=thread_id, name="Named by the program")
        session = codex.session(thread_id)
        assert (session.title, session.title_from) == ("Named by the program", "custom")


def test_a_thread_that_codex_archives_is_archived_while_it_runs(codex):
    with running(codex, "sample") as server:
        thread_id = server.threads()[0]["id"]
        server.call("thread/archive", threadId=thread_id)
        session = codex.session(thread_id)
        assert (session.archived, session.resumable) == (True, False)
        server.call("thread/unarchive", threadId=thread_id)
        assert not codex.session(thread_id).archived


def test_reading_beside_the_running_program_touches_nothing(codex):
    with running(codex, "sample"):
        databases = [p for p in codex.path.iterdir() if p.name.startswith("state_") and not p.name.endswith("-shm")]
        before = {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in databases}
        names = sorted(p.name for p in codex.path.iterdir())
        codex.sessions()
        assert {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in databases} == before
        assert sorted(p.name for p in codex.path.iterdir()) == names

"""`sessions log ID`: the conversation of one session."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.cli.conftest import NOW_MS, session
from tests.kit.codex_home import answer, lines, meta, turn, uid, user

A = uid(1)


@pytest.fixture
def told(client, tmp_path):
    """Give the session A a rollout of these records."""

    def tell(*records, **facts):
        path = tmp_path / f"rollout-2026-09-01T12-00-00-{A}.jsonl"
        path.write_bytes(lines([meta(A), turn(), *records]))
        client.fill(session(A, "codex", **{"path": str(path), **facts}))
        return client

    return tell


def test_the_conversation_is_printed_in_order(told):
    client = told(user("Fix the build\nand the tests"), answer("Done."))
    assert client("log", A).out == (
        "user  2026-09-01T10:00:00.000Z\nFix the build\nand the tests\n\nassistant  2026-09-01T10:09:00.000Z\nDone.\n\n"
    )


def test_the_last_messages_alone_are_printed(told):
    client = told(user("One"), answer("Two"), user("Three"), answer("Four"))
    lines_out = client("log", A, "--last", "2").out.splitlines()
    assert [line for line in lines_out if line in ("One", "Two", "Three", "Four")] == ["Three", "Four"]


def test_json_has_every_entry_one_a_line(told):
    out = told(user("Fix"), answer("Done"))("log", A, "--json").out
    entries = [json.loads(line) for line in out.splitlines()]
    assert [entry["kind"] for entry in entries] == ["session_meta", "turn_context", "event_msg", "event_msg"]
    assert entries[2] == {
        "timestamp": "2026-09-01T10:00:00.000Z",
        "kind": "event_msg",
        "payload": {"type": "user_message", "message": "Fix"},
    }


def test_json_knows_the_last_entries_too(told):
    out = told(user("Fix"), answer("Done"))("log", A, "--json", "--last", "1").out
    assert [json.loads(line)["payload"]["type"] for line in out.splitlines()] == ["agent_message"]


HOSTILE = "\x1b]0;owned\x07 \x9b31m \u202egnp.exe \u200b\x7f\r\b"


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_nothing_unprintable_gets_out_raw(told, options):
    out = told(user(HOSTILE), answer(HOSTILE))("log", A, *options).out
    assert all(c.isprintable() or c == "\n" for c in out)
    if options:
        assert json.loads(out.splitlines()[2])["payload"]["message"] == HOSTILE


def test_a_log_without_a_message_answers_with_1(told):
    answered = told()("log", A)
    assert (answered.code, answered.out) == (1, "")


def test_an_unknown_id_is_5(told):
    assert told()("log", "019bffff").code == 5


def test_a_session_without_a_file_is_refused_in_words(told):
    answered = told(path=None)("log", A)
    assert answered.code == 10
    assert "not on disk" in answered.err


def test_a_vanished_file_is_refused_in_words(told, tmp_path):
    client = told()
    next(tmp_path.glob("rollout-*")).unlink()
    answered = client("log", A)
    assert answered.code == 10
    assert "No such file" in answered.err


def test_a_gone_session_says_so(told):
    answered = told(gone_ms=NOW_MS)("log", A)
    assert answered.code == 10
    assert "is gone" in answered.err


def test_a_claude_code_session_is_read_as_such(client, tmp_path):
    path = tmp_path / "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58.jsonl"
    path.write_bytes(lines([{"type": "user", "timestamp": "t", "message": {"role": "user", "content": "Hello"}}]))
    client.fill(session(path=str(path)))
    assert client("log", "@1").out == "user  t\nHello\n\n"


def test_a_closed_pipe_is_no_error(told):
    told(*[user(f"message {number} " + "x" * 2000) for number in range(500)])
    first = [sys.executable, "-m", "sessions_cli.main", "log", A]
    with subprocess.Popen(
        first,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    ) as process:
        assert process.stdout.read(4) == b"user"
        process.stdout.close()
        assert process.wait(timeout=60) == 0
        assert b"Traceback" not in process.stderr.read()

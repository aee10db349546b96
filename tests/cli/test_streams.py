"""Standard streams that are closed, full or shut early by the other side."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def shell(text):
    """(exit code, stdout, stderr) of a line for the shell in which `$SESSIONS` is the client."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    env.pop("PYTHONUNBUFFERED", None)
    env["SESSIONS"] = f"{sys.executable} -m sessions_cli.main"
    done = subprocess.run(
        ["bash", "-c", text], env=env, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout, done.stderr


def add_transcript(home):
    folder = home / ".claude" / "projects" / "-nowhere-work"
    folder.mkdir(parents=True)
    line = (
        '{"type":"user","sessionId":"%s","cwd":"/nowhere/work","timestamp":"2026-11-30T10:00:00.000Z","uuid":"a",'
        '"message":{"role":"user","content":"Mend it"}}\n'
    )
    name = "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58"
    Path(folder, f"{name}.jsonl").write_text(line % name, encoding="utf-8")


@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-"])
def test_the_first_index_is_built_without_a_stderr(home, closed):
    add_transcript(home)
    code, out, _ = shell(f"$SESSIONS list {closed}")
    assert (code, out.count("Mend it")) == (0, 1)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has /dev/full")
@pytest.mark.parametrize(("arguments", "code"), [("list", 0), ("show nothing", 5), ("find --bogus", 2)])
def test_talk_that_cannot_be_written_changes_no_exit_code(home, arguments, code):
    add_transcript(home)
    assert shell(f"$SESSIONS {arguments} 2>/dev/full >/dev/null")[0] == code


@pytest.mark.parametrize(
    "arguments", ["--help", "find --help", "--version", "completion bash", "list", "sql 'SELECT 1'"]
)
def test_a_reader_that_has_left_is_no_error(home, arguments):
    add_transcript(home)
    code, _, err = shell(f"(trap '' PIPE; $SESSIONS {arguments}; echo $? >$HOME/code) | true; exit $(cat $HOME/code)")
    assert (code, err) == (0, "")


def test_a_reader_that_has_left_hides_no_exit_code(home):
    add_transcript(home)
    code, _, _ = shell("($SESSIONS resume c5e1 --json; echo $? >$HOME/code) | true; exit $(cat $HOME/code)")
    assert code == 7


@pytest.mark.parametrize(
    ("arguments", "what", "command"),
    [("find --bogus", "--bogus", "find"), ("show", "ID", "show"), ("find --limit x", "0 means all", "find"),
     ("completion", "zsh", "completion")],
)  # fmt: skip
def test_a_wrong_command_line_is_told_in_one_line_that_says_where_to_read_on(home, arguments, what, command):
    code, out, err = shell(f"$SESSIONS {arguments}")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("sessions: ")
    assert what in err
    assert err.endswith(f"; see: sessions {command} --help\n")


def test_a_service_without_a_verb_shows_its_verbs(home):
    code, _, err = shell("$SESSIONS service")
    assert code == 2
    assert "install" in err

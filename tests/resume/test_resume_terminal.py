"""The question before resuming on another branch, asked at a real terminal."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time

import pytest

CODEX_ID = "019a2f1c-7d0e-7b31-9c4e-5a1f0e2d8b63"
PATIENCE_S = 30.0
LOG_IN = "import os, sys; os.login_tty(int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"
"""An interrupt needs a controlling terminal."""


class Terminal:
    """A command on a pseudo-terminal."""

    def __init__(self, argv, env, cwd) -> None:
        self.screen = ""
        self._master, slave = pty.openpty()
        argv = [sys.executable, "-c", LOG_IN, str(slave), *argv]
        self._process = subprocess.Popen(argv, env=env, cwd=cwd, pass_fds=(slave,))
        os.close(slave)

    def read_until(self, text):
        """Read until the text is on the screen; fail when it does not appear in time."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.screen:
            ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
            data = self._read() if ready else b""
            assert data, f"{text!r} did not appear; the screen is {self.screen!r}"
            self.screen += data.decode(errors="replace")

    def type(self, keys):
        os.write(self._master, keys)

    def end(self, again=b""):
        """The exit code. `again` is typed once a second: a key that comes just before the program reads can be lost."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self._master], [], [], 1.0)
            if not ready and again:
                self.type(again)
            data = self._read() if ready else b" "
            if not data:
                break
            self.screen += data.decode(errors="replace")
        code = self._process.wait(max(1.0, deadline - time.monotonic()))
        os.close(self._master)
        return code

    def _read(self):
        try:
            return os.read(self._master, 65_536)
        except OSError:
            return b""


@pytest.fixture
def asked(stage):
    """The command at its question, for a thread that began on another branch."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(stage.folder)], check=True, capture_output=True)
    stage.add("codex", branch="test/checkout-e2e", home=str(stage.home / ".codex"))
    terminal = Terminal([*stage.argv, "resume", "--no-refresh", CODEX_ID], stage.env, stage.home)
    terminal.read_until("[y/N]")
    return terminal


def test_the_question_names_both_branches(asked):
    asked.type(b"n\n")
    asked.end()
    assert "test/checkout-e2e" in asked.screen
    assert "on main" in asked.screen


def test_yes_resumes(asked, stage):
    asked.type(b"y\n")
    assert asked.end() == 0
    assert stage.started["argv"][-1] == CODEX_ID


@pytest.mark.parametrize("keys", [b"n\n", b"\n", b"\x04", b"\x03"])
def test_no_or_nothing_or_the_end_or_an_interrupt_does_not_resume(asked, stage, keys):
    asked.type(keys)
    assert asked.end(again=keys) == 10
    assert stage.started is None


def test_the_program_gets_the_terminal(stage):
    stage.add("codex")
    (stage.bin / "codex").write_text("#!/bin/sh\ntest -t 0 && test -t 1 && test -t 2 && echo has a terminal\n")
    terminal = Terminal([*stage.argv, "resume", "--no-refresh", CODEX_ID], stage.env, stage.home)
    assert terminal.end() == 0
    assert "has a terminal" in terminal.screen


def test_at_1_says_first_which_session_is_meant(stage):
    stage.add("codex", title="Checkout end to end")
    terminal = Terminal([*stage.argv, "resume", "--no-refresh", "@1"], stage.env, stage.home)
    assert terminal.end() == 0
    assert terminal.screen.index("Checkout end to end") < terminal.screen.index("stand-in runs")


def test_a_delete_is_asked_for_and_declined_by_default(stage):
    stage.add("codex", title="Checkout end to end", home=str(stage.home / ".codex"))
    terminal = Terminal([*stage.argv, "delete", "--no-refresh", CODEX_ID], stage.env, stage.home)
    terminal.read_until("[y/N]")
    terminal.type(b"\n")
    assert terminal.end() == 10
    assert "Checkout end to end" in terminal.screen
    assert stage.started is None


@pytest.mark.skipif(shutil.which("fzf") is not None, reason="with fzf there is no numbered list")
def test_without_an_id_one_is_chosen_and_then_resumed_with_the_given_options(stage):
    stage.add("codex", title="Checkout end to end", approval="never")
    words = ["resume", "--no-refresh", "--allow-recorded-approvals"]
    terminal = Terminal([*stage.argv, *words], stage.env, stage.home)
    terminal.read_until("(1-1")
    terminal.type(b"1\n")
    assert terminal.end() == 0
    assert stage.started["argv"][1:3] == ["-a", "never"]

"""`pick` and completion, in real pseudo-terminals and shells."""

from __future__ import annotations

import os
import pty
import select
import shutil
import stat
import subprocess
import sys
import time

import pytest

from sessiond.model import Session
from sessions_cli.options import COMMANDS, FIND

A = "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58"
B = "019a2f1c-7d0e-7b31-9c4e-5a1f0e2d8b63"


@pytest.fixture
def stage(client, tmp_path, monkeypatch):
    """Two sessions in a folder that exists, a `claude` that only says how it was called, and no fzf on PATH."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("cat", "git", "sh", "tail"):
        (tools / name).symlink_to(shutil.which(name))
    write_program(tools / "claude", 'if [ "$1" = --help ]; then exit 0; fi\necho "STARTED $@"')
    monkeypatch.setenv("PATH", str(tools))
    folder = tmp_path / "code"
    folder.mkdir()
    home = str(tmp_path / ".claude")
    file = tmp_path / "a.jsonl"
    file.touch()
    client.fill(
        Session("claude-code", A, home, path=str(file), title="Fix the checkout", cwd=str(folder), updated_ms=1),
        Session("claude-code", B, home, path=str(file), title="Newest", cwd=str(folder), updated_ms=2),
        last_full_scan_ms=2**53,
    )
    return tools


def write_program(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def on_terminal(*arguments, answers=(), bound_s=20.0):
    """What a terminal shows; each (text, answer) types the answer once the text has been shown."""
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "COLUMNS": "120"}
        os.execve(sys.executable, [sys.executable, "-m", "sessions_cli.main", *arguments], environment)
    left = list(answers)
    shown, answered = "", 0
    deadline = time.monotonic() + bound_s
    while True:
        assert time.monotonic() < deadline, f"waited {bound_s} s; so far: {shown}"
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data.decode()
        if left and left[0][0] in shown[answered:]:
            answered = len(shown)
            os.write(terminal, left.pop(0)[1].encode())
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.replace("\r\n", "\n")


def test_without_fzf_a_number_chooses(stage):
    _, shown = on_terminal("pick", answers=[("Continue which one?", "2\n")])
    assert A in shown.partition("STARTED")[2]


def test_words_narrow_the_choice(stage):
    _, shown = on_terminal("pick", "checkout", answers=[("Continue which one?", "1\n")])
    assert A in shown.partition("STARTED")[2]


def test_a_wrong_number_is_asked_again_and_enter_chooses_none(stage):
    code, shown = on_terminal("pick", answers=[("for none) ", "7\n"), ("for none) ", "\n")])
    assert "STARTED" not in shown
    assert code == 1


def test_resume_without_an_id_lets_choose(stage):
    _, shown = on_terminal("resume", answers=[("Continue which one?", "1\n")])
    assert B in shown.partition("STARTED")[2]


def test_with_fzf_its_choice_is_continued(stage, tmp_path):
    write_program(
        stage / "fzf", f'cat > {tmp_path}/offered; printf "%s\\n" "$@" > {tmp_path}/asked; tail -n 1 {tmp_path}/offered'
    )
    _, shown = on_terminal("pick")
    assert A in shown.partition("STARTED")[2]
    assert "--preview=" in (tmp_path / "asked").read_text()
    assert [line.split("\t")[1] for line in (tmp_path / "offered").read_text().splitlines()] == [B, A]


def test_the_preview_of_fzf_shows_the_session(stage, tmp_path):
    write_program(
        stage / "fzf",
        f'for a in "$@"; do case "$a" in --preview=*) echo "${{a#--preview=}}" > {tmp_path}/preview;; esac; done',
    )
    on_terminal("pick")
    command = (tmp_path / "preview").read_text().replace("{2}", A)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment, check=False)
    assert "Fix the checkout" in done.stdout


def test_the_preview_runs_nothing_of_the_present_folder(stage, tmp_path):
    write_program(
        stage / "fzf",
        f'for a in "$@"; do case "$a" in --preview=*) echo "${{a#--preview=}}" > {tmp_path}/preview;; esac; done',
    )
    on_terminal("pick")
    hostile = tmp_path / "repository"
    (hostile / "sessions_cli").mkdir(parents=True)
    for name in ("json.py", "click.py", "sessions_cli/__init__.py", "sessions_cli/main.py"):
        (hostile / name).write_text("open('ran', 'w')\n")
    subprocess.run(
        ["sh", "-c", (tmp_path / "preview").read_text().replace("{2}", A)],
        cwd=hostile, capture_output=True, check=False,
    )  # fmt: skip
    assert not (hostile / "ran").exists()


def test_the_folders_in_fzf_stand_below_each_other(stage, tmp_path):
    write_program(stage / "fzf", f"cat > {tmp_path}/offered")
    on_terminal("pick")
    offered = (tmp_path / "offered").read_text().splitlines()
    assert len({len(line.split("\t")[3]) for line in offered}) == 1


def test_leaving_fzf_is_1_and_starts_nothing(stage):
    write_program(stage / "fzf", "exit 130")
    code, shown = on_terminal("pick")
    assert code == 1
    assert "STARTED" not in shown


def test_without_a_terminal_it_is_refused(stage, process):
    assert process("pick").returncode == 10


def test_nothing_to_choose_from_is_1(stage):
    code, shown = on_terminal("pick", "nothing-like-it")
    assert code == 1
    assert "nothing found" in shown


# -- completion --------------------------------------------------------------------------------------------------------


def complete(client, *words):
    """What is offered for the last word."""
    env = {"_SESSIONS_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **env}
    code = "from sessions_cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands(client):
    assert complete(client, "sessions", "") == list(COMMANDS)


def test_options(client):
    offered = complete(client, "sessions", "find", "--")
    assert {f"--{option.name}" for option in FIND} <= set(offered)


def test_apps_by_their_names_and_aliases(client):
    assert complete(client, "sessions", "find", "--app", "cl") == ["claude-code", "claude"]


def test_branches_the_last_used_first(client):
    client.fill(
        Session("codex", "aaaaaaaa", "/h", branch="fix/old", updated_ms=1),
        Session("codex", "bbbbbbbb", "/h", branch="fix/new", updated_ms=2),
        Session("codex", "cccccccc", "/h", branch="main", updated_ms=3),
        Session("codex", "dddddddd", "/h", branch="fix/\x1b[31m", updated_ms=4),
    )
    assert complete(client, "sessions", "list", "--branch", "fix") == ["fix/new", "fix/old"]


def test_ids(client):
    client.fill(Session("codex", A, "/h", title="x"), Session("codex", B, "/h"))
    assert complete(client, "sessions", "show", "c5") == [A]


def test_without_an_index_nothing_is_offered_and_nothing_said(lone_client):
    assert complete(lone_client, "sessions", "show", "c5") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_accepted_by_its_shell(client, shell):
    script = client("completion", shell).out
    assert "_SESSIONS_COMPLETE" in script
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    subprocess.run([shell, "-n"], input=script, text=True, check=True, capture_output=True)


def test_an_unknown_shell_is_a_usage_error(client):
    assert client("completion", "tcsh").code == 2


def test_bash_completes_with_the_script(client, tmp_path):
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    tool = tmp_path / "sessions"
    write_program(tool, f'exec {sys.executable} -c "from sessions_cli.main import main; main()" "$@"')
    code = (
        client("completion", "bash").out
        + '\nCOMP_WORDS=(sessions sta); COMP_CWORD=1\n_sessions_completion sessions sta ""\necho "${COMPREPLY[@]}"\n'
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    environment["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(["bash"], input=code, capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == ["status"]


def test_the_script_for_zsh_works_where_completion_is_not_switched_on_yet(client):
    if shutil.which("zsh") is None:
        pytest.skip("no zsh here")
    script = client("completion", "zsh").out
    done = subprocess.run(
        ["zsh", "-f"], input=script + "\nprint -r -- $_comps[sessions]\n", capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("_sessions_completion\n", "")

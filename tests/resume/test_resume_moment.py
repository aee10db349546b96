"""The facts of the moment: nothing is changed, nothing of the folder is run, nothing is waited for without a bound."""

from __future__ import annotations

import os
import subprocess
import threading
import time

import pytest

from sessiond.model import Session
from sessiond.providers.codex.launch import CLI as CODEX
from sessiond.resume import NO_REPOSITORY, Branch
from sessions_cli import moment

TIMEOUT_S = 10.0


def git(folder, *words):
    subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(folder), *words], check=True, capture_output=True
    )


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def present(folder, **env):
    return moment.present_branch(str(folder), {**os.environ, **env}, TIMEOUT_S)


def executable(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


# -- branch ------------------------------------------------------------------------------------------------------------


def test_the_branch_is_the_one_checked_out(repository):
    git(repository, "checkout", "-q", "-b", "fix/checkout-retry")
    assert present(repository) == Branch("fix/checkout-retry")


def test_a_folder_inside_a_repository_is_on_its_branch(repository):
    (repository / "src").mkdir()
    assert present(repository / "src") == Branch("main")


def test_a_branch_without_a_commit_counts(tmp_path):
    git(tmp_path, "init", "-q", "-b", "unborn")
    assert present(tmp_path) == Branch("unborn")


def test_a_worktree_is_on_its_own_branch(repository, tmp_path):
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    assert present(tmp_path / "side") == Branch("side")


def test_a_detached_head_is_on_no_branch(repository):
    git(repository, "checkout", "-q", "--detach")
    found = present(repository)
    assert (found.name, found.known) == (None, True)


def test_a_plain_folder_is_in_no_repository(tmp_path):
    assert present(tmp_path) == NO_REPOSITORY


def test_git_variables_of_the_caller_do_not_point_to_another_repository(repository, tmp_path):
    assert present(tmp_path, GIT_DIR=str(repository / ".git")) == NO_REPOSITORY


def test_nothing_of_the_repository_is_executed(repository, tmp_path):
    evil = executable(tmp_path / "evil", f"touch {tmp_path}/pwned\n")
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "diff.external"):
        git(repository, "config", key, str(evil))
    git(repository, "config", "core.hooksPath", str(tmp_path))
    executable(tmp_path / "post-checkout", f"touch {tmp_path}/pwned\n")
    assert present(repository) == Branch("main")
    assert not (tmp_path / "pwned").exists()


def test_the_repository_is_not_written_to(repository):
    before = {str(f): f.stat().st_mtime_ns for f in sorted(repository.rglob("*"))}
    present(repository)
    assert {str(f): f.stat().st_mtime_ns for f in sorted(repository.rglob("*"))} == before


def test_without_git_the_branch_is_unknown(repository, tmp_path):
    assert not present(repository, PATH=str(tmp_path)).known


def test_a_git_that_hangs_is_given_up(repository, tmp_path):
    executable(tmp_path / "git", "exec sleep 60\n")
    started = time.monotonic()
    found = moment.present_branch(str(repository), {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, 0.2)
    assert not found.known
    assert time.monotonic() - started < TIMEOUT_S


def test_a_git_that_fails_for_another_reason_leaves_the_branch_unknown(repository, tmp_path):
    executable(tmp_path / "git", "echo 'fatal: detected dubious ownership' >&2; exit 128\n")
    found = present(repository, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert not found.known
    assert "dubious" in found.instead


# -- folder ------------------------------------------------------------------------------------------------------------


def test_a_folder_that_can_be_entered_has_no_problem(tmp_path):
    assert moment.folder_problem(str(tmp_path), TIMEOUT_S) is None


@pytest.mark.parametrize("name", ["missing", "missing/below", "file/below", "bad\0name", "x" * 300])
def test_a_folder_that_cannot_be_entered_has_one(tmp_path, name):
    (tmp_path / "file").touch()
    assert moment.folder_problem(str(tmp_path / "file") if name == "file" else f"{tmp_path}/{name}", TIMEOUT_S)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    assert moment.folder_problem(str(tmp_path / "file"), TIMEOUT_S)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_a_folder_without_permission_has_one(tmp_path):
    (tmp_path / "shut").mkdir(mode=0)
    assert moment.folder_problem(str(tmp_path / "shut"), TIMEOUT_S)


def test_what_never_answers_is_given_up():
    never = threading.Event()
    try:
        with pytest.raises(TimeoutError):
            moment.bounded(never.wait, 0.05)
    finally:
        never.set()


def test_what_fails_in_time_fails_as_itself():
    with pytest.raises(FileNotFoundError):
        moment.bounded(lambda: os.stat("/nonexistent/x"), TIMEOUT_S)


# -- program -----------------------------------------------------------------------------------------------------------


def test_the_program_is_found_by_its_absolute_path(tmp_path):
    executable(tmp_path / "claude", "")
    assert moment.find_program("claude", {"PATH": f"/nonexistent:{tmp_path}"}) == str(tmp_path / "claude")


@pytest.mark.parametrize("entry", [".", "", "bin", "./bin"])
def test_a_relative_entry_of_path_is_passed_over(tmp_path, monkeypatch, entry):
    (tmp_path / "bin").mkdir()
    executable(tmp_path / "claude", "")
    executable(tmp_path / "bin" / "claude", "")
    monkeypatch.chdir(tmp_path)
    assert moment.find_program("claude", {"PATH": entry}) is None


def test_a_file_that_is_not_executable_is_no_program(tmp_path):
    (tmp_path / "claude").touch(mode=0o644)
    assert moment.find_program("claude", {"PATH": str(tmp_path)}) is None


# -- all together ------------------------------------------------------------------------------------------------------


def gathered(session, tmp_path):
    return moment.gather(session, CODEX, {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})


def test_the_help_is_asked_only_for_a_value_that_some_versions_refuse(tmp_path):
    executable(tmp_path / "codex", 'printf "%s " "$@"\n')
    session = Session(app="codex", id="x", home="/h")
    assert gathered(session, tmp_path).cli_help == ""
    assert (
        gathered(Session(app="codex", id="x", home="/h", approval="untrusted"), tmp_path).cli_help == "resume --help "
    )


def test_the_help_is_asked_with_an_empty_home(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEX_HOME", "/real/home")
    executable(tmp_path / "codex", 'echo "$CODEX_HOME"; ls -A "$CODEX_HOME"\n')
    asked = gathered(Session(app="codex", id="x", home="/h", approval="untrusted"), tmp_path).cli_help
    assert asked.count("\n") == 1
    assert "/real/home" not in asked


def test_the_time_of_writing_is_the_file_s(tmp_path):
    file = tmp_path / "s.jsonl"
    file.touch()
    os.utime(file, ns=(0, 1_700_000_000_123_000_000))
    assert gathered(Session(app="codex", id="x", home="/h", path=str(file)), tmp_path).written_ms == 1_700_000_000_123


def test_a_missing_file_has_no_time_of_writing(tmp_path):
    assert gathered(Session(app="codex", id="x", home="/h", path=str(tmp_path / "no")), tmp_path).written_ms is None

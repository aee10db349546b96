"""The main job, end to end: the installed commands, real files, a real daemon."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import uuid

import pytest

from sessiond.__main__ import main
from tests.kit.manifest import manifest
from tests.kit.oracle import equals_oracle
from tests.kit.privileges import obedient
from tests.kit.world import REPOSITORY, claude_prompt, id_of, until

BIN = os.path.dirname(sys.executable)
CLAUDE_ID = "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58"
CODEX_ID = "019a2f1c-7d0e-7b31-9c4e-5a1f0e2d8b63"


@pytest.fixture
def sample(world):
    """A world whose homes are the sample homes of both apps."""
    for app, home in (("claude-code", world.claude_home), ("codex", world.codex_home)):
        shutil.rmtree(home)
        shutil.copytree(os.path.join(REPOSITORY, "fixtures", app, "sample", "home"), home)
    return world


def sessions(world, *arguments, prefix=(), **env):
    """Run the installed command; whatever it answers, it is never a traceback."""
    done = subprocess.run(
        [*prefix, os.path.join(BIN, "sessions"), *arguments],
        env={**world.env, **env}, capture_output=True, text=True, timeout=60, check=False, cwd=world.folder,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


def listed(world, *arguments):
    """The rows that a command lists, by id."""
    return {row["id"]: row for row in json.loads(sessions(world, *arguments, "--json").stdout)}


def test_find_lists_the_codex_thread_by_its_branch(sample):
    found = listed(sample, "find", "checkout")[CODEX_ID]
    assert (found["app"], found["branch"]) == ("codex", "test/checkout-e2e")


def test_find_lists_the_claude_code_session_by_branch_and_title(sample):
    found = listed(sample, "find", "checkout")[CLAUDE_ID]
    assert (found["branch"], found["title"]) == ("fix/checkout-retry", "Fix double charge on checkout retry")


def test_resume_prints_a_command_that_a_shell_runs_in_the_recorded_folder(world, tmp_path):
    folder = tmp_path / "it's a $(shop)"
    folder.mkdir()
    path = world.claude(project=re.sub("[^A-Za-z0-9]", "-", str(folder)))
    world.append(path, claude_prompt(id_of(path), "more", cwd=str(folder), gitBranch=""))
    claude = tmp_path / "bin" / "claude"
    claude.parent.mkdir()
    claude.write_text("#!/bin/sh\npwd\nprintf '%s\\n' \"$@\"\n")
    claude.chmod(0o755)
    on_path = {"PATH": f"{claude.parent}:{world.env['PATH']}"}
    printed = sessions(world, "resume", id_of(path)[:13], "--print", "--yes", **on_path).stdout
    ran = subprocess.run(
        ["sh", "-c", printed], env={**world.env, **on_path}, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert ran[0] == str(folder), printed
    assert ran[ran.index("--resume") + 1] == id_of(path)
    assert shlex.split(printed)


def test_a_rename_shows_within_a_second_while_the_daemon_runs(world, daemon):
    path = world.claude()
    daemon()
    world.name(path, "Renamed just now")
    until(lambda: id_of(path) in listed(world, "find", "renamed just"), "the new title", 1)


def test_a_session_in_a_new_folder_shows_within_three_seconds(world, daemon):
    world.claude()
    daemon()
    path = world.claude(project="-home-user-other")
    until(lambda: id_of(path) in listed(world, "list"), "the session of a new folder", 3)


def test_a_deleted_session_leaves_the_list_within_three_seconds(world, daemon):
    world.claude()
    path = world.claude()
    daemon()
    os.unlink(path)
    until(lambda: id_of(path) not in listed(world, "list"), "the row to leave", 3)


def test_a_moved_session_is_shown_at_its_new_place_within_three_seconds(world, daemon):
    path = world.claude()
    daemon()
    target = os.path.join(world.projects, "-home-user-moved", os.path.basename(path))
    os.mkdir(os.path.dirname(target))
    os.rename(path, target)
    until(lambda: listed(world, "list").get(id_of(path), {}).get("path") == target, "the new path", 3)


def test_after_kill_9_amid_changes_the_index_equals_one_built_from_nothing(world, daemon):
    paths = [world.claude(f"Task {n}") for n in range(20)]
    process = daemon()
    for n, path in enumerate(paths):
        if n == 10:
            process.kill()
        if n % 3 == 0:
            os.unlink(path)
        else:
            world.name(path, f"Name {n}")
    daemon()
    equals_oracle(world)


def test_no_command_leaves_a_trace_in_the_source_homes(sample, daemon):
    before = manifest(sample.claude_home, sample.codex_home)
    process = daemon()
    for command in ("list --all", "find checkout", f"show {CLAUDE_ID} --sources", f"log {CODEX_ID}", "status"):
        assert sessions(sample, *command.split()).returncode == 0, command
    process.stop()
    assert sessions(sample, "list").returncode == 0
    assert manifest(sample.claude_home, sample.codex_home) == before


COMMANDS = ["list", "find x", "show c5e1", "status", "path", "why x", "log c5e1", "doctor", "resume c5e1 --print"]


@pytest.mark.parametrize("command", COMMANDS)
def test_without_any_home_every_command_answers_in_plain_words(world, command):
    shutil.rmtree(world.home)
    os.mkdir(world.home)
    assert sessions(world, *command.split()).returncode in (0, 1, 3, 5, 9)


def test_empty_homes_are_an_empty_list(world):
    done = sessions(world, "list")
    assert (done.returncode, done.stdout) == (1, "")


def test_binary_garbage_named_like_a_session_costs_only_itself(world):
    path = world.claude()
    with open(os.path.join(os.path.dirname(path), f"{uuid.uuid4()}.jsonl"), "wb") as file:
        file.write(os.urandom(100_000))
    assert list(listed(world, "list", "--all")) == [id_of(path)]


def test_what_an_unreadable_folder_held_stays_listed(world):
    path = world.claude()
    hidden = world.claude(project="-hidden")
    listed(world, "list")
    os.chmod(os.path.dirname(hidden), 0)
    done = sessions(world, "list", "--json", prefix=obedient())
    os.chmod(os.path.dirname(hidden), 0o700)
    assert {row["id"] for row in json.loads(done.stdout)} == {id_of(path), id_of(hidden)}


def test_the_index_can_be_asked_with_sqlite3_while_the_daemon_writes(world, daemon):
    path = world.claude()
    daemon()
    database = sessions(world, "path").stdout.strip()
    assert database == world.index
    for n in range(30):
        world.name(path, f"Title {n}")
        assert world.rows("SELECT app, title, cwd FROM sessions LIMIT 5")[0][0] == "claude-code"


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 command is not installed")
def test_the_line_in_the_readme_works_with_the_sqlite3_command(world):
    world.claude()
    assert sessions(world, "list").returncode == 0
    line = f'"{sys.executable}" -V >/dev/null; sqlite3 "$({BIN}/sessions path)" "select app, cwd from sessions limit 5"'
    done = subprocess.run(["sh", "-c", line], env=world.env, capture_output=True, text=True, check=True)
    assert done.stdout == "claude-code|/home/user/shop\n"


def test_an_interrupted_run_ends_with_130_and_no_traceback(monkeypatch, capsys):
    def interrupted(_env, *, gaps):
        raise KeyboardInterrupt

    monkeypatch.setattr("sessiond.__main__.once", interrupted)
    assert main(["--once"]) == 130
    assert capsys.readouterr().err == ""

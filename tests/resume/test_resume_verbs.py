"""`sessions archive`, `unarchive`, `delete`: the vendor's own program does it, or nobody."""

from __future__ import annotations

import pytest

CLAUDE_ID = "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58"
CODEX_ID = "019a2f1c-7d0e-7b31-9c4e-5a1f0e2d8b63"
VERBS = ["archive", "unarchive", "delete"]
ARGV = {
    "archive": ["archive", CODEX_ID],
    "unarchive": ["unarchive", CODEX_ID],
    "delete": ["delete", "--force", CODEX_ID],
}


def add(stage, verb, **columns):
    archived = verb == "unarchive"
    return stage.add("codex", title="Checkout", archived=archived, resumable=not archived, **columns)


@pytest.mark.parametrize(
    ("verb", "text"), [("archive", CODEX_ID), ("unarchive", CODEX_ID[:18]), ("delete", CODEX_ID.upper())]
)
def test_codex_is_run_with_the_whole_id(stage, verb, text):
    add(stage, verb)
    assert stage.run(verb, text, "--yes").returncode == 0
    assert stage.started["argv"] == ARGV[verb]


@pytest.mark.parametrize("verb", VERBS)
def test_without_a_terminal_and_yes_nothing_is_done(stage, verb):
    add(stage, verb)
    done = stage.run(verb, CODEX_ID)
    assert done.returncode == 10
    assert "--yes" in done.stderr
    assert stage.started is None


@pytest.mark.parametrize("verb", VERBS)
def test_what_will_happen_is_said_first(stage, verb):
    add(stage, verb)
    stderr = stage.run(verb, CODEX_ID, "--yes").stderr
    assert "Checkout" in stderr
    assert f"codex {' '.join(ARGV[verb])}" in stderr


@pytest.mark.parametrize(("verb", "text"), [("delete", "@1"), ("archive", CODEX_ID[-8:]), ("delete", "checkout")])
def test_only_a_whole_id_or_its_beginning_is_taken(stage, verb, text):
    add(stage, verb)
    assert stage.run(verb, text, "--yes").returncode == 5
    assert stage.started is None


@pytest.mark.parametrize("verb", VERBS)
def test_claude_has_no_such_command_and_its_files_stay(stage, verb):
    session = stage.add()
    done = stage.run(verb, CLAUDE_ID, "--yes")
    assert done.returncode == 10
    assert "claude has no command" in done.stderr
    assert stage.started is None
    with open(session.path, encoding="utf-8") as file:
        assert file.read() == ""


@pytest.mark.parametrize(("verb", "archived"), [("archive", True), ("unarchive", False)])
def test_what_is_done_already_is_refused(stage, verb, archived):
    stage.add("codex", archived=archived)
    assert stage.run(verb, CODEX_ID, "--yes").returncode == 10
    assert stage.started is None


@pytest.mark.parametrize("verb", ["unarchive", "delete"])
def test_a_session_that_is_gone_is_refused(stage, verb):
    stage.add("codex", gone_ms=5, archived=verb == "unarchive", resumable=False)
    assert stage.run(verb, CODEX_ID, "--yes").returncode == 10


def test_a_hostile_id_never_reaches_a_command_line(stage):
    add(stage, "delete", id="--last --all")
    assert stage.run("delete", "--yes", "--", "--last --all").returncode == 10
    assert stage.started is None


def test_a_missing_program_is_refused(stage):
    add(stage, "delete")
    (stage.bin / "codex").unlink()
    assert stage.run("delete", CODEX_ID, "--yes", PATH="/nonexistent").returncode == 10


def test_the_thread_s_home_goes_along(stage):
    add(stage, "delete", home="/srv/codex")
    stage.run("delete", CODEX_ID, "--yes", CODEX_HOME="/another")
    assert stage.started["environment"]["CODEX_HOME"] == "/srv/codex"


def test_the_working_folder_stays(stage):
    add(stage, "archive", cwd="/nowhere")
    assert stage.run("archive", CODEX_ID, "--yes").returncode == 0


def test_a_session_written_to_just_now_is_warned_of(stage):
    add(stage, "delete", written_ago_ms=1_000)
    assert "another terminal" in stage.run("delete", CODEX_ID, "--yes").stderr

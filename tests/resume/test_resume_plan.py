"""What stands against resuming, what is asked and what is warned of: a pure function of session, moment and choices."""

from __future__ import annotations

import pytest

from sessiond.errors import FolderGoneError, RefusedError
from sessiond.model import Session
from sessiond.providers.codex.launch import CLI as CODEX
from sessiond.resume import NO_REPOSITORY, Branch, Choices, Cli, Moment, home_change, is_name, is_uuid, is_word, plan

ID = "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58"
CLI = Cli(program="claude", install="install claude")
SESSION = Session(
    app="claude-code",
    id=ID,
    home="/home/alex/.claude",
    path="/home/alex/.claude/projects/-code/x.jsonl",
    cwd="/code",
    branch="main",
)
NOW_MS = 1_800_000_000_000
MOMENT = Moment(
    now_ms=NOW_MS, user_home="/home/alex", branch=Branch("main"), written_ms=NOW_MS - 3_600_000, program="/bin/claude"
)


def decide(session=SESSION, moment=MOMENT, choices=Choices()):  # noqa: B008 - frozen
    return plan(session, moment, choices, CLI)


def test_nothing_stands_against_an_ordinary_session():
    decided = decide()
    assert (decided.refusals, decided.questions, decided.warnings) == ((), (), ())


def test_the_folder_is_the_recorded_one():
    assert decide().folder == "/code"


@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        ({"archived": True, "resumable": False}, RefusedError, f"sessions unarchive {ID}"),
        ({"gone_ms": 1, "resumable": False}, RefusedError, "gone"),
        ({"path": None, "resumable": False}, RefusedError, "no file"),
        ({"resumable": False}, RefusedError, "sessions why"),
        ({"cwd": None}, FolderGoneError, "no folder"),
        ({"cwd": "code/shop"}, FolderGoneError, "no absolute folder"),
        ({"cwd": "~/shop"}, FolderGoneError, "no absolute folder"),
    ],
)
def test_a_session_that_cannot_be_resumed_is_refused_with_its_reason(change, error, word):
    (refusal,) = decide(SESSION._replace(**change)).refusals
    assert type(refusal) is error
    assert word in str(refusal)


@pytest.mark.parametrize(
    "text",
    [
        "--dangerously-skip-permissions",
        "-p",
        "$(touch pwned)",
        "'; touch pwned; '",
        ID + "\n",
        "\n" + ID,
        ID + " --model x",
        "fix the tests",
        "",
        "..",
        "c5e1a7b2",
        ID.replace("-", ""),
        "{" + ID + "}",
        "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f5\uff18",
    ],
)
def test_an_id_that_is_no_uuid_is_refused(text):
    assert [type(r) for r in decide(SESSION._replace(id=text)).refusals] == [RefusedError]


@pytest.mark.parametrize("text", [ID, ID.upper(), "019a2f1c-7d0e-7b31-9c4e-5a1f0e2d8b63"])
def test_a_uuid_of_any_version_and_case_is_an_id(text):
    assert is_uuid(text)


def test_a_folder_that_is_gone_is_refused():
    (refusal,) = decide(moment=MOMENT._replace(folder_problem="it is gone")).refusals
    assert type(refusal) is FolderGoneError


def test_a_file_that_disappeared_since_the_listing_is_refused():
    (refusal,) = decide(moment=MOMENT._replace(written_ms=None)).refusals
    assert type(refusal) is RefusedError


def test_a_missing_program_is_refused_with_the_command_that_installs_it():
    (refusal,) = decide(moment=MOMENT._replace(program=None)).refusals
    assert "install claude" in str(refusal)


def test_a_missing_program_is_only_a_warning_when_the_plan_is_shown():
    decided = decide(moment=MOMENT._replace(program=None), choices=Choices(show_only=True))
    assert decided.refusals == ()
    assert "install claude" in decided.warnings[0]


def test_the_folder_weighs_more_than_the_program():
    refusals = decide(moment=MOMENT._replace(program=None, folder_problem="it is gone")).refusals
    assert [type(r) for r in refusals] == [FolderGoneError, RefusedError]


def test_an_archived_session_weighs_more_than_its_folder():
    session = SESSION._replace(archived=True, resumable=False)
    assert "unarchive" in str(decide(session, MOMENT._replace(folder_problem="it is gone")).refusals[0])


@pytest.mark.parametrize(
    "present",
    [Branch("other"), Branch("Main"), Branch(None, "on no branch (detached HEAD)"), NO_REPOSITORY],
)
def test_another_branch_than_the_recorded_one_has_to_be_agreed_to(present):
    (question,) = decide(moment=MOMENT._replace(branch=present)).questions
    assert "branch main" in question


def test_for_codex_the_question_says_that_the_branch_is_the_one_it_began_on():
    session = SESSION._replace(app="codex")
    (question,) = plan(session, MOMENT._replace(branch=Branch("other")), Choices(), CODEX).questions
    assert "began on branch main" in question


def test_a_session_without_a_branch_is_resumed_on_any():
    assert decide(SESSION._replace(branch=None), MOMENT._replace(branch=Branch("other"))).questions == ()


def test_a_branch_that_cannot_be_found_out_is_a_warning():
    decided = decide(moment=MOMENT._replace(branch=Branch(None, "git is not on PATH", known=False)))
    assert decided.questions == ()
    assert "git is not on PATH" in decided.warnings[0]


@pytest.mark.parametrize(("age_ms", "warned"), [(-5_000, 1), (0, 1), (120_000, 1), (120_001, 0)])
def test_a_session_written_to_within_two_minutes_is_warned_of(age_ms, warned):
    assert len(decide(moment=MOMENT._replace(written_ms=NOW_MS - age_ms)).warnings) == warned


@pytest.mark.parametrize(
    ("home", "value"),
    [
        ("/home/alex/.claude", None),
        ("/home/alex/.claude/", None),
        ("/home/alex/./.claude", None),
        ("/home/alex/.config/claude", "/home/alex/.config/claude"),
        ("/home/alex/.claude-work", "/home/alex/.claude-work"),
        ("/home/other/.claude", "/home/other/.claude"),
    ],
)
def test_the_home_goes_along_unless_it_is_the_default_one(home, value):
    assert home_change("claude-code", home, "/home/alex") == {"CLAUDE_CONFIG_DIR": value}


@pytest.mark.parametrize("text", ["-x", "--yolo", "", "a b", "a\nb", 'a"b', "a;b", "é", "x" * 65])
def test_a_word_for_a_flag_has_no_dash_in_front_and_nothing_special_in_it(text):
    assert not is_word(text)


@pytest.mark.parametrize(
    "text", ["claude-opus-4-8", "opus[1m]", "us.anthropic.claude-v2:0", "@cf/meta/llama", "gpt-5.2-codex", "a/b:c@d"]
)
def test_the_models_of_every_provider_have_names(text):
    assert is_name(text)


@pytest.mark.parametrize(
    "text", ["-x", "--dangerously-skip-permissions", "", "a b", "a\nb", "a\x1b[0m", "é", "x" * 201]
)
def test_what_could_be_a_flag_or_is_not_visible_is_no_name(text):
    assert not is_name(text)

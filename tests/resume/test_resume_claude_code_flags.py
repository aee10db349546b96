"""Every recorded mode of Claude Code with every choice, as the argument list of `claude`."""

from __future__ import annotations

import pytest

from sessiond.model import Session
from sessiond.providers.claude_code.launch import command
from sessiond.resume import Choices, Plan

ID = "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58"
STRICT = {"plan": "plan", "default": "default", "manual": "default"}
LOOSE = ["acceptEdits", "auto", "bypassPermissions", "dontAsk", "delegate", "someFutureMode", "Plan", "DEFAULT"]
NO_MODE = [
    "",
    "--dangerously-skip-permissions",
    "-p",
    "plan\n",
    "plan default",
    "$(touch pwned)",
    "'",
    "pläne",
    "x" * 99,
]


def argv(*, choices=Choices(), **recorded):  # noqa: B008 - frozen
    session = Session(app="claude-code", id=ID, home="/home/alex/.claude", cwd="/code", **recorded)
    return command(session, Plan("/code", choices, user_home="/home/alex"))


def mode_of(made):
    at = made.argv.index("--permission-mode")
    return made.argv[at + 1]


def test_a_bare_session_is_resumed_by_id_with_the_default_mode():
    assert argv().argv == ("claude", "--resume", ID, "--permission-mode", "default")


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("recorded", STRICT)
def test_a_strict_mode_is_kept(recorded, allowed):
    made = argv(approval=recorded, choices=Choices(allow_recorded_approvals=allowed))
    assert mode_of(made) == STRICT[recorded]
    assert made.settings["approval"].decision == "kept"


@pytest.mark.parametrize("recorded", LOOSE)
def test_a_looser_or_unknown_mode_is_withheld(recorded):
    made = argv(approval=recorded)
    assert mode_of(made) == "default"
    assert made.settings["approval"].decision == "withheld"
    assert made.settings["approval"].recorded == recorded


@pytest.mark.parametrize("recorded", LOOSE)
def test_a_looser_mode_is_kept_when_allowed_for_this_call(recorded):
    assert mode_of(argv(approval=recorded, choices=Choices(allow_recorded_approvals=True))) == recorded


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("recorded", NO_MODE)
def test_what_is_no_mode_never_reaches_the_command_line(recorded, allowed):
    made = argv(approval=recorded, choices=Choices(allow_recorded_approvals=allowed))
    assert mode_of(made) == "default"
    assert made.settings["approval"].decision == "withheld"
    assert recorded not in made.argv


@pytest.mark.parametrize("allowed", [False, True])
def test_without_a_recorded_mode_the_default_one_is_passed(allowed):
    made = argv(choices=Choices(allow_recorded_approvals=allowed))
    assert mode_of(made) == "default"
    assert made.settings["approval"].decision == "default"


def test_the_model_is_left_to_the_cli():
    made = argv(model="claude-opus-4-8")
    assert "--model" not in made.argv
    assert made.settings["model"].decision == "restored"


@pytest.mark.parametrize(
    ("choices", "model"),
    [(Choices(keep_model=True), "claude-opus-4-8"), (Choices(model="opus[1m]"), "opus[1m]")],
)
def test_a_model_is_passed_when_asked_for(choices, model):
    assert argv(model="claude-opus-4-8", choices=choices).argv[3:5] == ("--model", model)


def test_a_chosen_model_wins_over_the_kept_one():
    assert argv(model="a", choices=Choices(keep_model=True, model="b")).settings["model"].passed == "b"


@pytest.mark.parametrize("name", ["--dangerously-skip-permissions", "a b", "", "a\nb"])
def test_a_recorded_model_that_is_no_name_is_withheld(name):
    made = argv(model=name, choices=Choices(keep_model=True))
    assert made.settings["model"].decision == "withheld"
    assert "--model" not in made.argv


def test_a_recorded_effort_is_passed():
    assert argv(effort="xhigh").argv[3:5] == ("--effort", "xhigh")


def test_a_chosen_effort_wins_over_the_recorded_one():
    assert argv(effort="xhigh", choices=Choices(effort="low")).argv[3:5] == ("--effort", "low")


def test_a_recorded_effort_that_is_no_name_is_withheld():
    assert argv(effort="--model x").settings["effort"].decision == "withheld"


def test_a_fork_gets_a_new_id():
    assert argv(choices=Choices(fork=True)).argv[:4] == ("claude", "--resume", ID, "--fork-session")


def test_nothing_but_flags_and_their_values_follows_the_id():
    made = argv(
        model="m", effort="high", approval="auto", title="do this", first_prompt="do that",
        choices=Choices(keep_model=True, fork=True, allow_recorded_approvals=True),
    )  # fmt: skip
    rest = made.argv[3:]
    assert rest == ("--fork-session", "--model", "m", "--effort", "high", "--permission-mode", "auto")


@pytest.mark.parametrize(
    ("home", "value"), [("/home/alex/.claude", None), ("/home/alex/.config/claude", "/home/alex/.config/claude")]
)
def test_the_home_goes_along_by_its_variable_unless_it_is_the_default(home, value):
    session = Session(app="claude-code", id=ID, home=home)
    assert command(session, Plan("/code", user_home="/home/alex")).environment == {"CLAUDE_CONFIG_DIR": value}

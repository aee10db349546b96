"""`sessions resume` as a process: which program it becomes, where, with what environment, and when it refuses."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

CLAUDE_ID = "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58"
CODEX_ID = "019a2f1c-7d0e-7b31-9c4e-5a1f0e2d8b63"


def git_init(folder, branch):
    subprocess.run(["git", "init", "-q", "-b", branch, str(folder)], check=True, capture_output=True)


def plan_of(stage, *words):
    done = stage.run("resume", *words, "--json")
    return json.loads(done.stdout)


# -- becoming the program ----------------------------------------------------------------------------------------------


def test_claude_is_started_with_the_id_in_the_recorded_folder(stage):
    stage.add()
    done = stage.run("resume", "c5e1")
    assert (done.returncode, done.stdout) == (0, "stand-in runs\n")
    assert stage.started["argv"] == ["--resume", CLAUDE_ID, "--permission-mode", "default"]
    assert stage.started["folder"] == os.path.realpath(stage.folder)


def test_codex_is_started_with_the_id_last(stage):
    stage.add("codex", approval="on-request", sandbox='{"type":"workspace-write"}')
    assert stage.run("resume", CODEX_ID).returncode == 0
    assert stage.started["argv"] == ["resume", "-a", "on-request", "-s", "workspace-write", CODEX_ID]


def test_pwd_is_the_folder_as_after_a_cd(stage):
    stage.add()
    stage.run("resume", CLAUDE_ID, PWD="/elsewhere")
    assert stage.started["environment"]["PWD"] == str(stage.folder)


@pytest.mark.parametrize(
    ("app", "variable", "default"),
    [("claude-code", "CLAUDE_CONFIG_DIR", ".claude"), ("codex", "CODEX_HOME", ".codex")],
)
def test_for_the_default_home_its_variable_is_unset(stage, app, variable, default):
    session = stage.add(app, home=str(stage.home / default))
    stage.run("resume", session.id, **{variable: "/another/account"})
    assert variable not in stage.started["environment"]


@pytest.mark.parametrize(("app", "variable"), [("claude-code", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME")])
def test_another_home_goes_along_by_its_variable(stage, app, variable):
    session = stage.add(app, home="/srv/work account")
    stage.run("resume", session.id, **{variable: "/another/account"})
    assert stage.started["environment"][variable] == "/srv/work account"


def test_the_rest_of_the_environment_is_left_alone(stage):
    stage.add()
    stage.run("resume", CLAUDE_ID, SOME_SETTING="kept")
    assert stage.started["environment"]["SOME_SETTING"] == "kept"


def test_a_program_in_the_recorded_folder_is_not_run_through_a_relative_path(stage):
    stage.add()
    evil = stage.folder / "claude"
    evil.write_text(f"#!/bin/sh\ntouch {stage.home}/pwned\n")
    evil.chmod(0o755)
    stage.run("resume", CLAUDE_ID, PATH=f".:{stage.env['PATH']}")
    assert not (stage.home / "pwned").exists()
    assert stage.started is not None


def test_the_exit_code_is_the_program_s(stage):
    stage.add()
    (stage.bin / "claude").write_text("#!/bin/sh\nexit 42\n")
    assert stage.run("resume", CLAUDE_ID).returncode == 42


def test_a_closed_pipe_ends_the_program_as_it_would_without_us(stage):
    stage.add()
    (stage.bin / "claude").write_text("#!/bin/sh\ntrap\nkill -PIPE $$\nexit 3\n")
    assert stage.run("resume", CLAUDE_ID).returncode == -13


def test_a_program_that_cannot_be_started_is_named(stage):
    stage.add()
    (stage.bin / "claude").write_bytes(b"\x7fnonsense")
    done = stage.run("resume", CLAUDE_ID)
    assert done.returncode == 10
    assert str(stage.bin / "claude") in done.stderr


# -- hostile folders, branches, ids ------------------------------------------------------------------------------------

HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; #',
    "-rf --no-preserve-root",
    "two\nlines",
    "\x1b]0;owned\x07\x1b[2J",
    "right\u202eleft",
    " ",
    "~",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_entered_and_nothing_else_happens(stage, name):
    folder = stage.folder / name
    folder.mkdir()
    stage.add(cwd=str(folder))
    assert stage.run("resume", CLAUDE_ID).returncode == 0
    assert stage.started["folder"] == os.path.realpath(folder)
    assert os.listdir(folder) == []


@pytest.mark.parametrize("name", ["$(touch pwned)", "'; touch pwned; '", "\x1b]0;owned\x07\x1b[2J", "right\u202eleft"])
def test_the_printed_line_survives_a_hostile_folder(stage, name):
    folder = stage.folder / name
    folder.mkdir()
    stage.add(cwd=str(folder))
    line = stage.run("resume", CLAUDE_ID, "--print").stdout
    assert line.count("\n") == 1
    assert line[:-1].isprintable()
    subprocess.run(["sh", "-c", line], env=stage.env, cwd=stage.home, check=True, capture_output=True)
    assert stage.started["folder"] == os.path.realpath(folder)
    assert stage.started["argv"] == ["--resume", CLAUDE_ID, "--permission-mode", "default"]
    assert not list(stage.home.rglob("pwned"))


def test_a_line_break_in_the_folder_is_refused_by_print(stage):
    folder = stage.folder / "two\nlines"
    folder.mkdir()
    stage.add(cwd=str(folder))
    done = stage.run("resume", CLAUDE_ID, "--print")
    assert (done.returncode, done.stdout) == (10, "")


@pytest.mark.parametrize("branch", ["$(touch pwned)", "--upload-pack=touch pwned", "\x1b[2J\u202e", "two\nlines"])
def test_a_hostile_branch_is_only_shown(stage, branch):
    git_init(stage.folder, "main")
    stage.add(branch=branch)
    done = stage.run("resume", CLAUDE_ID)
    assert done.returncode == 10
    assert done.stderr.replace("\n", "").isprintable()
    assert not list(stage.home.rglob("pwned"))


@pytest.mark.parametrize(
    "hostile_id", ["--dangerously-skip-permissions", "$(touch pwned)", "fix the tests", "-print", "x'; touch pwned; '"]
)
def test_a_hostile_id_never_reaches_a_command_line(stage, hostile_id):
    stage.add(id=hostile_id)
    done = stage.run("resume", "--", hostile_id)
    assert done.returncode == 10
    assert stage.started is None
    assert json.loads(stage.run("resume", "--json", "--", hostile_id).stdout)["argv"] is None


@pytest.mark.parametrize("app", ["claude-code", "codex"])
@pytest.mark.parametrize("text", ["--dangerously-skip-permissions", "$(touch pwned)"])
def test_hostile_settings_never_reach_a_command_line(stage, app, text):
    session = stage.add(app, model=text, effort=text, model_provider=text, approval=text, sandbox=text)
    stage.run("resume", session.id, "--keep-model", "--allow-recorded-approvals")
    assert text not in stage.started["argv"] or text == "$(touch pwned)"
    assert all("yolo" not in word and "dangerously" not in word for word in stage.started["argv"])
    assert not list(stage.home.rglob("pwned"))


def test_what_is_said_about_hostile_text_is_printable(stage):
    stage.add(approval="\x1b[2Jbypass\u202e", model="m\x07")
    done = stage.run("resume", CLAUDE_ID, "--keep-model")
    assert done.stderr.replace("\n", "").isprintable()


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_a_folder_that_is_gone_is_refused_with_7(stage):
    stage.add(cwd="/nowhere/to/be found")
    done = stage.run("resume", CLAUDE_ID)
    assert done.returncode == 7
    assert "/nowhere/to/be found" in done.stderr
    assert stage.started is None


def test_a_refusal_is_one_line_whatever_the_folder_is_called(stage):
    stage.add(cwd="/nowhere/two\nlines")
    assert stage.run("resume", CLAUDE_ID).stderr.count("\n") == 1


def test_a_folder_that_is_gone_is_not_printed_either(stage):
    stage.add(cwd="/nowhere")
    done = stage.run("resume", CLAUDE_ID, "--print")
    assert (done.returncode, done.stdout) == (7, "")


@pytest.mark.parametrize(
    "columns",
    [
        {"archived": True, "resumable": False},
        {"resumable": False},
        {"path": None, "resumable": False},
        {"gone_ms": 5, "resumable": False},
    ],
)
def test_a_session_that_cannot_be_resumed_is_refused_with_10(stage, columns):
    stage.add("codex", **columns)
    assert stage.run("resume", CODEX_ID).returncode == 10
    assert stage.started is None


def test_an_archived_thread_is_refused_with_the_command_that_brings_it_back(stage):
    stage.add("codex", archived=True, resumable=False)
    assert f"sessions unarchive {CODEX_ID}" in stage.run("resume", CODEX_ID).stderr


def test_a_missing_program_is_refused_with_10_and_how_to_install_it(stage):
    stage.add()
    (stage.bin / "claude").unlink()
    done = stage.run("resume", CLAUDE_ID, PATH=f"{stage.bin}:/usr/bin:/bin")
    assert done.returncode == 10
    assert "npm install -g @anthropic-ai/claude-code" in done.stderr


def test_a_missing_program_does_not_keep_the_plan_from_being_shown(stage):
    stage.add()
    (stage.bin / "claude").unlink()
    done = stage.run("resume", CLAUDE_ID, "--print", PATH=f"{stage.bin}:/usr/bin:/bin")
    assert done.returncode == 0
    assert "not on PATH" in done.stderr


def test_a_file_that_disappeared_is_refused(stage):
    stage.add(path="/nowhere/x.jsonl")
    assert stage.run("resume", CLAUDE_ID).returncode == 10


def test_a_word_that_is_no_id_lists_what_it_matches(stage):
    stage.add(title="Fix double charge on checkout retry")
    done = stage.run("resume", "checkout")
    assert (done.returncode, done.stdout) == (5, "")
    assert "c5e1a7b2  Fix double charge on checkout retry" in done.stderr


def test_a_word_that_matches_nothing_is_refused_with_5(stage):
    stage.add()
    assert stage.run("resume", "zebra").returncode == 5


def test_an_ambiguous_beginning_is_refused_with_6(stage):
    stage.add(id=CLAUDE_ID)
    stage.add(id=CLAUDE_ID[:-1] + "9")
    assert stage.run("resume", "c5e1").returncode == 6


def test_a_second_word_is_never_taken_for_a_prompt(stage):
    stage.add()
    assert stage.run("resume", CLAUDE_ID, "delete everything").returncode == 2
    assert stage.started is None


@pytest.mark.parametrize("option", ["--model=--dangerously-skip-permissions", "--model=", "--effort=a b"])
def test_a_chosen_value_that_is_no_name_is_a_usage_error(stage, option):
    stage.add()
    assert stage.run("resume", CLAUDE_ID, option).returncode == 2


def test_print_and_json_exclude_each_other(stage):
    stage.add()
    assert stage.run("resume", CLAUDE_ID, "--print", "--json").returncode == 2


# -- branch ------------------------------------------------------------------------------------------------------------


def test_on_the_recorded_branch_nothing_is_asked(stage):
    git_init(stage.folder, "fix/checkout-retry")
    stage.add(branch="fix/checkout-retry")
    assert stage.run("resume", CLAUDE_ID).returncode == 0


def test_another_branch_without_a_terminal_is_refused_and_both_are_named(stage):
    git_init(stage.folder, "main")
    stage.add(branch="fix/checkout-retry")
    done = stage.run("resume", CLAUDE_ID)
    assert done.returncode == 10
    assert "fix/checkout-retry" in done.stderr
    assert "on main" in done.stderr
    assert "--yes" in done.stderr
    assert stage.started is None


def test_yes_agrees_and_nothing_is_checked_out(stage):
    git_init(stage.folder, "main")
    stage.add(branch="fix/checkout-retry")
    assert stage.run("resume", CLAUDE_ID, "--yes").returncode == 0
    head = (stage.folder / ".git" / "HEAD").read_text()
    assert head == "ref: refs/heads/main\n"


def test_print_says_that_the_branch_differs_and_prints(stage):
    git_init(stage.folder, "main")
    stage.add(branch="fix/checkout-retry")
    done = stage.run("resume", CLAUDE_ID, "--print")
    assert done.returncode == 0
    assert "fix/checkout-retry" in done.stderr


# -- what is said ------------------------------------------------------------------------------------------------------


def test_a_session_written_to_just_now_is_warned_of_and_resumed(stage):
    stage.add(written_ago_ms=5_000)
    done = stage.run("resume", CLAUDE_ID)
    assert done.returncode == 0
    assert "another terminal" in done.stderr


def test_an_old_session_without_loose_settings_is_resumed_without_a_word(stage):
    stage.add(approval="plan", model="claude-opus-4-8", effort="high")
    assert stage.run("resume", CLAUDE_ID).stderr == ""


def test_a_withheld_setting_is_said_with_the_option_that_keeps_it(stage):
    stage.add(approval="bypassPermissions")
    stderr = stage.run("resume", CLAUDE_ID).stderr
    assert "bypassPermissions" in stderr
    assert "--allow-recorded-approvals" in stderr


def test_allowed_settings_are_passed_for_this_call(stage):
    stage.add(approval="bypassPermissions")
    stage.run("resume", CLAUDE_ID, "--allow-recorded-approvals")
    assert stage.started["argv"][-1] == "bypassPermissions"


# -- plan --------------------------------------------------------------------------------------------------------------


def test_the_plan_is_shown_whole_and_nothing_is_started(stage):
    stage.add(approval="acceptEdits", model="claude-opus-4-8", effort="high", title="Fix it")
    plan = plan_of(stage, CLAUDE_ID)
    assert stage.started is None
    assert plan == {
        "app": "claude-code",
        "id": CLAUDE_ID,
        "title": "Fix it",
        "home": str(stage.home / ".claude"),
        "folder": str(stage.folder),
        "program": str(stage.bin / "claude"),
        "argv": ["claude", "--resume", CLAUDE_ID, "--effort", "high", "--permission-mode", "default"],
        "environment": {"CLAUDE_CONFIG_DIR": None},
        "shell": f"cd -- {stage.folder} && env -u CLAUDE_CONFIG_DIR claude --resume {CLAUDE_ID} --effort high"
        " --permission-mode default",
        "branch": {"recorded": None, "present": None},
        "settings": {
            "model": {
                "recorded": "claude-opus-4-8",
                "passed": None,
                "decision": "restored",
                "why": "the CLI restores it; --keep-model passes the recorded name",
            },
            "effort": {"recorded": "high", "passed": "high", "decision": "kept", "why": "as recorded"},
            "approval": {
                "recorded": "acceptEdits",
                "passed": "default",
                "decision": "withheld",
                "why": "it may do more without asking; --allow-recorded-approvals keeps it",
            },
        },
        "withheld": {"approval": "it may do more without asking; --allow-recorded-approvals keeps it"},
        "questions": [],
        "warnings": [],
        "refusals": [],
    }


def test_a_refused_plan_is_shown_with_its_refusals_and_their_exit_code(stage):
    stage.add(cwd="/nowhere")
    done = stage.run("resume", CLAUDE_ID, "--json")
    plan = json.loads(done.stdout)
    assert done.returncode == 7
    assert [refusal["exit_code"] for refusal in plan["refusals"]] == [7]
    assert plan["shell"] is None


def test_the_plan_lists_questions_and_both_branches(stage):
    git_init(stage.folder, "main")
    stage.add(branch="side")
    plan = plan_of(stage, CLAUDE_ID)
    assert plan["branch"] == {"recorded": "side", "present": "main"}
    assert len(plan["questions"]) == 1


def test_the_plan_is_printable_whatever_is_in_it(stage):
    folder = stage.folder / "\x1b[2J\u202e\x7f"
    folder.mkdir()
    stage.add(cwd=str(folder), title="\x1b]0;x\x07", branch="\u2028")
    stdout = stage.run("resume", CLAUDE_ID, "--json").stdout
    assert stdout.replace("\n", "").isprintable()
    assert json.loads(stdout)["folder"] == str(folder)


def test_every_key_of_the_plan_is_documented(stage):
    stage.add()
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "resume.md"), encoding="utf-8") as file:
        page = file.read()
    keys = plan_of(stage, CLAUDE_ID).keys()
    assert [key for key in keys if f"`{key}`" not in page] == []


@pytest.mark.parametrize(("closed", "code"), [("<&-", 0), (">&-", 1), ("2>&-", 0), ("<&- >&- 2>&-", 1)])
def test_a_closed_standard_stream_is_no_crash(stage, closed, code):
    stage.add(approval="bypassPermissions")
    words = [*stage.argv, "resume", "--no-refresh", "--print", CLAUDE_ID]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *words], env=stage.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_with_stderr_closed_the_program_is_started_all_the_same(stage):
    stage.add(approval="bypassPermissions")
    words = [*stage.argv, "resume", "--no-refresh", CLAUDE_ID]
    subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *words], env=stage.env, capture_output=True, check=True)
    assert stage.started is not None


@pytest.mark.parametrize("text", ["", "@0", "@99999999999999999999", "abcd\U0010ffff", "%%%%", "c5e1%", "\u202e" * 4])
def test_what_is_no_id_is_refused_with_5_whatever_it_is(stage, text):
    stage.add()
    done = stage.run("resume", text)
    assert done.returncode == 5
    assert done.stderr.replace("\n", "").isprintable()

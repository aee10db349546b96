"""Every recorded approval, sandbox, model and effort of Codex with every choice, as the argument list of `codex`."""

from __future__ import annotations

import json

import pytest

from sessiond.model import DATABASE, Session
from sessiond.providers.codex.launch import command
from sessiond.resume import Choices, Plan, Stated

ID = "019a2f1c-7d0e-7b31-9c4e-5a1f0e2d8b63"
HELP_WITH_UNTRUSTED = "[possible values: untrusted, on-failure, on-request, never]"
HELP_WITHOUT_UNTRUSTED = "Possible values:\n- on-request: …\n- never: …"
ROW = (Stated(DATABASE, {"model": "gpt-5.2-codex", "effort": "high"}),)

GRANULAR = '{"granular":{"sandbox_approval":true,"rules":true,"skill_approval":false,"mcp_elicitations":true}}'
REJECT = '{"reject":{"sandbox_approval":true,"rules":false,"mcp_elicitations":true}}'
NO_APPROVAL = ["", "[]", "{}", "null", "17", '{"a":1,"b":2}', "--yolo", "never never", "'", "[" * 5000, "never\n"]


def made(*, choices=Choices(), stated=(), cli_help="", folder="/code", **recorded):  # noqa: B008 - frozen
    session = Session(app="codex", id=ID, home="/home/alex/.codex", cwd=folder, **recorded)
    return command(session, Plan(folder, choices, user_home="/home/alex", cli_help=cli_help, stated=stated))


def flag(command_made, name):
    return command_made.argv[command_made.argv.index(name) + 1]


def test_a_bare_thread_is_resumed_with_the_safe_values_and_the_id_last():
    assert made().argv == ("codex", "resume", "-a", "on-request", "-s", "read-only", ID)


# -- approval ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("recorded", ["untrusted", "on-request", '"untrusted"', '"on-request"'])
def test_a_strict_approval_is_kept(recorded, allowed):
    command_made = made(approval=recorded, choices=Choices(allow_recorded_approvals=allowed))
    assert flag(command_made, "-a") == recorded.strip('"')
    assert command_made.settings["approval"].decision == "kept"


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("recorded", ["on-failure", GRANULAR, REJECT])
def test_an_approval_without_a_flag_becomes_the_nearest_and_is_reported(recorded, allowed):
    command_made = made(approval=recorded, choices=Choices(allow_recorded_approvals=allowed))
    assert flag(command_made, "-a") == "on-request"
    assert command_made.settings["approval"].decision == "nearest"
    assert command_made.settings["approval"].notable


@pytest.mark.parametrize("recorded", ["never", "someday", "Untrusted"])
def test_a_looser_or_unknown_approval_is_withheld(recorded):
    command_made = made(approval=recorded)
    assert flag(command_made, "-a") == "on-request"
    assert command_made.settings["approval"].decision == "withheld"


@pytest.mark.parametrize("recorded", ["never", "someday"])
def test_a_looser_approval_is_kept_when_allowed_for_this_call(recorded):
    assert flag(made(approval=recorded, choices=Choices(allow_recorded_approvals=True)), "-a") == recorded


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("recorded", NO_APPROVAL)
def test_what_is_no_approval_never_reaches_the_command_line(recorded, allowed):
    command_made = made(approval=recorded, choices=Choices(allow_recorded_approvals=allowed))
    assert command_made.argv == ("codex", "resume", "-a", "on-request", "-s", "read-only", ID)
    assert command_made.settings["approval"].decision == "withheld"


def test_untrusted_becomes_on_request_where_the_installed_codex_has_dropped_it():
    command_made = made(approval="untrusted", cli_help=HELP_WITHOUT_UNTRUSTED)
    assert flag(command_made, "-a") == "on-request"
    assert command_made.settings["approval"].decision == "nearest"


@pytest.mark.parametrize("cli_help", ["", "no list of values", HELP_WITH_UNTRUSTED])
def test_untrusted_is_kept_unless_the_help_shows_that_it_was_dropped(cli_help):
    assert flag(made(approval="untrusted", cli_help=cli_help), "-a") == "untrusted"


# -- sandbox -----------------------------------------------------------------------------------------------------------


def managed(*entries, network="restricted"):
    policy = {"type": "managed", "file_system": {"type": "restricted", "entries": list(entries)}, "network": network}
    return json.dumps(policy, separators=(",", ":"))


def special(kind, access, **more):
    return {"path": {"type": "special", "value": {"kind": kind, **more}}, "access": access}


def path(name, access):
    return {"path": {"type": "path", "path": name}, "access": access}


READ_ALL = special("root", "read")

BOUNDED = [
    # bare words
    ("read-only", "read-only"),
    ("workspace-write", "workspace-write"),
    ('"read-only"', "read-only"),
    # until 2026-05-29; up to 0.58 the key was `mode`
    ('{"type":"read-only"}', "read-only"),
    ('{"mode":"read-only"}', "read-only"),
    ('{"type":"read-only","access":{"type":"full"},"read_only_access":7}', "read-only"),
    ('{"mode":"workspace-write","network_access":false}', "workspace-write"),
    (
        '{"type":"workspace-write","writable_roots":["/x"],"network_access":true,"exclude_slash_tmp":false}',
        "workspace-write",
    ),
    # since 2026-05-29
    (managed(), "read-only"),
    (managed(READ_ALL), "read-only"),
    (managed(READ_ALL, special("project_roots", "write")), "workspace-write"),
    (managed(READ_ALL, special("project_roots", "write"), network="enabled"), "workspace-write"),
    (managed(READ_ALL, special("current_working_directory", "write")), "workspace-write"),
    (managed(READ_ALL, special("project_roots", "write", subpath="docs")), "read-only"),
    (managed(READ_ALL, special("project_roots", "read"), special("tmpdir", "write")), "read-only"),
    (managed(special("root", "write")), "workspace-write"),
    (managed(special("root", "write"), path("/code/shop", "read")), "read-only"),
    (managed(READ_ALL, path("/code/shop", "write")), "workspace-write"),
    (managed(READ_ALL, path("/code", "write")), "workspace-write"),
    (managed(READ_ALL, path("/code/", "write")), "workspace-write"),
    (managed(READ_ALL, path("/code", "write"), path("/code/shop", "read")), "read-only"),
    (managed(READ_ALL, path("/code/shop", "read"), path("/code", "write")), "read-only"),
    (managed(READ_ALL, path("/code/shop", "write"), path("/code/shop", "read")), "read-only"),
    (managed(READ_ALL, path("/code/shop", "read"), path("/code/shop", "write")), "read-only"),
    (managed(READ_ALL, path("/code/sho", "write")), "read-only"),
    (managed(READ_ALL, path("/code/shop/src", "write")), "read-only"),
    (managed(READ_ALL, special("minimal", "write"), special("unknown", "write")), "read-only"),
    (managed(READ_ALL, {"path": {"type": "glob_pattern", "pattern": "**"}, "access": "write"}), "read-only"),
    (managed(READ_ALL, path("/code/shop", "append")), "read-only"),
]

BOUNDLESS = [
    "danger-full-access",
    '{"type":"danger-full-access"}',
    '{"mode":"danger-full-access"}',
    '{"type":"disabled"}',
    '{"type":"managed","file_system":{"type":"unrestricted"},"network":"enabled"}',
]

WITHOUT_FLAG = [
    "external-sandbox",
    '{"type":"external-sandbox","network_access":"restricted"}',
    '{"type":"external","network":"restricted"}',
    '{"type":"managed","file_system":{"type":"unrestricted"},"network":"restricted"}',
    '{"type":"managed","file_system":{"type":"unrestricted"}}',
    '{"type":"managed","file_system":{"type":"of-the-future"},"network":"restricted"}',
    '{"type":"managed"}',
    '{"type":"managed","file_system":7}',
    '{"type":"of-the-future"}',
    '{"type":["read-only"]}',
    '{"type":{}}',
    "of-the-future",
    "READ-ONLY",
    "",
    "null",
    "[]",
    "7",
    "{",
    "[" * 5000,
    "--yolo",
]


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("recorded", BOUNDED)
def test_a_sandbox_with_bounds_is_kept(recorded, allowed):
    policy, word = recorded
    command_made = made(sandbox=policy, folder="/code/shop", choices=Choices(allow_recorded_approvals=allowed))
    assert flag(command_made, "-s") == word
    assert command_made.settings["sandbox"].decision == "kept"


@pytest.mark.parametrize("recorded", BOUNDLESS)
def test_a_sandbox_without_bounds_is_withheld(recorded):
    command_made = made(sandbox=recorded)
    assert flag(command_made, "-s") == "read-only"
    assert command_made.settings["sandbox"].decision == "withheld"


@pytest.mark.parametrize("recorded", BOUNDLESS)
def test_a_sandbox_without_bounds_is_kept_when_allowed_for_this_call(recorded):
    command_made = made(sandbox=recorded, choices=Choices(allow_recorded_approvals=True))
    assert flag(command_made, "-s") == "danger-full-access"


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("recorded", WITHOUT_FLAG)
def test_a_sandbox_that_no_flag_can_express_is_withheld_even_when_allowed(recorded, allowed):
    command_made = made(sandbox=recorded, choices=Choices(allow_recorded_approvals=allowed))
    assert flag(command_made, "-s") == "read-only"
    assert command_made.settings["sandbox"].decision == "withheld"


@pytest.mark.parametrize("access", ["deny", "none"])
def test_rules_that_shut_off_paths_are_reported_since_no_flag_carries_them(access):
    command_made = made(sandbox=managed(special("project_roots", "write"), path("/code/shop/.env", access)))
    assert flag(command_made, "-s") == "workspace-write"
    assert command_made.settings["sandbox"].decision == "nearest"


def test_a_folder_shut_off_is_not_writable():
    assert flag(made(sandbox=managed(special("root", "write"), path("/code", "deny"))), "-s") == "read-only"


# -- model, effort, provider -------------------------------------------------------------------------------------------

MIND = {"model": "gpt-5.2-codex", "effort": "high", "model_provider": "openai"}
ALL_THREE = (
    "-m", "gpt-5.2-codex", "-c", 'model_reasoning_effort="high"', "-c", 'model_provider="openai"',
)  # fmt: skip


def mind_flags(command_made):
    return command_made.argv[2 : command_made.argv.index("-a")]


def test_nothing_is_passed_when_a_row_carries_model_and_effort():
    command_made = made(**MIND, stated=ROW)
    assert mind_flags(command_made) == ()
    assert command_made.settings["model"].decision == "restored"


@pytest.mark.parametrize(
    "stated",
    [
        (),
        (Stated(DATABASE, {"model": "gpt-5.2-codex"}),),
        (Stated(DATABASE, {"effort": "high"}),),
        (Stated(DATABASE, {"model": "", "effort": "high"}),),
        (Stated("rollout", {"model": "gpt-5.2-codex", "effort": "high"}),),
    ],
)
def test_all_three_are_passed_when_no_row_carries_both(stated):
    assert mind_flags(made(**MIND, stated=stated)) == ALL_THREE


def test_all_three_are_passed_when_the_recorded_model_is_to_be_kept():
    assert mind_flags(made(**MIND, stated=ROW, choices=Choices(keep_model=True))) == ALL_THREE


@pytest.mark.parametrize("stated", [(), ROW])
def test_a_chosen_model_takes_the_recorded_effort_and_provider_along(stated):
    flags = mind_flags(made(**MIND, stated=stated, choices=Choices(model="gpt-6")))
    assert flags == ("-m", "gpt-6", *ALL_THREE[2:])


@pytest.mark.parametrize("stated", [(), ROW])
def test_a_chosen_effort_takes_the_recorded_model_and_provider_along(stated):
    flags = mind_flags(made(**MIND, stated=stated, choices=Choices(effort="low")))
    assert flags == (*ALL_THREE[:2], "-c", 'model_reasoning_effort="low"', *ALL_THREE[4:])


def test_what_is_not_recorded_is_not_passed():
    assert mind_flags(made(model="gpt-5.2-codex")) == ("-m", "gpt-5.2-codex")


def test_a_quote_in_a_provider_cannot_leave_its_toml_string():
    flags = mind_flags(made(model_provider='x"\\y'))
    assert flags == ("-c", 'model_provider="x\\"\\\\y"')


@pytest.mark.parametrize("name", ["--yolo", "-x", "a b", "a\nb", "é"])
def test_a_recorded_model_that_is_no_name_is_withheld(name):
    command_made = made(model=name)
    assert command_made.settings["model"].decision == "withheld"
    assert mind_flags(command_made) == ()


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_a_fork_is_a_verb_of_its_own():
    assert made(choices=Choices(fork=True)).argv == ("codex", "fork", "-a", "on-request", "-s", "read-only", ID)


@pytest.mark.parametrize("interactive", [True, False])
def test_threads_of_codex_exec_are_resumed_the_same_way(interactive):
    assert made(interactive=interactive).argv[:2] == ("codex", "resume")


def test_the_id_is_the_last_word_whatever_is_passed():
    choices = Choices(model="m", effort="e", keep_model=True, allow_recorded_approvals=True)
    assert made(**MIND, approval="never", sandbox="danger-full-access", choices=choices).argv[-1] == ID


@pytest.mark.parametrize(("home", "value"), [("/home/alex/.codex", None), ("/srv/codex", "/srv/codex")])
def test_the_home_goes_along_by_its_variable_unless_it_is_the_default(home, value):
    session = Session(app="codex", id=ID, home=home)
    assert command(session, Plan("/code", user_home="/home/alex")).environment == {"CODEX_HOME": value}

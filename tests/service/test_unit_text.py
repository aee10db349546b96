"""The text of the unit and of the agent: complete, safe against odd paths, and the same as the files for installing
by hand.
"""

from __future__ import annotations

import os
import plistlib
import re

import pytest

from sessiond.errors import ConfigurationError
from sessiond.service import launchd, unit
from sessiond.service.job import Job, find_program, job

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
JOB = Job("/opt/tools/bin/sessiond", "/data/state/sessiond", (("CODEX_HOME", "/data/codex"),))


def text_of(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


def lines_of(job, *, sandbox=True):
    return unit.plain(job, sandbox=sandbox).splitlines()


@pytest.mark.parametrize(
    "line",
    [
        "Type=notify",
        "ExecStart=/opt/tools/bin/sessiond",
        "Environment=CODEX_HOME=/data/codex",
        "WatchdogSec=180",
        "Restart=on-failure",
        "RestartPreventExitStatus=4 8 11",
        "Nice=10",
        "IOSchedulingPriority=7",
        "MemoryMax=512M",
        "NoNewPrivileges=yes",
        "RestrictAddressFamilies=AF_UNIX",
        "SystemCallFilter=@system-service",
        "PrivateUsers=yes",
        "ProtectSystem=strict",
        "ProtectHome=read-only",
        "ReadWritePaths=/data/state/sessiond",
        "PrivateNetwork=yes",
        "WantedBy=default.target",
    ],
)
def test_the_unit_says(line):
    assert line in lines_of(JOB)


def test_the_unit_leaves_the_state_folder_to_mkdir_because_state_directory_would_move_it():
    assert not [line for line in lines_of(JOB) if line.startswith("StateDirectory")]


@pytest.mark.parametrize(
    "option",
    ["PrivateUsers", "ProtectSystem", "ProtectHome", "ReadWritePaths", "ReadOnlyPaths", "PrivateNetwork",
     "PrivateDevices", "ProtectProc", "CapabilityBoundingSet", "ExecStartPre"],
)  # fmt: skip
def test_without_user_namespaces_the_unit_has_no(option):
    assert not [line for line in lines_of(JOB, sandbox=False) if line.startswith(f"{option}=")]


def test_without_user_namespaces_the_limits_that_need_none_stay():
    assert {"NoNewPrivileges=yes", "RestrictAddressFamilies=AF_UNIX", "WatchdogSec=180", "MemoryMax=512M"} <= set(
        lines_of(JOB, sandbox=False)
    )


def test_an_odd_path_is_quoted_and_its_specifiers_kept():
    odd = Job("/a b/50%/$HOME/sessiond", "/s $x", (("CODEX_HOME", '/c "d%"\\'),))
    assert {
        'ExecStart="/a b/50%%/$HOME/sessiond"',
        'ReadWritePaths="/s $x"',
        'ExecStartPre=+mkdir -p -m 0700 "/s $$x"',
        'Environment="CODEX_HOME=/c \\"d%%\\"\\\\"',
    } <= set(lines_of(odd))


@pytest.mark.parametrize("path", ["/it's/sessiond", '/"/sessiond', "/a\\b/sessiond"])
def test_a_program_that_systemd_would_refuse_is_refused_with_the_reason(path):
    with pytest.raises(ConfigurationError, match="quotes or a backslash"):
        unit.plain(Job(path, "/s"))


def test_the_unit_for_installing_by_hand_is_what_the_code_makes():
    by_hand = text_of("systemd", "sessiond.service")
    assert by_hand[by_hand.index("[Unit]") :] == unit.by_hand()


def test_the_state_folder_is_read_back_from_the_unit():
    odd = Job("/opt/sessiond", "/a b% \u2028c")
    assert unit.noted_state(unit.noted(odd)) == odd.state


def test_a_unit_installed_by_hand_names_no_state_folder():
    assert unit.noted_state(text_of("systemd", "sessiond.service")) is None


def test_what_stands_above_the_unit_by_hand_is_comment_only():
    head = text_of("systemd", "sessiond.service").split("[Unit]")[0]
    assert all(line.startswith("#") for line in head.splitlines())


def test_the_unit_by_hand_is_the_usual_installation_s():
    home = Job("/home/u/.local/bin/sessiond", "/home/u/.local/state/sessiond")
    assert unit.by_hand().replace("%h", "/home/u") == unit.plain(home)


def test_the_agent_for_installing_by_hand_is_what_the_code_makes():
    by_hand = text_of("launchd", "io.sessiond.plist")
    assert re.sub(r"<!--.*?-->\n", "", by_hand, flags=re.DOTALL) == launchd.plist(launchd.agent_by_hand())


# launchd.plist(5), macOS 14: the keys that we may use, with their types.
ALLOWED = {
    "Label": str,
    "ProgramArguments": list,
    "EnvironmentVariables": dict,
    "RunAtLoad": bool,
    "KeepAlive": dict,
    "ThrottleInterval": int,
    "ExitTimeOut": int,
    "ProcessType": str,
    "LowPriorityIO": bool,
    "Nice": int,
    "Umask": int,
    "HardResourceLimits": dict,
    "StandardOutPath": str,
    "StandardErrorPath": str,
}


@pytest.mark.parametrize("text", [launchd.plist(launchd.agent(JOB)), text_of("launchd", "io.sessiond.plist")])
def test_the_agent_has_only_keys_and_types_that_launchd_knows(text):
    entries = plistlib.loads(text.encode())
    assert {key: type(value) for key, value in entries.items()} == {key: ALLOWED[key] for key in entries}


def test_the_agent_says_how_to_run():
    state = "/data/state/sessiond"
    assert plistlib.loads(launchd.plist(launchd.agent(JOB)).encode()) == {
        "Label": "io.sessiond",
        "ProgramArguments": ["/opt/tools/bin/sessiond"],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 60,
        "ExitTimeOut": 10,
        "ProcessType": "Background",
        "LowPriorityIO": True,
        "Nice": 10,
        "Umask": 0o077,
        "HardResourceLimits": {"Core": 0},
        "StandardOutPath": f"{state}/launchd.log",
        "StandardErrorPath": f"{state}/launchd.log",
        "EnvironmentVariables": {"CODEX_HOME": "/data/codex"},
    }


def test_an_odd_path_survives_in_the_agent():
    odd = Job("/a <b>/&/sessiond", "/s")
    assert plistlib.loads(launchd.plist(launchd.agent(odd)).encode())["ProgramArguments"] == ["/a <b>/&/sessiond"]


def test_the_variables_that_choose_homes_are_captured(home):
    env = {
        "HOME": str(home), "PATH": "/bin", "EDITOR": "vi", "CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x",
        "CODEX_SQLITE_HOME": "/q", "SESSIOND_HOME": "/s", "XDG_CONFIG_HOME": "/xc", "XDG_STATE_HOME": "/xs",
    }  # fmt: skip
    assert dict(job(env, "/bin/sessiond").environment) == {
        "CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "CODEX_SQLITE_HOME": "/q", "SESSIOND_HOME": "/s",
        "XDG_CONFIG_HOME": "/xc", "XDG_STATE_HOME": "/xs",
    }  # fmt: skip


def test_a_relative_home_is_captured_as_the_folder_it_means_now(home, monkeypatch):
    monkeypatch.chdir(home)
    made = job({"HOME": str(home), "CODEX_HOME": "codex"}, "/bin/sessiond")
    assert made.environment == (("CODEX_HOME", os.path.join(os.getcwd(), "codex")),)


def test_empty_and_relative_xdg_values_mean_nothing_and_are_left_out(home):
    made = job({"HOME": str(home), "CODEX_HOME": " ", "XDG_STATE_HOME": "state"}, "/bin/sessiond")
    assert made.environment == ()


@pytest.mark.parametrize("value", ["/a\nExecStart=/bin/evil", "/a\x1b[2J", "/a\udcff"])
def test_a_value_that_a_unit_cannot_hold_is_refused(home, value):
    with pytest.raises(ConfigurationError, match="CODEX_HOME holds a character"):
        job({"HOME": str(home), "CODEX_HOME": value}, "/bin/sessiond")


def programs(tmp_path, *folders):
    for folder in folders:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "sessiond").write_text("")
        (tmp_path / folder / "sessiond").chmod(0o755)


def test_the_program_beside_the_client_is_taken(tmp_path):
    programs(tmp_path, "client", "python", "path")
    found = find_program(f"{tmp_path}/client/sessions", f"{tmp_path}/python/python3", f"{tmp_path}/path")
    assert found == f"{tmp_path}/client/sessiond"


def test_a_link_to_the_program_stays_a_link_because_it_outlives_upgrades(tmp_path):
    programs(tmp_path, "venv-1.0")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sessiond").symlink_to(tmp_path / "venv-1.0" / "sessiond")
    found = find_program(f"{tmp_path}/bin/sessions", f"{tmp_path}/venv-1.0/python3", None)
    assert found == f"{tmp_path}/bin/sessiond"


def test_without_a_program_beside_the_client_the_interpreter_s_folder_is_tried(tmp_path):
    programs(tmp_path, "python", "path")
    found = find_program(f"{tmp_path}/client/sessions", f"{tmp_path}/python/python3", f"{tmp_path}/path")
    assert found == f"{tmp_path}/python/sessiond"


def test_else_the_program_on_the_path_is_taken(tmp_path):
    programs(tmp_path, "path")
    found = find_program(f"{tmp_path}/client/sessions", f"{tmp_path}/python/python3", f"{tmp_path}/path")
    assert found == f"{tmp_path}/path/sessiond"

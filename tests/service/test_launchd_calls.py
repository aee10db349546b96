"""What `launchctl` is called with, recorded by a stand-in on PATH that remembers whether the agent is loaded."""

from __future__ import annotations

import os
import plistlib
import sys

import pytest
from click.testing import CliRunner

from sessiond.errors import DegradedError, RefusedError
from sessiond.service.job import Job
from sessiond.service.launchd import Launchd
from sessions_cli.commands.service import command

STAND_IN = """\
#!/bin/sh
echo "$*" >>"$HOME/calls"
loaded=$HOME/loaded
case "$1 $2" in
"print gui/"*/io.sessiond) [ -e "$loaded" ] && printf 'io.sessiond = {\\n\\tstate = running\\n\\n\\tpid = 7\\n}\\n' ;;
"print "*) [ ! -e "$HOME/no-screen" ] ;;
"bootstrap "*) [ ! -e "$HOME/refuses" ] || { echo "Bootstrap failed: 5: Input/output error" >&2; exit 5; }
    : >"$loaded" ;;
"bootout "*) rm "$loaded" ;;
esac
"""
DOMAIN = f"gui/{os.getuid()}"
TARGET = f"{DOMAIN}/io.sessiond"


class Mac:
    """A home of a Mac user with the stand-in on PATH."""

    def __init__(self, home):
        self.home = str(home)
        programs = home / "bin"
        programs.mkdir()
        (programs / "launchctl").write_text(STAND_IN)
        (programs / "launchctl").chmod(0o755)
        self.env = {"HOME": self.home, "PATH": f"{programs}:/usr/bin:/bin"}
        self.agent = Launchd(self.env, "/opt/bin/sessiond")
        self.state = f"{self.home}/Library/Application Support/sessiond"
        self.job = Job("/opt/bin/sessiond", self.state)

    def calls(self):
        """What launchctl was called with since the last time."""
        file = os.path.join(self.home, "calls")
        if not os.path.exists(file):
            return []
        with open(file) as lines:
            calls = lines.read().splitlines()
        os.unlink(file)
        return calls


@pytest.fixture
def mac(home):
    return Mac(home)


@pytest.fixture
def installed(mac):
    mac.agent.install(mac.job)
    mac.calls()
    return mac


def test_install_enables_and_bootstraps_the_agent(mac):
    mac.agent.install(mac.job)
    assert mac.calls() == [
        f"print {DOMAIN}",
        f"print {TARGET}",
        f"enable {TARGET}",
        f"bootstrap {DOMAIN} {mac.agent.file}",
    ]


def test_install_writes_the_agent_where_launchd_looks_at_login(mac):
    mac.agent.install(mac.job)
    with open(f"{mac.home}/Library/LaunchAgents/io.sessiond.plist", "rb") as file:
        assert plistlib.load(file)["ProgramArguments"] == ["/opt/bin/sessiond"]


def test_install_makes_the_state_folder_that_the_log_goes_to(mac):
    mac.agent.install(mac.job)
    assert os.stat(mac.state).st_mode & 0o777 == 0o700


def test_installing_the_same_again_only_makes_sure_that_it_runs(installed):
    installed.agent.install(installed.job)
    assert installed.calls() == [f"print {DOMAIN}", f"print {TARGET}", f"kickstart {TARGET}"]


def test_an_upgrade_takes_the_old_agent_out_before_it_loads_the_new_one(installed):
    installed.agent.install(Job("/opt/bin/sessiond", installed.state, (("CODEX_HOME", "/x"),)))
    assert installed.calls() == [
        f"print {DOMAIN}",
        f"print {TARGET}",
        f"bootout {TARGET}",
        f"print {TARGET}",
        f"enable {TARGET}",
        f"bootstrap {DOMAIN} {installed.agent.file}",
    ]


def test_remove_takes_the_agent_out_and_leaves_no_file(installed):
    assert installed.agent.remove(purge=False) == [f"removed {installed.agent.file}"]
    assert installed.calls() == [f"print {TARGET}", f"bootout {TARGET}", f"print {TARGET}"]
    assert not os.path.exists(installed.agent.file)


def test_removing_what_is_not_installed_is_no_error(mac):
    assert mac.agent.remove(purge=False) == ["the service is not installed"]


def test_stop_asks_for_a_clean_end_and_leaves_the_agent_loaded(installed):
    installed.agent.stop()
    assert installed.calls() == [f"print {DOMAIN}", f"print {TARGET}", f"kill SIGTERM {TARGET}"]


def test_start_kicks_a_loaded_agent(installed):
    installed.agent.start()
    assert installed.calls() == [f"print {DOMAIN}", f"print {TARGET}", f"kickstart {TARGET}"]


def test_start_loads_an_agent_that_was_taken_out(installed):
    os.unlink(f"{installed.home}/loaded")
    installed.agent.start()
    assert installed.calls() == [
        f"print {DOMAIN}",
        f"print {TARGET}",
        f"bootstrap {DOMAIN} {installed.agent.file}",
        f"kickstart {TARGET}",
    ]


def test_restart_kills_and_starts(installed):
    installed.agent.restart()
    assert installed.calls() == [f"print {DOMAIN}", f"print {TARGET}", f"kickstart -k {TARGET}"]


def test_state_is_what_launchd_prints(installed):
    state = installed.agent.state()
    assert (state.installed, state.running, state.detail) == (True, True, "running")


def test_state_of_an_agent_that_is_not_loaded(mac):
    state = mac.agent.state()
    assert (state.installed, state.running, state.detail) == (False, False, "not loaded")


def test_the_log_is_shown_by_tail(mac):
    logs = [f"{mac.state}/launchd.log", f"{mac.state}/sessiond.log"]
    os.makedirs(mac.state)
    for log in logs:
        with open(log, "w"):
            pass
    assert mac.agent.log_command(mac.state, 20, follow=True) == ["tail", "-F", "-n", "20", *logs]


def test_the_state_folder_is_read_back_from_the_agent(installed):
    assert installed.agent.installed_state() == installed.state


def test_without_a_login_at_the_screen_install_says_how_to_do_without(mac):
    with open(f"{mac.home}/no-screen", "w"):
        pass
    with pytest.raises(RefusedError, match=r"not logged in at the screen(?s:.*)/opt/bin/sessiond --once --gaps"):
        mac.agent.install(mac.job)
    assert not os.path.exists(mac.agent.file)


def test_a_failing_launchctl_is_an_error_with_its_words(mac):
    with open(f"{mac.home}/refuses", "w"):
        pass
    with pytest.raises(DegradedError, match="Bootstrap failed: 5: Input/output error"):
        mac.agent.install(mac.job)


def test_without_an_installed_agent_the_verbs_name_install(mac):
    for act in (mac.agent.start, mac.agent.stop, mac.agent.restart):
        with pytest.raises(RefusedError, match="sessions service install"):
            act()


def test_the_command_on_a_mac_prints_the_agent(mac, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(sys, "argv", [f"{mac.home}/bin/sessions"])
    with open(f"{mac.home}/bin/sessiond", "w"):
        os.chmod(f"{mac.home}/bin/sessiond", 0o755)
    done = CliRunner().invoke(command, ["print"], catch_exceptions=False)
    entries = plistlib.loads(done.output.encode())
    assert (entries["ProgramArguments"], entries["StandardErrorPath"]) == (
        [f"{mac.home}/bin/sessiond"], f"{mac.state}/launchd.log",
    )  # fmt: skip
    assert mac.calls() == []

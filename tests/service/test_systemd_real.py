"""The service under a real systemd user manager, as an ordinary user, from a wheel."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.service.conftest import Machine
from tests.service.usersession import HOME, RUNTIME

UNIT_FILE = f"{HOME}/.config/systemd/user/sessiond.service"
DROP_IN = f"{UNIT_FILE}.d/test.conf"
CONFIG = f"{HOME}/.config/sessiond/config.toml"
STATE = f"{HOME}/.local/state/sessiond"


@pytest.fixture
def service(machine):
    """The service, installed and running, with three sessions on disk; what a test changes is put back."""
    look = f"systemctl --user is-active --quiet sessiond.service && cat {UNIT_FILE}"
    if machine.run("sh", "-c", look).out != getattr(machine, "installed", None):
        done = machine.sessions("service", "install")
        assert done.code == 0, done
        machine.until("three sessions in the index", lambda: len(machine.listed()) >= 3, 10)
        machine.installed = machine.run("cat", UNIT_FILE).out
    yield machine
    if machine.run("rm", DROP_IN, CONFIG, env={"LC_ALL": "C"}).err.count("No such file") < 2:
        machine.systemctl("daemon-reload")
        machine.systemctl("stop", "sessiond.service")


def test_after_install_it_is_active_and_enabled(service):
    assert service.systemctl("is-active", "sessiond.service").out == "active\n"
    assert service.systemctl("is-enabled", "sessiond.service").out == "enabled\n"


def test_install_says_what_it_wrote_and_how_it_goes(machine):
    machine.sessions("service", "remove")
    done = machine.sessions("service", "install")
    assert (done.code, done.err) == (0, "")
    wrote, running, index = done.out.splitlines()  # and no word of a sandbox that is not in force
    assert (wrote, index) == (f"wrote {UNIT_FILE}", f"index: {STATE}")
    assert running.startswith("running, and started at every login: ")


def test_its_status_counts_the_sessions(service):
    service.until("a count as status", lambda: re.fullmatch(r"\d+ sessions", service.show("StatusText")), 10)


def test_the_program_that_runs_is_the_installed_one(service):
    assert f"ExecStart={service.programs}/sessiond\n" in service.run("cat", UNIT_FILE).out


def test_an_append_becomes_visible(service):
    path, session_id = service.add_session(7, "water the garden")
    service.until("the new session", lambda: service.listed("garden"), 5)
    title = {"type": "custom-title", "customTitle": "irrigation", "sessionId": session_id}
    service.write(path, json.dumps(title) + "\n", append=True)
    service.until("the new title", lambda: service.listed("irrigation"), 5)


def test_a_name_that_only_a_live_codex_database_knows_becomes_visible(service):
    """Its private copy has to find a place inside the sandbox, where no temporary folder can be written."""
    script = f"""
import os, sqlite3, time
os.makedirs("{HOME}/.codex", exist_ok=True)
database = sqlite3.connect("{HOME}/.codex/state_5.sqlite", isolation_level=None)
database.execute("PRAGMA journal_mode = WAL")
database.execute("CREATE TABLE threads (id TEXT PRIMARY KEY, cwd TEXT, title TEXT, source TEXT, updated_at_ms INTEGER)")
row = ("019a2f1c-7d0e-7b31-9c4e-5a1f0e2d8b63", "{HOME}/code", "tame the hydra", "cli", time.time_ns() // 1000000)
database.execute("INSERT INTO threads VALUES (?, ?, ?, ?, ?)", row)
time.sleep(5)
"""
    service.run("sh", "-c", 'exec "$1" -c "$2" >/dev/null 2>&1 &', "sh", f"{service.programs}/python", script)
    service.until("the thread's title", lambda: service.listed("--all", "hydra"), 4)


def test_after_kill_9_it_is_back_with_nothing_lost(service):
    before, killed = service.listed(), service.main_pid()
    service.run("kill", "-9", str(killed))
    service.until("another process", lambda: service.main_pid() not in (0, killed), 10)
    service.until("the unit to be active", lambda: service.show("ActiveState") == "active", 10)
    assert service.listed() == before
    service.add_session(8, "feed the geese")
    service.until("what came after", lambda: service.listed("geese"), 5)


def test_a_working_loop_that_stands_still_is_killed_and_restarted(service):
    service.write(DROP_IN, "[Service]\nWatchdogSec=500ms\nRestartSec=500ms\n")
    service.systemctl("daemon-reload")
    service.systemctl("restart", "sessiond.service")
    stopped = service.main_pid()
    service.run("kill", "-STOP", str(stopped))
    service.until("the watchdog", lambda: service.show("Result") == "watchdog", 10)
    service.until("another process", lambda: service.main_pid() not in (0, stopped), 10)


def test_start_with_a_bad_configuration_says_where_to_look(service):
    service.write(CONFIG, "rescan_s = 'often'\n")
    done = service.sessions("service", "restart")
    assert done.code == 9
    assert "configuration" in done.err
    assert "sessiond --once" in done.err


def test_install_beside_a_daemon_in_the_foreground_says_so(service):
    service.sessions("service", "remove")
    service.run("sh", "-c", f"{service.programs}/sessiond >/dev/null 2>&1 & echo $! >{HOME}/foreground")
    service.until("the foreground's lock", lambda: service.run("test", "-s", f"{STATE}/daemon.lock").code == 0, 5)
    try:
        done = service.sessions("service", "install")
        assert done.code == 9
        assert "another sessiond runs over the same index" in done.err
    finally:
        service.run("sh", "-c", f"kill $(cat {HOME}/foreground)")


def test_a_bad_configuration_ends_it_for_good(service):
    service.write(CONFIG, "rescan_s = 'often'\n")
    done = service.systemctl("restart", "sessiond.service")
    assert done.code != 0
    assert (service.show("ExecMainStatus"), service.show("SubState"), service.show("NRestarts")) == (
        "11",
        "failed",
        "0",
    )


def test_install_refuses_a_bad_configuration_and_leaves_the_running_service_alone(service):
    pid = service.main_pid()
    service.write(CONFIG, "rescan_s = 'often'\n")
    done = service.sessions("service", "install")
    assert done.code == 11
    assert CONFIG in done.err
    assert service.main_pid() == pid


@pytest.mark.parametrize("folder", [HOME, f"{HOME}/.claude/projects", "/tmp", "/var/tmp", "/dev/shm", RUNTIME])
def test_outside_the_state_folder_the_daemon_s_file_system_is_read_only(service, folder):
    inside = f"/proc/{service.main_pid()}/root{folder}/planted"
    done = service.run("touch", inside)
    service.run("rm", "-f", f"{folder}/planted")
    assert "Read-only file system" in done.err


def test_the_daemon_has_no_network_interface(service):
    lines = service.run("cat", f"/proc/{service.main_pid()}/net/dev").out.splitlines()
    assert [line.split(":")[0].strip() for line in lines[2:]] == ["lo"]


def test_the_daemon_can_gain_no_rights_and_has_none(service):
    status = service.run("cat", f"/proc/{service.main_pid()}/status").out
    fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert {name: fields[name] for name in ("NoNewPrivs", "Seccomp", "CapEff", "CapBnd")} == {
        "NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0" * 16, "CapBnd": "0" * 16,
    }  # fmt: skip


def test_the_daemon_stands_back(service):
    """nice 10 is field 19 of proc(5) stat; 0x4007 is class best-effort, priority 7, of ioprio_get(2)."""
    pid = service.main_pid()
    assert service.run("ps", "-o", "ni=", "-p", str(pid)).out.strip() == "10"
    assert service.run("ionice", "-p", str(pid)).out.strip() == "best-effort: prio 7"


def test_the_sandbox_has_room_for_the_helper_of_a_first_index(service):
    path, _ = service.add_session(9, "shear the llamas")
    copies = (
        "import sys, pathlib; path = pathlib.Path(sys.argv[1]); data = path.read_bytes() * 20\n"
        "for n in range(4000): path.with_name(f'00000000-0000-4000-9000-{n:012d}.jsonl').write_bytes(data)"
    )
    service.systemctl("stop", "sessiond.service")
    service.run("python3", "-c", copies, path)
    service.run("sh", "-c", f"rm {STATE}/index.db*")
    service.systemctl("start", "--no-block", "sessiond.service")

    def helpers():
        return service.run("pgrep", "-P", str(service.main_pid()), "-f", "sessiond.reading.helper").out

    service.until("the helper", helpers, 10)
    service.until("all of them", lambda: re.search(r"4,?0\d\d sessions", service.show("StatusText")), 30)
    assert not helpers()
    service.run("sh", "-c", f"rm {path.rpartition('/')[0]}/00000000-0000-4000-9*")


def test_a_client_that_refreshes_all_the_time_does_not_keep_it_from_starting(service):
    client = f"{service.programs}/sessions find sheep"
    loop = f'while [ -e "$1" ]; do {client} >/dev/null || echo failed; done >"$2" 2>&1 &'
    flag, log = f"{HOME}/go-on", f"{HOME}/clients.log"
    service.write(flag, "")
    service.run("sh", "-c", loop, "sh", flag, log)
    try:
        for _ in range(3):
            assert service.systemctl("stop", "sessiond.service").code == 0
            done = service.systemctl("start", "sessiond.service")
            assert done.code == 0, done
        assert service.show("NRestarts") == "0"
        assert service.run("cat", log).out == ""
    finally:
        service.run("rm", flag)


def test_a_client_that_is_just_looking_for_a_daemon_is_not_taken_for_one(service):
    service.systemctl("stop", "sessiond.service")
    service.run("sh", "-c", f"flock --shared {STATE}/daemon.lock sleep 1 &")
    done = service.systemctl("start", "sessiond.service")
    assert done.code == 0, done


def test_it_stops_within_two_seconds_and_cleanly(service):
    began = time.monotonic()
    assert service.systemctl("stop", "sessiond.service").code == 0
    assert time.monotonic() - began < 2
    assert (service.show("Result"), service.show("ExecMainStatus")) == ("success", "0")


def test_reload_reads_the_configuration_again_in_the_same_process(service):
    pid = service.main_pid()
    service.write(CONFIG, f'[homes]\nclaude-code = ["{HOME}/elsewhere"]\n')
    path, _ = service.add_session(9, "shear the llamas")
    service.run("rm", path)
    service.write(path.replace("/.claude/", "/elsewhere/"), service_record(9, "shear the llamas"))
    assert service.systemctl("reload", "sessiond.service").code == 0
    service.until("the home in the new configuration", lambda: service.listed("llamas"), 5)
    assert service.main_pid() == pid


def service_record(number, prompt):
    session_id = f"00000000-0000-4000-8000-{number:012d}"
    return json.dumps({
        "type": "user", "uuid": session_id, "isSidechain": False, "sessionId": session_id, "entrypoint": "cli",
        "timestamp": "2026-11-30T10:00:00.000Z", "cwd": f"{HOME}/code", "version": "2.1.0",
        "message": {"role": "user", "content": prompt},
    }) + "\n"  # fmt: skip


def test_installing_again_changes_nothing(service):
    pid, text = service.main_pid(), service.run("cat", UNIT_FILE).out
    done = service.sessions("service", "install")
    assert done.out.startswith("sessiond.service is installed and running")
    assert (service.main_pid(), service.run("cat", UNIT_FILE).out) == (pid, text)


def test_after_an_upgrade_install_rewrites_the_unit_and_restarts(service):
    pid, text = service.main_pid(), service.run("cat", UNIT_FILE).out
    service.write(UNIT_FILE, re.sub(r"of sessiond \S+,", "of sessiond 0.0.1,", text).replace("Nice=10", "Nice=11"))
    assert service.sessions("service", "install").code == 0
    assert service.run("cat", UNIT_FILE).out == text
    assert service.main_pid() not in (0, pid)


def test_variables_of_the_installing_shell_reach_the_daemon(service):
    other = f"{HOME}/other claude 50%"
    service.write(f"{other}/projects/-home-u-code/{0:08d}-0000-4000-8000-{10:012d}.jsonl", service_record(10, "tax"))
    done = service.sessions("service", "install", env={"CLAUDE_CONFIG_DIR": other})
    assert f"with CLAUDE_CONFIG_DIR={other}" in done.out.splitlines()
    service.until("a session of that home", lambda: service.listed("tax"), 5)


def test_a_home_that_is_mounted_while_the_service_runs_is_indexed(service):
    late = f"{HOME}/late"
    service.run("mkdir", late)
    assert service.sessions("service", "install", env={"CLAUDE_CONFIG_DIR": late}).code == 0
    service.mount(late)
    path = f"{late}/projects/-home-u-code/00000000-0000-4000-8000-{11:012d}.jsonl"
    service.write(path, service_record(11, "plug the disk in"))
    service.systemctl("reload", "sessiond.service")
    service.until("a session on the mounted disk", lambda: service.listed("plug"), 5)


def test_without_a_runtime_folder_in_the_environment_the_manager_is_found_where_it_always_is(service):
    program = f"{service.programs}/sessions"
    done = service.run("env", "-u", "XDG_RUNTIME_DIR", program, "service", "restart")
    assert done.code == 0, done


def test_an_index_at_an_odd_place_works_and_purges(service):
    odd = f"{HOME}/50% \"of\" 'my' $HOME\\ \u00e4"
    done = service.sessions("service", "install", env={"SESSIOND_HOME": odd})
    assert done.code == 0, done
    assert service.run("stat", "-c", "%a", odd).out == "700\n"
    service.until("an index there", lambda: service.run("test", "-s", f"{odd}/index.db").code == 0, 5)
    assert service.sessions("service", "remove", "--purge").code == 0
    assert odd not in service.files()


def test_a_program_at_an_odd_place_is_started(service):
    odd = f"{HOME}/50% of $HOME; \u00e4"
    service.run("mkdir", odd)
    for name in ("sessions", "sessiond"):
        service.run("ln", "-s", f"{service.programs}/{name}", f"{odd}/{name}")
    pid = service.main_pid()
    done = service.run(f"{odd}/sessions", "service", "install")
    assert done.code == 0, done
    assert f"path={odd}/sessiond ;" in service.systemctl("show", "--property", "ExecStart", "sessiond.service").out
    assert service.main_pid() not in (0, pid)
    service.run("rm", "-r", odd)


def test_a_unit_that_cannot_be_started_is_not_taken_for_running_because_its_predecessor_runs(service):
    service.write(DROP_IN, "[Service]\nExecStart=/nowhere\n")
    service.systemctl("daemon-reload")
    done = service.sessions("service", "restart")
    assert done.code == 9
    assert "the service does not run" in done.err


def test_a_shell_with_another_configuration_folder_than_the_manager_s_installs_where_the_manager_looks(service):
    other = {"XDG_CONFIG_HOME": f"{HOME}/settings"}
    service.write(f"{HOME}/settings/sessiond/config.toml", "gone_days = 7\n")
    done = service.sessions("service", "install", env=other)
    assert (done.code, done.out.splitlines()[0]) == (0, f"wrote {UNIT_FILE}")
    for env in (other, {}):
        assert service.sessions("service", "restart", env=env).code == 0
    service.run("rm", "-r", f"{HOME}/settings")


def test_it_waits_for_a_client_that_writes_for_longer_than_starting_may_take(service):
    service.write(DROP_IN, "[Service]\nTimeoutStartSec=2s\n")
    service.systemctl("daemon-reload")
    service.systemctl("stop", "sessiond.service")
    service.run("sh", "-c", f"flock {STATE}/write.lock sleep 3 &")
    done = service.systemctl("start", "sessiond.service")
    assert done.code == 0, done


def test_start_survives_a_state_folder_that_was_deleted(service):
    service.systemctl("stop", "sessiond.service")
    service.run("rm", "-rf", STATE)
    done = service.systemctl("start", "sessiond.service")
    assert done.code == 0, done
    service.until("a new index", service.listed, 5)


def test_a_state_folder_deleted_under_the_running_daemon_comes_back(service):
    service.write(DROP_IN, "[Service]\nRestartSec=100ms\n")
    service.systemctl("daemon-reload")
    pid = service.main_pid()
    service.run("rm", "-rf", STATE)
    service.systemctl("reload", "sessiond.service")
    service.until("another process", lambda: service.main_pid() not in (0, pid), 10)
    service.until("a new index", service.listed, 10)
    assert service.show("ActiveState") == "active"


def test_the_verbs_stop_start_and_restart_do_what_they_say(service):
    states = []
    for verb in ("stop", "start", "restart"):
        done = service.sessions("service", verb)
        assert done.code == 0, done
        states.append(service.show("ActiveState"))
    assert states == ["inactive", "active", "active"]


def test_logs_shows_how_the_daemon_started(service):
    assert "index in" in service.sessions("service", "logs").out


def test_print_prints_the_unit_that_is_installed(service):
    assert service.sessions("service", "print").out == service.run("cat", UNIT_FILE).out


def test_the_unit_has_no_flaw_that_systemd_finds(service):
    done = service.run("systemd-analyze", "--user", "verify", UNIT_FILE)
    assert (done.code, done.out, done.err) == (0, "", "")


def test_systemd_rates_the_unit_as_well_protected(service):
    """Below 2.0 of 10; docs/service.md quotes the table."""
    out = service.run("systemd-analyze", "--user", "security", "--no-pager", "sessiond.service").out
    assert float(re.search(r"Overall exposure level for sessiond\.service: ([0-9.]+)", out)[1]) < 2.0


def test_remove_leaves_nothing_but_the_index(machine):
    machine.sessions("service", "remove", "--purge")
    before = machine.files()
    assert machine.sessions("service", "install").code == 0
    done = machine.sessions("service", "remove")
    assert (done.code, done.out) == (0, f"removed {UNIT_FILE}\n")
    added = set(machine.files()) - set(before)
    assert {path for path in added if not path.startswith(f"{STATE}/")} <= {
        f"{HOME}/.local",
        f"{HOME}/.local/state",
        STATE,
    }
    assert {path.rsplit("/", 1)[1] for path in added if path.startswith(f"{STATE}/")} <= {
        "index.db", "index.db-sound", "index.db-wal", "index.db-shm", "daemon.lock", "write.lock",
    }  # fmt: skip
    assert machine.show("LoadState") == "not-found"


def test_purge_removes_the_index_too(service):
    service.write(DROP_IN, "[Service]\nNice=12\n")
    done = service.sessions("service", "remove", "--purge")
    assert done.code == 0, done
    left = {path for path in service.files() if "sessiond" in path}
    assert left <= {f"{HOME}/.config/sessiond"}, "its user's configuration and nothing else"


def test_without_purge_the_user_s_own_drop_ins_stay(service):
    service.write(DROP_IN, "[Service]\nNice=12\n")
    done = service.sessions("service", "remove")
    assert "left your own settings" in done.out
    assert DROP_IN in service.files()


def test_removing_what_is_not_installed_is_no_error(machine):
    machine.sessions("service", "remove", "--purge")
    done = machine.sessions("service", "remove")
    assert (done.code, done.out) == (0, "the service is not installed\n")


@pytest.mark.parametrize("verb", ["start", "stop", "restart"])
def test_without_an_installed_service_the_verbs_name_install(machine, verb):
    machine.sessions("service", "remove")
    done = machine.sessions("service", verb)
    assert done.code == 10
    assert "sessions service install" in done.err


def test_a_sandbox_that_systemd_silently_leaves_out_is_told(service):
    """Mount options without `PrivateUsers=` are what a user manager leaves out without a word."""
    service.sessions("service", "remove")
    service.write(
        DROP_IN, "[Service]\nPrivateUsers=no\nPrivateNetwork=no\nPrivateDevices=no\nCapabilityBoundingSet=~\n"
    )
    done = service.sessions("service", "install")
    assert done.code == 0, done
    assert "this system allows users no namespaces" in done.out


def test_where_user_namespaces_are_refused_it_runs_without_mount_options_and_says_so(installation):
    machine = Machine(installation, namespaces=False)
    try:
        machine.add_session(1, "mend the gate")
        done = machine.sessions("service", "install")
        assert done.code == 0, done
        assert "this system allows users no namespaces" in done.out
        assert "PrivateUsers" not in machine.run("cat", UNIT_FILE).out
        machine.until("the session in the index", lambda: machine.listed("gate"), 5)
        pid = machine.main_pid()
        again = machine.sessions("service", "install")
        assert (again.code, machine.main_pid()) == (0, pid)
    finally:
        machine.close()

"""Where no service manager answers, and where the command is run as the wrong user."""

from __future__ import annotations

import os

import pytest

from sessiond.errors import ConfigurationError, RefusedError
from sessiond.service import job as jobs
from sessiond.service.job import Job
from sessiond.service.systemd import Systemd


@pytest.fixture
def env(home):
    """A home, and a PATH with a `systemctl` that reaches no manager."""
    (home / "bin").mkdir()
    (home / "bin" / "systemctl").write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    (home / "bin" / "systemctl").chmod(0o755)
    return {"HOME": str(home), "PATH": f"{home}/bin:/bin", "XDG_RUNTIME_DIR": str(home)}


@pytest.fixture
def work(home):
    return Job("/opt/bin/sessiond", str(home / "state"))


def test_the_answer_names_the_foreground_and_a_cron_line(env, work):
    with pytest.raises(RefusedError) as refused:
        Systemd(env, "/opt/bin/sessiond").install(work)
    assert str(refused.value).splitlines() == [
        "no systemd of yours is running here (`systemctl --user` cannot reach one)",
        "sessiond works without one. Keep it running in the foreground:",
        "    /opt/bin/sessiond",
        "or let cron refresh the index, by this line in `crontab -e`:",
        "    */5 * * * * /opt/bin/sessiond --once --gaps",
    ]


def test_the_cron_line_quotes_an_odd_path(env):
    with pytest.raises(RefusedError, match=r"\* '/opt/a b/50\\% off/sessiond' --once --gaps"):
        Systemd(env, "/opt/a b/50% off/sessiond").state()


def test_a_system_without_systemd_is_told_so(env, work):
    env["PATH"] = "/nowhere"
    with pytest.raises(RefusedError, match="this system has no systemd"):
        Systemd(env, "/opt/bin/sessiond").install(work)


def test_nothing_is_written_when_no_manager_answers(env, work, home):
    before = sorted(os.walk(home))
    with pytest.raises(RefusedError):
        Systemd(env, "/opt/bin/sessiond").install(work)
    assert sorted(os.walk(home)) == before


@pytest.mark.parametrize("verb", ["start", "stop", "restart", "state"])
def test_every_verb_says_so(env, verb):
    with pytest.raises(RefusedError, match="systemctl --user"):
        getattr(Systemd(env, "/opt/bin/sessiond"), verb)()


def test_remove_cleans_up_even_without_a_manager(env):
    manager = Systemd(env, "/opt/bin/sessiond")
    jobs.write(manager.file, "[Unit]\n")
    assert manager.remove(purge=False) == [f"removed {manager.file}"]
    assert not os.path.exists(manager.file)


def test_without_a_log_yet_logs_says_so(tmp_path):
    with pytest.raises(RefusedError, match=f"no log in {tmp_path}: the service has not run yet"):
        jobs.tail([f"{tmp_path}/sessiond.log"], 10, follow=False)


def test_a_unit_that_is_a_link_is_somebody_else_s(home):
    target = home / "masked"
    target.symlink_to("/dev/null")
    with pytest.raises(RefusedError, match="is a link to /dev/null"):
        jobs.write(str(target), "text")
    assert os.readlink(target) == "/dev/null"


@pytest.mark.skipif(os.geteuid() != 0, reason="sudo is what root is under")
def test_under_sudo_install_asks_to_be_run_without(env, work):
    with pytest.raises(RefusedError, match="without sudo"):
        Systemd({**env, "SUDO_UID": "1000"}, "/opt/bin/sessiond").install(work)


def test_a_state_folder_that_others_can_write_is_refused_before_anything_is_written(home, work):
    (home / "bin").mkdir()
    (home / "bin" / "systemctl").write_text("#!/bin/sh\necho /etc/systemd/user\n")
    (home / "bin" / "systemctl").chmod(0o755)
    os.mkdir(work.state)
    os.chmod(work.state, 0o777)
    manager = Systemd({"HOME": str(home), "PATH": f"{home}/bin:/bin"}, "/opt/bin/sessiond")
    with pytest.raises(ConfigurationError, match="can be written by others"):
        manager.install(work)
    assert not os.path.exists(manager.file)

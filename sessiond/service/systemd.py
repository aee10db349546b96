"""The user's own systemd, reached through `systemctl --user`."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess

from sessiond import paths
from sessiond.errors import DegradedError, RefusedError
from sessiond.service import job as jobs
from sessiond.service import unit
from sessiond.service.job import Job, State
from sessiond.service.unit import UNIT
from sessiond.store.connection import prepare_folder

_PATIENCE_S = 330.0
"""Longer than `TimeoutStartSec`, so that the manager and not we give up."""
_SANDBOX_REFUSED = {"217", "218", "225", "226"}
"""Exit codes of systemd.exec(5) for a sandbox that could not be set up: USER, CAPABILITIES, NETWORK, NAMESPACE."""

_CODES = {
    "4": "the index was made by a newer sessiond; upgrade this one",
    "8": "another sessiond runs over the same index; end that one, then: sessions service start",
    "11": "its configuration or its state folder cannot be used; `sessiond --once` says why",
}
"""What the exit codes mean after which the unit is not restarted."""


class Systemd:
    def __init__(self, env: paths.Environment, program: str) -> None:
        self._env = dict(env)
        self._program = program
        runtime = f"/run/user/{os.geteuid()}"
        if not self._env.get("XDG_RUNTIME_DIR") and os.path.isdir(runtime):
            self._env["XDG_RUNTIME_DIR"] = runtime
        self._configured = os.path.join(os.path.dirname(os.path.dirname(paths.config_file(env))), "systemd", "user")
        self._default = os.path.join(paths.user_home(env), ".config", "systemd", "user")

    @property
    def file(self) -> str:
        for folder in (self._configured, self._default):
            if os.path.lexists(os.path.join(folder, UNIT)):
                return os.path.join(folder, UNIT)
        return os.path.join(self._configured, UNIT)

    def text(self, job: Job) -> str:
        return unit.noted(job)

    def installed_state(self) -> str | None:
        return unit.noted_state(jobs.current_text(self.file) or "")

    def install(self, job: Job) -> list[str]:
        jobs.refuse_sudo(self._env)
        searched = self._require()
        prepare_folder(job.state)
        file = self.file
        if os.path.dirname(file) not in searched and self._default in searched:
            file = os.path.join(self._default, UNIT)
        before = jobs.current_text(file)
        if before in (unit.noted(job), unit.noted(job, sandbox=False)) and self.state().running:
            self._control("enable", UNIT)
            return [f"{UNIT} is installed and running: {self._status()}"]
        said = self._put(file, unit.noted(job))
        code = self._launch()
        if code in _SANDBOX_REFUSED:
            self._put(file, unit.noted(job, sandbox=False))
            code = self._launch()
        self._require_success(code)
        if not self._has_own_mounts():
            said.append(
                "this system allows users no namespaces: the service runs without a read-only view of your files and"
                " without its own network; the other limits hold"
            )
        return [*said, f"running, and started at every login: {self._status()}", f"index: {job.state}"]

    def _put(self, file: str, text: str) -> list[str]:
        jobs.write(file, text)
        self._control("daemon-reload")
        self._control("enable", UNIT)
        return [f"wrote {file}"]

    def _launch(self, verb: str = "restart") -> str | None:
        """Start the service; None when it runs, else the exit code of what was started in vain."""
        self._control("reset-failed", UNIT, check=False)
        if self._control(verb, UNIT, check=False).returncode == 0 and self.state().running:
            return None
        return self._property("ExecMainStatus")

    def _has_own_mounts(self) -> bool:
        """Whether the sandbox is in force, which a manager that cannot set it up may also leave out without a word."""
        try:
            return os.readlink(f"/proc/{self._property('MainPID')}/ns/mnt") != os.readlink("/proc/self/ns/mnt")
        except OSError:  # another user's process, so far away from us that we cannot tell
            return True

    def _require_success(self, code: str | None) -> None:
        if code is not None:
            why = _CODES.get(code, f"systemd could not start it (code {code})")
            raise DegradedError(f"the service does not run: {why}; see `sessions service logs`")

    def remove(self, *, purge: bool) -> list[str]:
        file = self.file
        said = []
        if shutil.which("systemctl", path=self._env.get("PATH")):
            self._control("disable", "--now", UNIT, check=False)
        if jobs.delete(file):
            said.append(f"removed {file}")
        wants = os.path.join(os.path.dirname(file), "default.target.wants")
        jobs.delete(os.path.join(wants, UNIT))
        drop_ins = file + ".d"
        if os.path.isdir(drop_ins):
            if purge:
                shutil.rmtree(drop_ins)
                said.append(f"removed {drop_ins}")
            else:
                said.append(f"left your own settings in {drop_ins}; --purge removes them too")
        for folder in (wants, os.path.dirname(file), os.path.dirname(os.path.dirname(file))):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        if shutil.which("systemctl", path=self._env.get("PATH")):
            self._control("daemon-reload", check=False)
            self._control("reset-failed", UNIT, check=False)
        return said or ["the service is not installed"]

    def start(self) -> list[str]:
        return self._act("start")

    def stop(self) -> list[str]:
        return self._act("stop")

    def restart(self) -> list[str]:
        return self._act("restart")

    def _act(self, verb: str) -> list[str]:
        self._require()
        if not os.path.lexists(self.file):
            raise RefusedError("the service is not installed; run: sessions service install")
        if verb == "stop":
            self._control(verb, UNIT)
            return [f"stopped {UNIT} until the next login"]
        self._require_success(self._launch(verb))
        return [f"{UNIT} is running: {self._status()}"]

    def log_command(self, state: str, lines: int, *, follow: bool) -> list[str]:
        if not os.path.exists("/run/systemd/journal/socket"):
            return jobs.tail([os.path.join(state, "sessiond.log")], lines, follow=follow)
        journal = ["journalctl", "--user-unit", UNIT, "--lines", str(lines)]
        return [*journal, "--follow"] if follow else [*journal, "--no-pager"]

    def state(self) -> State:
        self._require()
        active = self._property("ActiveState")
        return State(os.path.lexists(self.file), active == "active", active)

    def _status(self) -> str:
        return self._property("StatusText") or self._property("ActiveState")

    def _property(self, name: str) -> str:
        return self._control("show", "--property", name, "--value", UNIT).stdout.strip()

    def _require(self) -> list[str]:
        """The folders that the manager looks for units in; raises RefusedError when there is no manager."""
        if shutil.which("systemctl", path=self._env.get("PATH")):
            answer = self._control("show", "--property", "UnitPath", "--value", check=False)
            if answer.returncode == 0:
                return answer.stdout.split()
            why = "no systemd of yours is running here (`systemctl --user` cannot reach one)"
        else:
            why = "this system has no systemd"
        raise jobs.without_manager(self._program, why)

    def _control(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["systemctl", "--user", *arguments]
        return jobs.called(command, self._env, _PATIENCE_S, check=check)

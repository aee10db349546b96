"""The systemd user unit, and `systemctl --user`."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess

from sessiond import __version__, paths
from sessiond.errors import ConfigurationError, DegradedError, RefusedError
from sessiond.service import job as jobs
from sessiond.service.job import Job, State
from sessiond.store.connection import prepare_folder

UNIT = "sessiond.service"
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
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%/.,:=@_+-")
"""What needs no quotes in a unit file."""
_UNRUNNABLE = frozenset("\"'\\")

_HEAD = """\
[Unit]
Description=Index of Claude Code and Codex sessions
StartLimitIntervalSec=600
StartLimitBurst=10

[Service]
Type=notify
ExecStart={program}
ExecReload=+kill -HUP $MAINPID
{environment}
# Ready once the folders are watched and the index opens; the working loop itself feeds the watchdog.
TimeoutStartSec=300
TimeoutStopSec=10
WatchdogSec=180

# Another schema, already running, bad configuration: trying again does not help.
Restart=on-failure
RestartSec=2
RestartPreventExitStatus=4 8 11

# In the background: others first. The limits are far above what it needs.
Slice=background.slice
Nice=10
IOSchedulingClass=best-effort
IOSchedulingPriority=7
MemoryHigh=256M
MemoryMax=512M
TasksMax=64

# No core files: they would hold titles and prompts.
LimitCORE=0
UMask=0077
NoNewPrivileges=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
"""

_SANDBOX = """
# Everything is read-only but the state folder. In a user manager PrivateUsers is what puts this into effect. The
# folder is made outside the sandbox, which cannot be set up without it.
PrivateUsers=yes
ExecStartPre=+mkdir -p -m 0700 {state_argument}
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths={state}
ReadOnlyPaths=/dev/shm
PrivateNetwork=yes
PrivateDevices=yes
ProtectProc=invisible
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
CapabilityBoundingSet=
"""

_TAIL = """
[Install]
WantedBy=default.target
"""

_NOTE = """\
# Written by `sessions service install` of sessiond {version}, and written anew by the next one.
# Your own settings belong into a drop-in: systemctl --user edit {unit}
{more}{index}{state}
"""
_WITHOUT_SANDBOX = "# This system allows users no namespaces, so the options that need them are left out.\n"
_INDEX = "# Index in: "


def unit(job: Job, *, sandbox: bool = True) -> str:
    """The unit for `job`; without `sandbox` the options are left out that need user namespaces.

    Raises ConfigurationError for a program that systemd would refuse.
    """
    if _UNRUNNABLE.intersection(job.program):
        raise ConfigurationError(f"systemd runs no program with quotes or a backslash in its path: {job.program}")
    variables = "".join(f"Environment={_word(f'{name}={value}')}\n" for name, value in job.environment)
    return _fill(_word(job.program), _word(job.state), _argument(job.state), variables, sandbox=sandbox)


def unit_by_hand() -> str:
    """The unit for a usual installation by pipx or uv, in terms that hold for every user."""
    state = "%h/.local/state/sessiond"
    return _fill("%h/.local/bin/sessiond", state, state, "", sandbox=True)


def _fill(program: str, state: str, state_argument: str, environment: str, *, sandbox: bool) -> str:
    text = _HEAD.format(program=program, environment=environment)
    if sandbox:
        text += _SANDBOX.format(state=state, state_argument=state_argument)
    return text + _TAIL


def _word(text: str) -> str:
    """One word of a unit file: specifiers are kept from being filled in, and quotes put where needed."""
    text = text.replace("%", "%%")
    if _PLAIN.issuperset(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _argument(text: str) -> str:
    """One argument of a command, where `$` would start a variable."""
    return _word(text).replace("$", "$$")


class Systemd:
    """The user's own systemd, reached through `systemctl --user`."""

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
        return self._text(job, sandbox=True)

    def _text(self, job: Job, *, sandbox: bool) -> str:
        more = "" if sandbox else _WITHOUT_SANDBOX
        note = _NOTE.format(version=__version__, unit=UNIT, more=more, index=_INDEX, state=job.state)
        return note + unit(job, sandbox=sandbox)

    def installed_state(self) -> str | None:
        lines = (jobs.current_text(self.file) or "").split("\n")
        return next((line.removeprefix(_INDEX) for line in lines if line.startswith(_INDEX)), None)

    def install(self, job: Job) -> list[str]:
        jobs.refuse_sudo(self._env)
        searched = self._require()
        prepare_folder(job.state)
        file = self.file
        if os.path.dirname(file) not in searched and self._default in searched:
            file = os.path.join(self._default, UNIT)
        before = jobs.current_text(file)
        if before in (self._text(job, sandbox=True), self._text(job, sandbox=False)) and self.state().running:
            self._control("enable", UNIT)
            return [f"{UNIT} is installed and running: {self._status()}"]
        said = self._put(file, self._text(job, sandbox=True))
        code = self._launch()
        if code in _SANDBOX_REFUSED:
            self._put(file, self._text(job, sandbox=False))
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
        try:
            done = subprocess.run(
                command, env=self._env, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DegradedError(f"{' '.join(command)} failed: {error}") from error
        if check and done.returncode:
            why = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            raise DegradedError(f"{' '.join(command)} failed: {why}; see `sessions service logs`")
        return done

"""The launchd agent, and `launchctl`."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import time
from typing import Any

from sessiond import __version__, paths
from sessiond.errors import DegradedError, RefusedError
from sessiond.service import job as jobs
from sessiond.service.job import Job, State
from sessiond.store.connection import prepare_folder

LABEL = "io.sessiond"
_PATIENCE_S = 60.0
_UNLOAD_S = 15.0
"""Longer than `ExitTimeOut`, after which launchd kills."""

_NOTE = """\
<!--
Written by `sessions service install` of sessiond {version}, and written anew by the next one.
-->
"""


def agent(job: Job) -> dict[str, Any]:
    """The agent for `job`, keys as in launchd.plist(5)."""
    log = os.path.join(job.state, "launchd.log")
    entries: dict[str, Any] = {
        "Label": LABEL,
        "ProgramArguments": [job.program],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 60,
        "ExitTimeOut": 10,
        "ProcessType": "Background",
        "LowPriorityIO": True,
        "Nice": 10,
        "Umask": 0o077,
        "HardResourceLimits": {"Core": 0},
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    if job.environment:
        entries["EnvironmentVariables"] = dict(job.environment)
    return entries


def agent_by_hand() -> dict[str, Any]:
    """The agent for a usual installation by pipx or uv; launchd fills nothing in, so the home is a stand-in."""
    home = "/Users/you"
    return agent(Job(f"{home}/.local/bin/sessiond", f"{home}/Library/Application Support/sessiond"))


def plist(entries: dict[str, Any], note: str = "") -> str:
    """The property list as XML, with `note` below the document type."""
    text = plistlib.dumps(entries, sort_keys=False).decode()
    head, body = text.split("<plist", 1)
    return f"{head}{note}<plist{body}"


class Launchd:
    """The launchd domain of the user's graphical login, reached through `launchctl`."""

    def __init__(self, env: paths.Environment, program: str) -> None:
        self._env = dict(env)
        self._program = program
        self._folder = os.path.join(paths.user_home(env), "Library", "LaunchAgents")
        self._domain = f"gui/{os.getuid()}"
        self._target = f"{self._domain}/{LABEL}"

    @property
    def file(self) -> str:
        return os.path.join(self._folder, f"{LABEL}.plist")

    def text(self, job: Job) -> str:
        return plist(agent(job), _NOTE.format(version=__version__))

    def installed_state(self) -> str | None:
        try:
            log = plistlib.loads((jobs.current_text(self.file) or "").encode())["StandardErrorPath"]
        except (plistlib.InvalidFileException, ValueError, KeyError, TypeError):
            return None
        return os.path.dirname(log) if isinstance(log, str) else None

    def install(self, job: Job) -> list[str]:
        jobs.refuse_sudo(self._env)
        self._require()
        prepare_folder(job.state)
        text = self.text(job)
        loaded = self._loaded()
        if loaded and jobs.current_text(self.file) == text:
            self._launchctl("kickstart", self._target)
            return [f"{LABEL} is installed and running"]
        jobs.write(self.file, text)
        if loaded:
            self._unload()
        self._launchctl("enable", self._target)
        self._launchctl("bootstrap", self._domain, self.file)
        return [f"wrote {self.file}", "running, and started at every login", f"index: {job.state}"]

    def remove(self, *, purge: bool) -> list[str]:  # noqa: ARG002 - an agent has no settings beside its file
        if shutil.which("launchctl", path=self._env.get("PATH")) and self._loaded():
            self._unload()
        if jobs.delete(self.file):
            return [f"removed {self.file}"]
        return ["the service is not installed"]

    def start(self) -> list[str]:
        if not self._is_loaded_or_refuse():
            self._launchctl("bootstrap", self._domain, self.file)
        self._launchctl("kickstart", self._target)
        return [f"{LABEL} is running"]

    def stop(self) -> list[str]:
        if self._is_loaded_or_refuse():
            # A clean end is not a failure, so KeepAlive leaves it at that; without a process there is nothing to do.
            self._launchctl("kill", "SIGTERM", self._target, check=False)
        return [f"stopped {LABEL} until the next login"]

    def restart(self) -> list[str]:
        if not self._is_loaded_or_refuse():
            return self.start()
        self._launchctl("kickstart", "-k", self._target)
        return [f"{LABEL} is running"]

    def log_command(self, state: str, lines: int, *, follow: bool) -> list[str]:
        files = [os.path.join(state, name) for name in ("launchd.log", "sessiond.log")]
        return jobs.tail(files, lines, follow=follow)

    def state(self) -> State:
        self._require()
        answer = self._launchctl("print", self._target, check=False)
        words = [
            line.split(" = ", 1)[1].strip() for line in answer.stdout.splitlines() if line.startswith("\tstate = ")
        ]
        detail = "not loaded" if answer.returncode else next(iter(words), "unknown")
        return State(os.path.lexists(self.file), detail == "running", detail)

    def _is_loaded_or_refuse(self) -> bool:
        self._require()
        if not os.path.lexists(self.file):
            raise RefusedError("the service is not installed; run: sessions service install")
        return self._loaded()

    def _loaded(self) -> bool:
        return self._launchctl("print", self._target, check=False).returncode == 0

    def _unload(self) -> None:
        """Take the agent out and wait for its end: launchd refuses to load it anew before."""
        self._launchctl("bootout", self._target, check=False)
        deadline = time.monotonic() + _UNLOAD_S
        while self._loaded():
            if time.monotonic() >= deadline:
                raise DegradedError(f"launchd still holds {self._target} after {_UNLOAD_S:.0f} s; try again")
            time.sleep(0.2)

    def _require(self) -> None:
        if not shutil.which("launchctl", path=self._env.get("PATH")):
            raise jobs.without_manager(self._program, "this system has no launchctl")
        if self._launchctl("print", self._domain, check=False).returncode:
            raise jobs.without_manager(self._program, "you are not logged in at the screen, where launchd keeps agents")

    def _launchctl(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["launchctl", *arguments]
        return jobs.called(command, self._env, _PATIENCE_S, check=check)

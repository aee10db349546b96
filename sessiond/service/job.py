"""What a service manager is to run, and the two managers' common face."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from subprocess import CompletedProcess
from typing import Protocol

from sessiond import paths
from sessiond.apps import APPS
from sessiond.errors import ConfigurationError, DegradedError, RefusedError

CAPTURED = (
    *[variable for app in APPS for variable, _ in app.home_variables],
    *[variable for app in APPS for variable in app.part_variables],
    "SESSIOND_HOME",
    *paths.XDG_DEFAULTS,
)
"""The variables that choose homes, state folder and configuration. A service manager does not have the shell's."""


@dataclass(frozen=True, slots=True)
class Job:
    """The daemon as it is to be started."""

    program: str
    """Absolute path of the `sessiond` executable."""
    state: str
    """The state folder: the one place that the daemon writes to."""
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """How the service is doing, for `sessions status` and `doctor`."""

    installed: bool
    running: bool
    detail: str
    """The manager's own word for it: `active`, `failed`, `not loaded`."""


class Manager(Protocol):
    """What both managers can do. Whatever changes something returns lines that say what was done.

    All but `file`, `text`, `installed_state` and `log_command` raise RefusedError when no manager answers, and
    DegradedError when it says no; `remove` also cleans up where no manager is left.
    """

    @property
    def file(self) -> str:
        """Where the unit or the agent is written."""

    def text(self, job: Job) -> str: ...

    def installed_state(self) -> str | None:
        """The state folder that the service was installed for; None when it is not installed, or by hand."""

    def install(self, job: Job) -> list[str]:
        """Write the file, start the service now and at every login; does nothing where that is so already."""

    def remove(self, *, purge: bool) -> list[str]:
        """Stop the service and remove the file; with `purge` what its user added to it goes too."""

    def start(self) -> list[str]: ...

    def stop(self) -> list[str]: ...

    def restart(self) -> list[str]: ...

    def log_command(self, state: str, lines: int, *, follow: bool) -> list[str]:
        """The program, with arguments, that shows the last `lines` of the log; RefusedError when there is none."""

    def state(self) -> State: ...


def job(env: paths.Environment, program: str) -> Job:
    """The daemon with the environment of the one who installs it.

    Raises ConfigurationError for a value that cannot be written into a unit.
    """
    captured = tuple((name, value) for name in CAPTURED if (value := _value(name, env)))
    made = Job(program, paths.state_dir(env), captured)
    for what, text in [("the program", program), ("the state folder", made.state), *captured]:
        if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
            raise ConfigurationError(f"{what} holds a character that a service cannot be given: {text!r}; rename it")
    return made


def _value(name: str, env: paths.Environment) -> str:
    value = env.get(name, "")
    if name.startswith("XDG_"):
        return value if os.path.isabs(value) else ""
    return os.path.abspath(value.strip()) if value.strip() else ""


def find_program(client: str, interpreter: str, path: str | None) -> str:
    """The `sessiond` beside the client that was called, else beside its interpreter, else on `path`.

    Links are not followed: a link that an installer keeps up to date outlives the version it points to.
    """
    folders = [os.path.dirname(os.path.abspath(client)), os.path.dirname(os.path.abspath(interpreter))]
    for folder in folders:
        candidate = os.path.join(folder, "sessiond")
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    found = shutil.which("sessiond", path=path)
    if found is None:
        raise RefusedError(f"no sessiond program in {folders[0]}, {folders[1]} or PATH; install the package again")
    return os.path.abspath(found)


def without_manager(program: str, why: str) -> RefusedError:
    """The answer of a system without a service manager: how to do without."""
    quoted = shlex.quote(program)
    for_cron = quoted.replace("%", "\\%")  # where an unquoted % ends the line
    return RefusedError(
        f"{why}\n"
        "sessiond works without one. Keep it running in the foreground:\n"
        f"    {quoted}\n"
        "or let cron refresh the index, by this line in `crontab -e`:\n"
        f"    */5 * * * * {for_cron} --once --gaps"
    )


def tail(files: list[str], lines: int, *, follow: bool) -> list[str]:
    """The command that shows the ends of those files that exist; raises RefusedError when none does."""
    there = [file for file in files if os.path.exists(file)]
    if not there:
        raise RefusedError(f"no log in {os.path.dirname(files[0])}: the service has not run yet")
    return ["tail", *(["-F"] if follow else []), "-n", str(lines), *there]


def refuse_sudo(env: paths.Environment) -> None:
    """Raise RefusedError under sudo, where HOME and the service manager may belong to two different users."""
    if os.geteuid() == 0 and env.get("SUDO_UID", "0") != "0":
        raise RefusedError("this is your own service, not the system's; run the command without sudo")


def current_text(file: str) -> str | None:
    """The text that is installed; None when there is none or it cannot be read."""
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return None


def write(file: str, text: str) -> None:
    """Put `text` in place at once or not at all; raises RefusedError for a link, which somebody else keeps."""
    if os.path.islink(file):
        raise RefusedError(
            f"{file} is a link to {os.readlink(file)}, so it is not ours to write; remove the link first"
        )
    folder = os.path.dirname(file)
    try:
        os.makedirs(folder, exist_ok=True)
        descriptor, scratch = tempfile.mkstemp(prefix=".sessiond-", dir=folder)
        try:
            with open(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
            os.chmod(scratch, 0o644)
            os.replace(scratch, file)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(scratch)
            raise
    except OSError as error:
        raise DegradedError(f"cannot write {file}: {error.strerror}; mend that and install again") from error


def delete(file: str) -> bool:
    """Whether there was a file, which is gone now."""
    try:
        os.unlink(file)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise DegradedError(f"cannot remove {file}: {error.strerror}; remove it by hand") from error
    return True


def called(command: list[str], env: Mapping[str, str], patience_s: float, *, check: bool) -> CompletedProcess[str]:
    """What a manager's own command answers; raises DegradedError when it cannot be had, or says no and `check`s."""
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=patience_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DegradedError(f"{' '.join(command)} failed: {error}") from error
    if check and done.returncode:
        why = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise DegradedError(f"{' '.join(command)} failed: {why}; see `sessions service logs`")
    return done

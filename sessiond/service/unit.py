"""The text of the systemd user unit."""

from __future__ import annotations

from sessiond import __version__
from sessiond.errors import ConfigurationError
from sessiond.service.job import Job

UNIT = "sessiond.service"
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%/.,:=@_+-")
"""What needs no quotes in a unit file."""
_UNRUNNABLE = frozenset("\"'\\")

_HEAD = """\
[Unit]
Description=Index of the sessions of coding agents
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
ReadOnlyPaths=-/dev/shm
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


def plain(job: Job, *, sandbox: bool = True) -> str:
    """The unit for `job`; without `sandbox` the options are left out that need user namespaces.

    Raises ConfigurationError for a program that systemd would refuse.
    """
    if _UNRUNNABLE.intersection(job.program):
        raise ConfigurationError(f"systemd runs no program with quotes or a backslash in its path: {job.program}")
    variables = "".join(f"Environment={_word(f'{name}={value}')}\n" for name, value in job.environment)
    return _fill(_word(job.program), _word(job.state), _argument(job.state), variables, sandbox=sandbox)


def noted(job: Job, *, sandbox: bool = True) -> str:
    """The unit as `install` writes it, under a note that says where it came from and where its index is."""
    more = "" if sandbox else _WITHOUT_SANDBOX
    note = _NOTE.format(version=__version__, unit=UNIT, more=more, index=_INDEX, state=job.state)
    return note + plain(job, sandbox=sandbox)


def noted_state(text: str) -> str | None:
    """The state folder that the note of a unit names; None for one that was not written by `noted`."""
    lines = text.split("\n")
    return next((line.removeprefix(_INDEX) for line in lines if line.startswith(_INDEX)), None)


def by_hand() -> str:
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

"""The single checks of `sessions doctor`. Each looks at one thing, changes nothing, and yields what it finds."""

from __future__ import annotations

import glob
import os
import shlex
import shutil
import site
import stat
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from sessiond import __version__, apps, config, locks, paths
from sessiond.errors import NoIndexError, SessiondError
from sessiond.store import ability
from sessiond.store.reader import Reader
from sessions_cli import context, health

GOOD, NOTE, WRONG = "ok", "note", "wrong"
SLOW_START_MS = 15.0
"""What foreign `.pth` files may add to the start of the interpreter before it is worth a word."""
MANY = 5
"""So many single problems are listed."""

Environment = Mapping[str, str]


class Finding(NamedTuple):
    level: str
    """ok, note (works, could be better) or wrong."""
    text: str
    mend: str = ""
    """The command that mends it."""


def run_all(env: Environment) -> list[Finding]:
    """Every check in turn, each finding once; a check that cannot be carried out is a finding itself."""
    findings: list[Finding] = []
    for check in CHECKS:
        try:
            findings += check(env)
        except SessiondError as error:
            findings.append(Finding(WRONG, str(error)))
        except OSError as error:
            findings.append(Finding(WRONG, f"{error.filename} cannot be used: {error.strerror}"))
    return list(dict.fromkeys(findings))


def sqlite(_env: Environment) -> Iterator[Finding]:
    missing = ability.what_is_missing()
    if missing:
        yield Finding(
            WRONG, f"SQLite {ability.VERSION}: {missing}", "install with a newer Python: pipx install --python"
        )
    else:
        yield Finding(GOOD, f"Python {sys.version.split()[0]}, SQLite {ability.VERSION} with FTS5")


def configuration(env: Environment) -> Iterator[Finding]:
    config.load(env)
    file = paths.config_file(env)
    yield Finding(GOOD, f"configuration {file}" if os.path.exists(file) else "no configuration file; the defaults hold")


def state_folder(env: Environment) -> Iterator[Finding]:
    folder = paths.state_dir(env)
    try:
        status = os.stat(folder)
    except FileNotFoundError:
        yield Finding(WRONG, f"no state folder {folder} yet", "sessiond --once")
        return
    if status.st_uid != os.geteuid():
        yield Finding(WRONG, f"{folder} belongs to another user", "set SESSIOND_HOME to a folder of yours")
        return
    if stat.S_IMODE(status.st_mode) & 0o077:
        yield Finding(WRONG, f"{folder} is open to other users", f"chmod 700 {shlex.quote(folder)}")
    elif not os.access(folder, os.R_OK | os.X_OK):
        yield Finding(WRONG, f"{folder} cannot be read", f"chmod 700 {shlex.quote(folder)}")
        return
    else:
        yield Finding(GOOD, f"state folder {folder}")
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        mode = os.lstat(path).st_mode
        if name.startswith("index.db") and stat.S_ISREG(mode) and stat.S_IMODE(mode) & 0o077:
            yield Finding(WRONG, f"{path} can be read by other users", f"chmod 600 {shlex.quote(path)}")


def index(env: Environment) -> Iterator[Finding]:
    folder = paths.state_dir(env)
    try:
        reader = Reader(folder)
    except NoIndexError as error:
        yield Finding(WRONG, str(error).partition(";")[0], "sessiond --once")
        return
    with reader:
        if not reader.is_sound():
            yield Finding(WRONG, f"{reader.path} is damaged", "sessiond --once")
            return
        found = health.of(reader, daemon=context.daemon_runs(folder))
        yield Finding(GOOD, f"index of {found.sessions} sessions, {found.state or 'not begun'}")
        if found.note:
            yield Finding(NOTE, found.note)
        unreadable = {found.denied(path): f"chmod u+rx {shlex.quote(path)}" for path in found.unreadable}
        for fault in found.faults():
            scan = "sessions service restart" if found.daemon else "sessiond --once"
            yield Finding(WRONG, fault, unreadable.get(fault, scan))
        problems = reader.problems()
        for _app, path, problem in problems[:MANY]:
            shown = os.fsdecode(path) if isinstance(path, (str, bytes)) else "?"
            yield Finding(NOTE, f"{shown}: {problem}", f"sessions why {shlex.quote(shown)}")
        if len(problems) > MANY:
            yield Finding(NOTE, f"{len(problems) - MANY} more files could not be read as they should",
                          "sessions sql 'SELECT * FROM scan_problems'")  # fmt: skip


def lock_files(env: Environment) -> Iterator[Finding]:
    folder = paths.state_dir(env)
    if locks.is_held(paths.write_lock(folder)):
        yield Finding(NOTE, "somebody is bringing the index up to date right now")
    else:
        yield Finding(GOOD, "the write lock is free")


def daemon(env: Environment) -> Iterator[Finding]:
    folder = paths.state_dir(env)
    if not context.daemon_runs(folder):
        yield Finding(NOTE, "no daemon: each command brings the index up to date itself")
        return
    pid = locks.owner(paths.daemon_lock(folder))
    with Reader(folder) as reader:
        found = health.of(reader, daemon=True)
        version = found.details.get("version")
        known = {line.partition("\t")[2] for line in str(reader.meta().get("homes", "")).splitlines()}
    if version is not None and version != __version__:
        yield Finding(WRONG, f"the daemon is version {version}, this is {__version__}", "sessions service restart")
    else:
        yield Finding(GOOD, f"daemon running, pid {pid}")
    for app, home in paths.named_homes(env):
        if os.path.realpath(home) not in {os.path.realpath(k) for k in known}:
            add = f"add it to {app} below [homes] in {paths.config_file(env)}"
            yield Finding(WRONG, f"the daemon does not index {home}", f"{add}; sessions service restart")


def service(env: Environment) -> Iterator[Finding]:
    from sessiond.service import manager  # noqa: PLC0415 - imports what only services need

    try:
        state = manager(env).state()
    except SessiondError as error:
        yield Finding(NOTE, f"no background service: {str(error).splitlines()[0]}")
        return
    if not state.installed:
        yield Finding(NOTE, "the background service is not installed", "sessions service install")
    elif not state.running:
        yield Finding(WRONG, f"the background service is installed but {state.detail}", "sessions service start")
    else:
        yield Finding(GOOD, f"background service {state.detail}")


def homes(env: Environment) -> Iterator[Finding]:
    found = config.homes(config.load(env), env)
    there = 0
    for home in (home for app in apps.NAMES for home in found.of(app)):
        try:
            os.scandir(home).close()
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            yield Finding(WRONG, f"home {home} is no folder")
        except OSError as error:
            yield Finding(WRONG, f"{home} cannot be read: {error.strerror}", f"chmod u+rx {shlex.quote(home)}")
        else:
            there += 1
            yield Finding(GOOD, f"home {home}")
    if not there:
        yield Finding(
            NOTE, "no app that is known has a home here yet", f"name them below [homes] in {paths.config_file(env)}"
        )


def watch_limits(env: Environment) -> Iterator[Finding]:
    """The kernel counts one inotify watch a folder, of all programs of a user together."""
    try:
        with open("/proc/sys/fs/inotify/max_user_watches", encoding="ascii") as file:
            most = int(file.read())
    except (OSError, ValueError):
        return
    folder = paths.state_dir(env)
    if not context.daemon_runs(folder):
        return
    with Reader(folder) as reader:
        roots = health.of(reader, daemon=True).details.get("roots", [])
    present = sum(root["present"] for root in roots)
    if present > most // 2:
        yield Finding(WRONG, f"{present} folders to watch, and the kernel allows {most} watches",
                      f"sudo sysctl fs.inotify.max_user_watches={max(524_288, 4 * present)}")  # fmt: skip
    else:
        yield Finding(GOOD, f"{present} folders to watch, {most} watches allowed")


def shadowed(_env: Environment) -> Iterator[Finding]:
    """Other packages install a command named `sessions` too."""
    ours = os.path.join(sysconfig.get_path("scripts"), "sessions")
    first = shutil.which("sessions")
    if first is None:
        yield Finding(NOTE, "no `sessions` on PATH", f"export PATH={shlex.quote(os.path.dirname(ours))}:$PATH")
    elif os.path.realpath(first) not in (os.path.realpath(ours), os.path.realpath(sys.argv[0])):
        yield Finding(WRONG, f"`sessions` on PATH is another program: {first}", "call it as: sessiond-client")
    else:
        yield Finding(GOOD, f"`sessions` on PATH is this program: {first}")


def compiled(_env: Environment) -> Iterator[Finding]:
    """Where Python is told to write no compiled files, none are there after an install, and each start compiles."""
    package = os.path.dirname(__file__)
    if sys.dont_write_bytecode and not os.path.exists(package + "/__pycache__"):
        compiling = f"{shlex.quote(sys.executable)} -m compileall -q {shlex.quote(package)}"
        yield Finding(NOTE, "Python writes no compiled files here, so every start compiles anew", compiling)


def start_up(_env: Environment) -> Iterator[Finding]:
    """Foreign `.pth` files run code at every start of the interpreter."""
    running = [file for folder in site.getsitepackages() for file in glob.glob(folder + "/*.pth") if _runs_code(file)]
    cost_ms = _start_ms() - _start_ms("-S") if running else 0.0
    if cost_ms > SLOW_START_MS:
        names = ", ".join(os.path.basename(file) for file in running)
        yield Finding(NOTE, f"foreign start-up files cost every call {cost_ms:.0f} ms: {names}",
                      "install into an environment of its own: pipx install sessiond")  # fmt: skip
    else:
        yield Finding(GOOD, "nothing foreign slows the start")


def _runs_code(file: str) -> bool:
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:
            return any(line.startswith(("import ", "import\t")) for line in lines)
    except OSError:
        return False


def _start_ms(*flags: str) -> float:
    """The fastest of three starts of an interpreter that does nothing."""
    took = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, *flags, "-c", "pass"], check=False, timeout=10)
        took.append((time.perf_counter() - began) * 1000)
    return min(took)


def _after_index(check: Callable[[Environment], Iterator[Finding]]) -> Callable[[Environment], Iterator[Finding]]:
    """The check, left out where there is no index to read: that is said once."""

    def checked(env: Environment) -> Iterator[Finding]:
        if os.path.exists(paths.index_file(paths.state_dir(env))):
            yield from check(env)

    return checked


CHECKS: tuple[Callable[[Environment], Iterator[Finding]], ...] = (
    sqlite,
    configuration,
    state_folder,
    index,
    lock_files,
    _after_index(daemon),
    service,
    homes,
    _after_index(watch_limits),
    shadowed,
    compiled,
    start_up,
)

"""The facts of the moment before a session is resumed: folder, branch, file and program, each within a bounded time."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

from sessiond import apps, paths
from sessiond.model import Session
from sessiond.resume import NO_REPOSITORY, Branch, Cli, Moment, Stated
from sessions_cli import when

TIMEOUT_S = 5.0
"""How long a folder, git or the CLI's help may take: any of them can hang on a dead mount."""
GRACE_S = 0.5
"""How long a killed process may take to go away; one that hangs in the kernel is left behind."""

T = TypeVar("T")


def gather(
    session: Session, cli: Cli, env: Mapping[str, str], stated: tuple[Stated, ...] = (), timeout_s: float = TIMEOUT_S
) -> Moment:
    """Everything about the present that the plan depends on; nothing is changed and no lock is taken."""
    program = find_program(cli.program, env)
    problem = folder_problem(session.cwd, timeout_s) if session.cwd and os.path.isabs(session.cwd) else None
    branch = NO_REPOSITORY
    if session.branch is not None and session.cwd and problem is None:
        branch = present_branch(session.cwd, env, timeout_s)
    return Moment(
        now_ms=when.now_ms(),
        user_home=paths.user_home(env),
        branch=branch,
        folder_problem=problem,
        written_ms=written_ms(session.path, timeout_s),
        program=program,
        cli_help=_help(program, session.app, cli, env, timeout_s)
        if program and session.approval in cli.doubtful_approvals
        else "",
        stated=stated,
    )


def find_program(name: str, env: Mapping[str, str]) -> str | None:
    """The program's absolute path; relative entries of PATH are passed over, for they may mean a hostile folder."""
    folders = [entry for entry in env.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(entry)]
    return shutil.which(name, path=os.pathsep.join(folders)) if folders else None


def bounded(ask: Callable[[], T], timeout_s: float) -> T:
    """The answer, or TimeoutError; what hangs is left behind in a thread that does not keep the process alive."""
    answer: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            answer.append(ask())
        except BaseException as error:  # noqa: BLE001 - carried over to the asking thread
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout_s)
    if failure:
        raise failure[0]
    if not answer:
        raise TimeoutError
    return answer[0]


def folder_problem(folder: str, timeout_s: float) -> str | None:
    """Why the folder cannot be entered, None when it can."""

    def look() -> str | None:
        if not stat.S_ISDIR(os.stat(folder).st_mode):
            return "it is no folder any more"
        return None if os.access(folder, os.X_OK) else "you may not enter it"

    try:
        return bounded(look, timeout_s)
    except (FileNotFoundError, NotADirectoryError):
        return "it is gone"
    except TimeoutError:
        return f"it did not answer within {timeout_s:g} s"
    except OSError as error:
        return f"it cannot be looked at ({error.strerror})"
    except ValueError:
        return "it is no name of a folder"


def present_branch(folder: str, env: Mapping[str, str], timeout_s: float) -> Branch:
    """What the folder is on, as git says; its hooks, monitors, prompts and locks are all off."""
    git = find_program("git", env)
    if git is None:
        return Branch(None, "git is not on PATH", known=False)
    argv = [git, "-c", "core.fsmonitor=false", "-C", folder, "symbolic-ref", "--quiet", "--short", "HEAD"]
    clean = {name: value for name, value in env.items() if not name.startswith("GIT_")}
    clean |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        answer = _run(argv, clean, timeout_s)
    except TimeoutError:
        return Branch(None, f"git did not answer within {timeout_s:g} s", known=False)
    except OSError as error:
        return Branch(None, f"git cannot be started ({error.strerror})", known=False)
    if answer.returncode == 0:
        return Branch(os.fsdecode(answer.stdout.removesuffix(b"\n")))
    if answer.returncode == 1:
        return Branch(None, "on no branch (detached HEAD)")
    if b"not a git repository" in answer.stderr:
        return NO_REPOSITORY
    lines = os.fsdecode(answer.stderr).strip().splitlines()
    return Branch(None, f"git says: {lines[0]}" if lines else "git failed without a word", known=False)


def _run(argv: list[str], env: dict[str, str], timeout_s: float) -> subprocess.CompletedProcess[bytes]:
    """Its answer; raises TimeoutError, after which the process is killed, and left behind where even that hangs."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(argv, env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
            raise TimeoutError from None
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def written_ms(path: str | None, timeout_s: float = TIMEOUT_S) -> int | None:
    """When the session's file was last written; None when there is none."""
    if path is None:
        return None
    try:
        return bounded(lambda: os.stat(path).st_mtime_ns, timeout_s) // 1_000_000
    except (OSError, ValueError):
        return None


def _help(program: str, app: str, cli: Cli, env: Mapping[str, str], timeout_s: float) -> str:
    """What the CLI's help says, asked with an empty home so that it writes nothing into the real one."""
    import tempfile  # noqa: PLC0415 - hardly ever needed

    with tempfile.TemporaryDirectory() as empty:
        try:
            answer = _run(
                [program, *cli.help_arguments], {**env, apps.named(app).home_variables[0][0]: empty}, timeout_s
            )
        except OSError:
            return ""
    return answer.stdout.decode(errors="replace")

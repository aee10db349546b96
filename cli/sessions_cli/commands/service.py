"""`sessions service`: the background service under systemd or launchd."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from sessions_cli.context import environment

if TYPE_CHECKING:
    from sessiond.service.job import Job, Manager


@click.group(name="service")
def command() -> None:
    """Run the indexer in the background, from login on.

    A systemd user unit on Linux, a launchd agent on macOS. Without one every command refreshes the index itself.
    """


@command.command()
def install() -> None:
    """Install the service, start it, and start it at every login.

    Variables that choose homes are taken over from this shell. Installing again after an
    upgrade or with other variables rewrites the unit and restarts the service.
    """
    from sessiond import config  # noqa: PLC0415 - `--help` need not load it

    env = environment()
    config.load(env)
    job = _job()
    _say(_manager().install(job))
    _say(f"with {name}={value}" for name, value in job.environment)


@command.command()
@click.option("--purge", is_flag=True, help="Remove the index and your drop-ins of the unit too.")
def remove(*, purge: bool) -> None:
    """Stop the service and remove it. The index stays, unless --purge is given."""
    from sessiond.service import purge as leftovers  # noqa: PLC0415

    manager = _manager()
    state = _state()
    _say(manager.remove(purge=purge))
    leftovers.traces(state)
    if purge:
        _say(leftovers.index(state))


@command.command()
def start() -> None:
    """Start the service now."""
    _say(_manager().start())


@command.command()
def stop() -> None:
    """Stop the service until the next login."""
    _say(_manager().stop())


@command.command()
def restart() -> None:
    """Stop the service and start it again."""
    _say(_manager().restart())


@command.command()
@click.option("-f", "--follow", is_flag=True, help="Go on showing what is added.")
@click.option("-n", "--lines", type=click.IntRange(min=0), default=100, show_default=True, help="How many lines.")
def logs(*, follow: bool, lines: int) -> None:
    """Show the log of the service."""
    argv = _manager().log_command(_state(), lines, follow=follow)
    sys.stdout.flush()
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - becomes the system's own log viewer
    except OSError as error:
        from sessiond.errors import RefusedError  # noqa: PLC0415

        raise RefusedError(f"cannot run {argv[0]}: {error.strerror}; install it") from error


@command.command(name="print")
def print_text() -> None:
    """Print what `install` would write, and change nothing."""
    click.echo(_manager().text(_job()), nl=False)


def _manager() -> Manager:
    from sessiond.errors import RefusedError  # noqa: PLC0415
    from sessiond.service import manager  # noqa: PLC0415

    try:
        return manager(environment(), _program())
    except RefusedError:
        return manager(environment())


def _job() -> Job:
    from sessiond.service.job import job  # noqa: PLC0415

    return job(environment(), _program())


def _program() -> str:
    from sessiond.service.job import find_program  # noqa: PLC0415

    return find_program(sys.argv[0], sys.executable, environment().get("PATH"))


def _state() -> str:
    from sessiond import paths  # noqa: PLC0415

    return _manager().installed_state() or paths.state_dir(environment())


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)

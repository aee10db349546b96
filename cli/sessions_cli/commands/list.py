"""`sessions list`: `find` without words."""

from __future__ import annotations

import click

from sessions_cli.commands.find import run, with_options
from sessions_cli.options import FIND


@click.command("list")
@with_options(FIND)
def command(**values: object) -> int:
    """List sessions, newest first. The same as `find` without words."""
    return run((), values)

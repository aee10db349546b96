"""`sessions archive`."""

from __future__ import annotations

import click

from sessions_cli.vendor_verb import carry_out


@click.command(name="archive")
@click.argument("id_text", metavar="ID")
@click.option("--yes", "-y", is_flag=True, help="Do it without asking.")
@click.option("--no-refresh", is_flag=True, help="Answer from the index as it is.")
def command(*, id_text: str, yes: bool, no_refresh: bool) -> int:
    """Archive a session through the app's own program; it can be brought back.

    ID is a whole id or a beginning of it. Not every app's program has such a command. Files are never touched by us.
    """
    return carry_out("archive", id_text, yes=yes, refresh=not no_refresh)

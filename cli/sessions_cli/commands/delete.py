"""`sessions delete`."""

from __future__ import annotations

import click

from sessions_cli.vendor_verb import carry_out


@click.command(name="delete")
@click.argument("id_text", metavar="ID")
@click.option("--yes", "-y", is_flag=True, help="Do it without asking.")
@click.option("--no-refresh", is_flag=True, help="Answer from the index as it is.")
def command(*, id_text: str, yes: bool, no_refresh: bool) -> int:
    """Delete a session for good through the app's own program.

    ID is a whole id or a beginning of it. Not every app's program has such a command. Files are never touched by us.
    """
    return carry_out("delete", id_text, yes=yes, refresh=not no_refresh)

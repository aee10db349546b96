"""Asking a person at a terminal, and refusing where there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from sessiond.errors import RefusedError
from sessions_cli.output import say


def agree(facts: Iterable[str], question: str, *, yes: bool) -> None:
    """Return when the person agrees; `yes` is their answer given beforehand. Raises RefusedError otherwise."""
    for fact in facts:
        say(fact)
    if yes:
        return
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise RefusedError("nothing was done: there is no terminal to ask on, and --yes was not given")
    import click  # noqa: PLC0415 - only where something is asked

    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        agreed = False
    if not agreed:
        raise RefusedError("nothing was done")

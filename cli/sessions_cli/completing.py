"""What a shell may complete from the index, as it is: branches and ids. Never raises, never refreshes."""

from __future__ import annotations

from collections.abc import Callable

import click
from click.shell_completion import CompletionItem

from sessiond import paths
from sessiond.errors import SessiondError
from sessiond.store.query import Filters
from sessiond.store.reader import Reader
from sessiond.store.search import Row
from sessions_cli.context import environment
from sessions_cli.render import printable

MOST = 50


def branches(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Branches that begin so, the one last worked on first."""
    rows = _asked(lambda reader: reader.branches(incomplete, MOST))
    return [CompletionItem(str(branch)) for (branch,) in rows if printable(str(branch)) == branch]


def ids(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of the newest sessions that begin so, with their titles."""
    rows = _asked(lambda reader: reader.find(Filters(), "s.id, s.title", limit=MOST * 20))
    found = [(str(i), printable(str(title or ""))) for i, title in rows if str(i).startswith(incomplete)]
    return [CompletionItem(i, help=title) for i, title in found[:MOST] if printable(i) == i]


def _asked(question: Callable[[Reader], list[Row]]) -> list[Row]:
    try:
        with Reader(paths.state_dir(environment())) as reader:
            return question(reader)
    except SessiondError:
        return []

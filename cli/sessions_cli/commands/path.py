"""`sessions path`: where the index is."""

from __future__ import annotations

import os

from sessiond import paths
from sessiond.errors import NoIndexError
from sessions_cli import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import click


def run() -> int:
    """Print the path of the index, touching nothing; raises NoIndexError when there is none."""
    path = paths.index_file(paths.state_dir(os.environ))
    if not os.path.exists(path):
        raise NoIndexError(f"no index at {path}; run: sessiond --once")
    output.write(path + "\n")
    return 0


def __getattr__(name: str) -> click.Command:
    """`command`, made when click asks for it: the fast path does not."""
    if name != "command":
        raise AttributeError(name)
    import click  # noqa: PLC0415

    return click.Command("path", callback=run, help='Print where the index is, for: sqlite3 "$(sessions path)"')

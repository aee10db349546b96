"""`sessions pick`: choose a session interactively, then continue it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence

import click

from sessiond.errors import RefusedError
from sessiond.model import Session
from sessiond.store.query import TABLE, Filters, split
from sessiond.store.reader import Reader
from sessiond.store.search import Row
from sessions_cli import context, moment, output, render, when
from sessions_cli.commands.resume import Options, resume_session

NUMBERED = 20
"""So many are offered where there is no fzf."""
OFFERED = 2000
"""So many are handed to fzf."""
TITLE_COLUMNS = 60
"""Titles up to this width are padded to a common one; a longer one stays whole, for fzf searches what it shows."""


@click.command("pick")
@click.argument("words", nargs=-1)
@click.option("--no-refresh", is_flag=True, help="Offer what the index holds as it is.")
def command(words: tuple[str, ...], *, no_refresh: bool) -> int:
    """Choose one of the sessions that hold every one of the WORDS, then continue it as `sessions resume` does.

    With fzf on PATH it is a live picker with a preview, else a numbered list.
    """
    with context.fresh_reader(context.environment(), refresh=not no_refresh) as reader:
        session = choose(reader, words)
        return 1 if session is None else resume_session(reader, session, Options())


def choose(reader: Reader, words: Sequence[str]) -> Session | None:
    """The session that a person chooses; None when there is nothing to choose from, or nothing was chosen.

    Raises RefusedError when there is no terminal to choose on.
    """
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise RefusedError("there is no terminal to choose on; name a session: sessions resume ID")
    fzf = moment.find_program("fzf", os.environ)
    filters = Filters(words=split(" ".join(words)))
    rows = reader.find(filters, TABLE, limit=OFFERED if fzf else NUMBERED)
    if not rows:
        output.say("nothing found" if words else "no sessions")
        return None
    row = _with_fzf(fzf, rows) if fzf else _by_number(reader, rows, filters)
    return None if row is None else context.find_one(reader, str(row[1]))


def _with_fzf(fzf: str, rows: Sequence[Row]) -> Row | None:
    """The row chosen in fzf, which previews what `sessions show` says of it."""
    now = when.now_ms()
    titles = [render.printable(str(row[5] or "")) for row in rows]
    widest = min(TITLE_COLUMNS, max(map(render.width, titles)))
    lines = [
        "\t".join(
            [
                str(at),
                str(row[1]),
                f"{when.ago(_number(row[2]), now):<10}",
                render.pad(titles[at], widest),
                render.printable(str(row[4] or "")),
                render.printable(str(row[3] or "")),
            ]
        )
        for at, row in enumerate(rows)
    ]
    preview = f"{shlex.quote(sys.executable)} -P -m sessions_cli.main show {{2}} --no-refresh 2>&1"  # -P: not from here
    arguments = [
        "--delimiter=\t", "--with-nth=3..", "--no-multi", "--layout=reverse", "--height=80%",
        f"--preview={preview}", "--preview-window=down,40%,wrap",
    ]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "FZF_DEFAULT_COMMAND"}
    done = subprocess.run(
        [fzf, *arguments], input="\n".join(lines).encode(), stdout=subprocess.PIPE, env=environment, check=False
    )
    number = done.stdout.decode(errors="replace").partition("\t")[0]
    return rows[int(number)] if number.isdecimal() and int(number) < len(rows) else None


def _by_number(reader: Reader, rows: Sequence[Row], filters: Filters) -> Row | None:
    numbers = [str(at) for at in range(1, len(rows) + 1)]
    table = render.sessions_table(
        rows,
        [reader.short_id(str(row[1])) for row in rows],
        numbers=numbers,
        terminal_columns=output.terminal_columns(),
        color=output.is_colored("auto"),
        words=filters.words,
        user_home=os.environ.get("HOME", "").rstrip("/"),
        now=when.now_ms(),
    )
    sys.stderr.write(table)
    while True:
        sys.stderr.write(f"Continue which one? (1-{len(rows)}, Enter for none) ")
        sys.stderr.flush()
        answer = sys.stdin.readline().strip()
        if not answer:
            return None
        if answer in numbers:
            return rows[int(answer) - 1]


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None

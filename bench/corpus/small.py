"""Homes of many small sessions: four fifths Claude Code, a fifth Codex, as a person's folders look."""

from __future__ import annotations

import os
import random
import sqlite3
from dataclasses import dataclass

from bench.corpus import claude, codex, words


@dataclass
class Shape:
    """What a home of small sessions is like."""

    count: int
    median: int = 31_000
    mean: int = 54_000
    """Of a session's bytes."""
    projects: int = 0
    """0: one for every fifty sessions."""
    hidden: float = 0.05
    """The share that programs ran: sessions, but not in the default list."""

    def __post_init__(self) -> None:
        self.projects = self.projects or max(10, self.count // 50)

    def size(self, dice: random.Random) -> int:
        return words.size_bytes(dice, self.median, self.mean)


def make(home: str, shape: Shape) -> None:
    threads = shape.count // 5
    for number in range(shape.count - threads):
        _claude(home, number, shape)
    codex_home = os.path.join(home, ".codex")
    connection = codex.create_database(codex_home)
    for number in range(threads):
        _codex(codex_home, connection, number, shape)
    connection.commit()
    connection.close()


def _claude(home: str, number: int, shape: Shape) -> None:
    dice = words.rng("claude", number)
    session = claude.Transcript(
        dice,
        words.folder(dice, shape.projects),
        words.branch(dice),
        version=claude.OLD if dice.random() < 0.15 else claude.NEW,
        entrypoint="sdk-cli" if dice.random() < shape.hidden else "cli",
        ended=words.moment(dice),
        custom_title=words.title(dice) if dice.random() < 0.6 else None,
        ai_title=words.title(dice) if dice.random() < 0.6 else None,
        size=shape.size(dice),
    )
    claude.put(home, session)
    if dice.random() < 0.2:
        claude.put_agents(home, session, 1 + number % 4)
    if dice.random() < 0.03:
        claude.put_sidecar(home, session, words.title(dice))


def _codex(home: str, connection: sqlite3.Connection, number: int, shape: Shape) -> None:
    dice = words.rng("codex", number)
    thread = codex.Thread(
        dice,
        words.folder(dice, shape.projects),
        words.branch(dice),
        _generation(dice.random()),
        ended=words.moment(dice),
        source="exec" if dice.random() < shape.hidden else "cli",
        size=shape.size(dice),
        instructions=codex.INSTRUCTIONS if shape.median > 20_000 else "short",
        name=words.title(dice) if dice.random() < 0.2 else None,
    )
    modern = thread.generation in (codex.ENVELOPE, codex.PAGINATED)
    thread.archived = modern and dice.random() < 0.05
    claude.write(thread.path(home), thread.data(), thread.ended)
    if modern and dice.random() < 0.85:
        name = thread.name if thread.generation == codex.PAGINATED else None
        codex.add_row(connection, home, thread, name=name, archived_at=int(thread.ended.timestamp()))


def _generation(share: float) -> str:
    """A tenth from before the envelope, four tenths of the newest kind."""
    if share < 0.05:
        return codex.BARE
    if share < 0.1:
        return codex.BARE_GIT
    return codex.PAGINATED if share > 0.6 else codex.ENVELOPE

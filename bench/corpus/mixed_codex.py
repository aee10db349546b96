"""Codex's half of the mixed home: every generation, archived, compressed, renamed, rows only in the `-wal`."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from typing import Any

from bench.corpus import claude, codex, words
from bench.corpus.answers import Answer, Answers
from bench.corpus.blocks import line
from bench.corpus.codex import Thread

Rows = Callable[..., None]
PER_CASE = 30
COMPRESSED = ("compressed", "compressed_without_row")


def _shown(thread: Thread) -> str:
    return " ".join(thread.prompt.split())[:200].rstrip()


class Home:
    """A Codex home being made: rollouts, rows, names of the rename log."""

    def __init__(self, folder: str, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self.connection = connection
        self.names: list[dict[str, str]] = []

    def file(self, thread: Thread) -> str:
        path = thread.path(self.folder)
        claude.write(path, thread.data(), thread.ended)
        return path

    def row(self, thread: Thread, **changes: Any) -> None:
        codex.add_row(self.connection, self.folder, thread, **changes)

    def renamed(self, thread: Thread, name: str) -> None:
        self.names.append({"id": thread.id, "thread_name": name, "updated_at": words.stamp(thread.ended)})


Case = Callable[[Home, Thread], str]


def with_row(home: Home, t: Thread) -> str:
    home.file(t)
    home.row(t)
    return _shown(t)


def without_row(home: Home, t: Thread) -> str:
    home.file(t)
    return _shown(t)


def paginated_with_name(home: Home, t: Thread) -> str:
    t.generation = codex.PAGINATED
    home.file(t)
    name = words.title(t.dice) + " (named)"
    home.row(t, name=name, title=t.prompt)
    return name


def paginated_without_row(home: Home, t: Thread) -> str:
    t.generation = codex.PAGINATED
    return without_row(home, t)


def renamed_in_row(home: Home, t: Thread) -> str:
    t.name = words.title(t.dice) + " (named)"
    return with_row(home, t) and t.name


def renamed_in_log(home: Home, t: Thread) -> str:
    """Renamed twice; the last line of the log wins."""
    with_row(home, t)
    home.renamed(t, "An earlier name")
    home.renamed(t, words.title(t.dice) + " (logged)")
    return home.names[-1]["thread_name"]


def archived(home: Home, t: Thread) -> str:
    t.archived = True
    return with_row(home, t)


def compressed(home: Home, t: Thread) -> str:
    path = home.file(t)
    home.row(t)
    _compress(path)
    return _shown(t)


def compressed_without_row(home: Home, t: Thread) -> str:
    _compress(home.file(t))
    return _shown(t)


def before_the_envelope(home: Home, t: Thread) -> str:
    t.generation = codex.BARE_GIT
    return without_row(home, t)


def oldest_flat(home: Home, t: Thread) -> str:
    t.generation = codex.BARE
    t.branch = None
    return without_row(home, t)


def one_document(home: Home, t: Thread) -> str:
    """The first generation: one indented JSON document a session."""
    t.branch = None
    items = [codex.message("user", t.prompt), codex.message("assistant", "Done.")]
    session = {"timestamp": words.stamp(t.began), "id": t.id, "instructions": ""}
    path = os.path.join(home.folder, "sessions", f"rollout-{t.began:%Y-%m-%d}-{t.id}.json")
    claude.write(path, json.dumps({"session": session, "items": items}, indent=2).encode(), t.ended)
    return _shown(t)


def row_only(home: Home, t: Thread) -> str:
    home.row(t)
    return _shown(t)


def giant_first_line(home: Home, t: Thread) -> str:
    t.instructions = codex.INSTRUCTIONS * 25
    return with_row(home, t)


def run_by_a_program(home: Home, t: Thread) -> str:
    t.source, t.originator = "exec", "codex_exec"
    return with_row(home, t)


CASES: tuple[Case, ...] = (
    with_row, without_row, paginated_with_name, paginated_without_row, renamed_in_row, renamed_in_log, archived,
    compressed, compressed_without_row, before_the_envelope, oldest_flat, one_document, row_only, giant_first_line,
    run_by_a_program,
)  # fmt: skip


def make(home: str, answers: Answers) -> None:
    """Writes the home; a tenth of the rows is committed last and stays in the `-wal`, as beside a running Codex."""
    folder = os.path.join(home, ".codex")
    connection = codex.create_database(folder)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    made = Home(folder, connection)
    for case in CASES:
        if case.__name__ in COMPRESSED and _zstd() is None:
            continue
        for number in range(PER_CASE):
            thread = _thread(case.__name__, number)
            title = case(made, thread)
            answers.sessions.append(Answer("codex", thread.id, f"codex: {case.__name__}", title, thread.branch))
    _no_sessions(made, answers)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for number in range(PER_CASE):
        thread = _thread("row_in_wal_only", number)
        title = renamed_in_row(made, thread)
        answers.sessions.append(Answer("codex", thread.id, "codex: row_in_wal_only", title, thread.branch))
    connection.commit()
    _keep_wal(connection, folder)
    claude.write(os.path.join(folder, "session_index.jsonl"), b"".join(line(n) for n in made.names), words.NEWEST)


def _thread(case: str, number: int) -> Thread:
    dice = words.rng("mixed-codex", case, number)
    return Thread(
        dice, words.folder(dice, 20), words.branch(dice), ended=words.moment(dice), size=words.size_bytes(dice)
    )


def _no_sessions(home: Home, answers: Answers) -> None:
    sources = {
        "a sub-agent": {"subagent": {"thread_spawn": {"parent_thread_id": "0", "depth": 1}}},
        "a memory job": {"internal": "memory_consolidation"},
    }
    for what, source in sources.items():
        for number in range(6):
            thread = _thread(what, number)
            thread.source = source
            home.file(thread)
            home.row(thread, source=json.dumps(source, separators=(",", ":")))
            answers.not_sessions[thread.id] = what
    for number in range(4):
        thread = _thread("header", number)
        first = thread.data().splitlines(keepends=True)[0]
        claude.write(thread.path(home.folder), first, thread.ended)
        answers.not_sessions[thread.id] = "a header without a conversation"


def _keep_wal(connection: sqlite3.Connection, folder: str) -> None:
    """Close without the checkpoint that closing makes: by putting the files aside before, and back after."""
    names = ("state_5.sqlite", "state_5.sqlite-wal")
    for name in names:
        shutil.copy2(os.path.join(folder, name), os.path.join(folder, name + ".kept"))
    connection.close()
    for name in names:
        os.replace(os.path.join(folder, name + ".kept"), os.path.join(folder, name))


def _zstd() -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    except ImportError:
        try:
            from backports import zstd  # noqa: PLC0415
        except ImportError:
            return None
    return zstd


def _compress(path: str) -> None:
    status = os.stat(path)
    with open(path, "rb") as file:
        data = _zstd().compress(file.read())
    with open(path + ".zst", "wb") as file:
        file.write(data)
    os.utime(path + ".zst", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.unlink(path)

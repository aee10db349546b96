"""Every public column of a session, declared once. Pure data; imported by the fast path, so it imports nothing.

The table `sessions`, what the client asks for, its JSON keys, `sessions show` and the table in docs/sql.md are made of
this or checked against it. `model.Session` spells the same fields out, for the type checker.
"""

from __future__ import annotations

TEXT, PATH, TIME, SIZE, FLAG = "text", "path", "time", "size", "flag"
_SQL = {TEXT: "TEXT", PATH: "ANY", TIME: "INTEGER", SIZE: "INTEGER", FLAG: "INTEGER NOT NULL"}


class Column:
    """One public column."""

    __slots__ = ("kind", "meaning", "name", "required")

    def __init__(self, name: str, kind: str, meaning: str, *, required: bool = False) -> None:
        self.name = name
        self.kind = kind
        """How it is stored and shown: `text`; `path`, text or bytes; `time`, ms UTC; `size`, bytes; `flag`, 0 or 1."""
        self.meaning = meaning
        """In a few words, as docs/sql.md has it."""
        self.required = required
        """Whether every session has it."""

    @property
    def sql(self) -> str:
        """Its line in the table's definition."""
        return f"{self.name} {_SQL[self.kind]}{' NOT NULL' if self.required else ''}"


COLUMNS = (
    Column("app", TEXT, "the app, by the name that `--app` takes", required=True),
    Column("id", TEXT, "the app's own id", required=True),
    Column("home", TEXT, "the folder of the app's data that the session lies in", required=True),
    Column("path", PATH, "the session's file; a blob where its name is no UTF-8; NULL where it has no file"),
    Column("cwd", TEXT, "the folder it was last worked in, as recorded"),
    Column("repo", TEXT, "the main checkout, where the session tells of one; else NULL"),
    Column("branch", TEXT, "the branch that the app records last, NULL for a detached head"),
    Column("title", TEXT, "one line of at most 200 characters"),
    Column("title_from", TEXT, "what the title is: see below"),
    Column("first_prompt", TEXT, "the first thing that a person asked; one line of at most 200 characters"),
    Column("model", TEXT, "the model last used, as recorded"),
    Column("model_provider", TEXT, "who serves the model"),
    Column("effort", TEXT, "the reasoning effort last used, as recorded"),
    Column("approval", TEXT, "the permission mode or approval policy, as last recorded"),
    Column("sandbox", TEXT, "the sandbox, as last recorded"),
    Column("version", TEXT, "the app's version that wrote the session"),
    Column("origin", TEXT, "what it was started from, in the app's own word"),
    Column("created_ms", TIME, "when it began, in milliseconds since 1970-01-01 UTC"),
    Column("updated_ms", TIME, "when it was last active, in milliseconds since 1970-01-01 UTC"),
    Column("bytes", SIZE, "the size of its file in bytes"),
    Column("archived", FLAG, "whether it is archived in its app"),
    Column("interactive", FLAG, "whether a person had the conversation; 0: a script ran it"),
    Column("resumable", FLAG, "whether its app can continue it as it is"),
    Column("gone_ms", TIME, "when its files were found deleted, in milliseconds UTC; NULL while they exist"),
    Column("forked_from", TEXT, "the id of the session it was forked from"),
)

NAMES = tuple([column.name for column in COLUMNS])
FLAGS = tuple([column.name for column in COLUMNS if column.kind == FLAG])

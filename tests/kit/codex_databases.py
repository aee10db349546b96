"""State databases of Codex for tests, by migration: the table `threads` as each generation has it."""

from __future__ import annotations

import sqlite3

ADDED = {
    1: """id TEXT PRIMARY KEY, rollout_path TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
          source TEXT NOT NULL, model_provider TEXT NOT NULL, cwd TEXT NOT NULL, title TEXT NOT NULL,
          sandbox_policy TEXT NOT NULL, approval_mode TEXT NOT NULL, tokens_used INTEGER NOT NULL DEFAULT 0,
          has_user_event INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0, archived_at INTEGER,
          git_sha TEXT, git_branch TEXT, git_origin_url TEXT""",
    5: "cli_version TEXT NOT NULL DEFAULT ''",
    7: "first_user_message TEXT NOT NULL DEFAULT ''",
    13: "agent_nickname TEXT, agent_role TEXT",
    18: "memory_mode TEXT NOT NULL DEFAULT 'enabled'",
    20: "model TEXT, reasoning_effort TEXT",
    22: "agent_path TEXT",
    25: "created_at_ms INTEGER, updated_at_ms INTEGER",
    30: "thread_source TEXT",
    32: "preview TEXT NOT NULL DEFAULT ''",
    39: "recency_at INTEGER NOT NULL DEFAULT 0, recency_at_ms INTEGER NOT NULL DEFAULT 0",
    40: "history_mode TEXT NOT NULL DEFAULT 'legacy'",
    41: "name TEXT",
    43: "is_pinned INTEGER NOT NULL DEFAULT 0",
    45: "thread_section_id TEXT",
    46: "section_position INTEGER, section_entered_at_ms INTEGER",
    49: "project_id TEXT",
}
"""Migration -> the columns that it adds."""
GENERATIONS = (1, 5, 7, 20, 25, 30, 32, 40, 41, 50)
SAMPLE = {
    "rollout_path": "",
    "created_at": 1_788_256_800,
    "updated_at": 1_788_257_400,
    "source": "cli",
    "model_provider": "openai",
    "cwd": "/Users/alex/code/shop-api",
    "title": "",
    "sandbox_policy": '{"type":"read-only"}',
    "approval_mode": "on-request",
}


def columns_of(generation: int) -> list[str]:
    definitions = ", ".join(text for number, text in ADDED.items() if number <= generation)
    return [part.split()[0] for part in definitions.split(",")]


def create(connection: sqlite3.Connection, generation: int, extra: str = "") -> None:
    definitions = [text for number, text in ADDED.items() if number <= generation] + ([extra] if extra else [])
    connection.execute(f"CREATE TABLE threads ({', '.join(definitions)})")
    connection.execute("CREATE TABLE _sqlx_migrations (version INTEGER PRIMARY KEY, description TEXT)")
    connection.execute("INSERT INTO _sqlx_migrations VALUES (?, '')", (generation,))


def insert(connection: sqlite3.Connection, thread_id: str, generation: int = 50, **values: object) -> None:
    """One row; a value for a column that the generation does not have yet is left out."""
    present = columns_of(generation)
    row = {"id": thread_id, **SAMPLE, **values}
    chosen = [name for name in row if name in present]
    marks = ", ".join("?" * len(chosen))
    connection.execute(f"INSERT INTO threads ({', '.join(chosen)}) VALUES ({marks})", [row[name] for name in chosen])


def make(path: object, rows: dict[str, dict[str, object]], generation: int = 50, *, extra: str = "") -> None:
    """A closed database in WAL mode with these rows."""
    connection = sqlite3.connect(str(path), isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    create(connection, generation, extra)
    for thread_id, values in rows.items():
        insert(connection, thread_id, generation, **values)
    connection.close()

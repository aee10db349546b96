"""Codex's state database as its builds of different ages made it, and a writer that keeps it open."""

from __future__ import annotations

import os
import sqlite3
import time
import uuid

OLDEST = (
    "id TEXT PRIMARY KEY, rollout_path TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,"
    " source TEXT NOT NULL, model_provider TEXT NOT NULL, cwd TEXT NOT NULL, title TEXT NOT NULL,"
    " sandbox_policy TEXT NOT NULL, approval_mode TEXT NOT NULL, tokens_used INTEGER NOT NULL DEFAULT 0,"
    " has_user_event INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0, archived_at INTEGER,"
    " git_sha TEXT, git_branch TEXT, git_origin_url TEXT"
)
MIDDLE = (
    OLDEST + ", cli_version TEXT NOT NULL DEFAULT '', first_user_message TEXT NOT NULL DEFAULT '', agent_nickname TEXT"
)
NEWEST = (
    MIDDLE + ", model TEXT, reasoning_effort TEXT, created_at_ms INTEGER, updated_at_ms INTEGER, name TEXT,"
    " history_mode TEXT NOT NULL DEFAULT 'legacy', preview TEXT NOT NULL DEFAULT ''"
)
STRANGE = NEWEST + ", of_tomorrow BLOB, another_one TEXT DEFAULT 'x'"


def path_of(world, number=5):
    return os.path.join(world.codex_home, f"state_{number}.sqlite")


def connect(path, columns=NEWEST, journal="wal"):
    """A writer as Codex has it: it never checkpoints by itself, so rows stay in the `-wal`."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"CREATE TABLE IF NOT EXISTS threads ({columns})")
    return connection


def add(connection, title, thread_id=None, **changes):
    """A row as the app writes it; the thread's id."""
    now_s = int(time.time())
    row = {
        "id": thread_id or str(uuid.uuid4()),
        "rollout_path": "/nowhere/rollout.jsonl",
        "created_at": now_s,
        "updated_at": now_s,
        "source": "cli",
        "model_provider": "openai",
        "cwd": "/home/user/shop",
        "title": title,
        "sandbox_policy": "read-only",
        "approval_mode": "on-request",
        "tokens_used": 10,
        "git_branch": "main",
    } | changes
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO threads ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
    return row["id"]

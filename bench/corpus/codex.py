"""Codex rollouts of several generations and the state database beside them (docs/formats/codex.md)."""

from __future__ import annotations

import os
import random
import sqlite3
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bench.corpus import words
from bench.corpus.blocks import BRANCH, CWD, MINUTE, SESSION, Blocks, line

ENVELOPE, PAGINATED, BARE_GIT, BARE = "envelope", "paginated", "bare-git", "bare"
"""Generations of the line format, newest envelope first."""
INSTRUCTIONS = words.sentence(words.rng("instructions"), 3_300)
"""About 18 kB, as the first line of a rollout carries them."""


def event(kind: str, at: str, payload: dict[str, Any], ordinal: int | None = None) -> dict[str, Any]:
    number = {} if ordinal is None else {"ordinal": ordinal}
    return {"timestamp": at} | number | {"type": kind, "payload": payload}


def message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def context(cwd: str, model: str, effort: str, **changes: Any) -> dict[str, Any]:
    policy = {"type": "workspace-write", "network_access": False}
    return {"turn_id": "1", "cwd": cwd, "approval_policy": "on-request", "sandbox_policy": policy,
            "model": model, "effort": effort, "summary": "auto"} | changes  # fmt: skip


def _turn(dice: random.Random) -> list[dict[str, Any]]:
    at = MINUTE + ":11.020Z"
    call = f"call_{dice.getrandbits(64):016x}"
    output = words.sentence(dice, dice.randint(60, 900))
    said = words.sentence(dice, dice.randint(20, 150))
    return [
        event("response_item", at, {"type": "reasoning", "encrypted_content": f"{dice.getrandbits(4000):x}"}),
        event("response_item", at, {"type": "function_call", "name": "shell", "call_id": call, "arguments": said[:90]}),
        event("response_item", at, {"type": "function_call_output", "call_id": call, "output": output}),
        event("response_item", at, message("assistant", said)),
        event("event_msg", at, {"type": "agent_message", "message": said}),
        event("event_msg", at, {"type": "token_count", "info": {"total_token_usage": {"total_tokens": 18_000}}}),
    ]  # fmt: skip


def _bare_turn(dice: random.Random) -> list[dict[str, Any]]:
    turn: list[dict[str, Any]] = [
        message("assistant", words.sentence(dice, 90)),
        {"type": "function_call", "name": "shell", "call_id": "c", "arguments": words.sentence(dice, 9)},
        {"type": "function_call_output", "call_id": "c", "output": words.sentence(dice, dice.randint(60, 600))},
        {"record_type": "state"},
    ]
    return turn


TURNS = Blocks("codex", _turn)
BARE_TURNS = Blocks("codex-bare", _bare_turn)


@dataclass
class Thread:
    """One Codex session to be written."""

    dice: random.Random
    cwd: str
    branch: str | None
    generation: str = ENVELOPE
    ended: datetime = words.NEWEST
    id: str = ""
    prompt: str = ""
    source: Any = "cli"
    originator: str = "codex-tui"
    size: int = 31_000
    instructions: str = INSTRUCTIONS
    archived: bool = False
    name: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.began = self.ended - timedelta(minutes=90)
        self.id = self.id or words.thread_id(self.dice, self.began)
        self.prompt = self.prompt or words.prompt(self.dice)

    @property
    def file_name(self) -> str:
        return f"rollout-{self.began:%Y-%m-%dT%H-%M-%S}-{self.id}.jsonl"

    def path(self, codex_home: str) -> str:
        if self.archived:
            return os.path.join(codex_home, "archived_sessions", self.file_name)
        if self.generation == BARE:
            return os.path.join(codex_home, "sessions", self.file_name)
        return os.path.join(codex_home, "sessions", f"{self.began:%Y/%m/%d}", self.file_name)

    def data(self) -> bytes:
        bare = self.generation in (BARE, BARE_GIT)
        start = b"".join(map(line, self._bare_start() if bare else self._start()))
        end = b"" if bare else line(self._numbered("event_msg", self.ended, {"type": "task_complete"}, 900))
        turns = BARE_TURNS if bare else TURNS
        minute = (self.ended - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M")
        facts = {CWD: self.cwd, BRANCH: self.branch or "", SESSION: self.id}
        return start + turns.fill(self.dice, self.size - len(start) - len(end), facts, minute) + end

    def _numbered(self, kind: str, at: datetime, payload: dict[str, Any], ordinal: int) -> dict[str, Any]:
        return event(kind, words.stamp(at), payload, ordinal if self.generation == PAGINATED else None)

    def _start(self) -> list[dict[str, Any]]:
        paginated = self.generation == PAGINATED
        meta = {
            "session_id": self.id, "id": self.id, "timestamp": words.stamp(self.began), "cwd": self.cwd,
            "originator": self.originator, "cli_version": "0.148.0" if paginated else "0.104.0", "source": self.source,
            "model_provider": "openai", "base_instructions": {"text": self.instructions},
        } | self.meta  # fmt: skip
        if paginated:
            meta["history_mode"] = "paginated"
        if self.branch:
            meta["git"] = {"commit_hash": f"{self.dice.getrandbits(160):040x}", "branch": self.branch}
        user: dict[str, Any] = {"type": "user_message", "message": self.prompt, "images": []}
        if paginated:
            content = [{"type": "text", "text": self.prompt}]
            user = {"type": "item_completed", "item": {"type": "UserMessage", "id": "1", "content": content}}
        around = f"<environment_context>\n  <cwd>{self.cwd}</cwd>\n</environment_context>"
        return [
            self._numbered("session_meta", self.began, meta, 0),
            self._numbered("response_item", self.began, message("user", around), 1),
            self._numbered("turn_context", self.began, context(self.cwd, "gpt-5.4-codex", "medium"), 2),
            self._numbered("response_item", self.began, message("user", self.prompt), 3),
            self._numbered("event_msg", self.began, user, 4),
        ]

    def _bare_start(self) -> list[dict[str, Any]]:
        meta: dict[str, Any] = {"id": self.id, "timestamp": words.stamp(self.began), "instructions": None}
        if self.generation == BARE_GIT:
            meta["git"] = {"commit_hash": "0" * 40, "branch": self.branch}
        around = f"<environment_context>\n<cwd>{self.cwd}</cwd>\n</environment_context>"
        return [meta, message("user", around), message("user", self.prompt)]


_COLUMNS = {
    "id": "TEXT PRIMARY KEY", "rollout_path": "TEXT NOT NULL", "created_at": "INTEGER NOT NULL",
    "updated_at": "INTEGER NOT NULL", "source": "TEXT NOT NULL", "model_provider": "TEXT NOT NULL",
    "cwd": "TEXT NOT NULL", "title": "TEXT NOT NULL", "sandbox_policy": "TEXT NOT NULL",
    "approval_mode": "TEXT NOT NULL", "tokens_used": "INTEGER NOT NULL DEFAULT 0",
    "has_user_event": "INTEGER NOT NULL DEFAULT 0", "archived": "INTEGER NOT NULL DEFAULT 0", "archived_at": "INTEGER",
    "git_sha": "TEXT", "git_branch": "TEXT", "git_origin_url": "TEXT", "cli_version": "TEXT NOT NULL DEFAULT ''",
    "first_user_message": "TEXT NOT NULL DEFAULT ''", "model": "TEXT", "reasoning_effort": "TEXT",
    "created_at_ms": "INTEGER", "updated_at_ms": "INTEGER", "thread_source": "TEXT",
    "preview": "TEXT NOT NULL DEFAULT ''", "history_mode": "TEXT NOT NULL DEFAULT 'legacy'", "name": "TEXT",
}  # fmt: skip


def create_database(codex_home: str) -> sqlite3.Connection:
    """`state_5.sqlite` in WAL mode, open; closing it checkpoints."""
    os.makedirs(codex_home, exist_ok=True)
    connection = sqlite3.connect(os.path.join(codex_home, "state_5.sqlite"))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"CREATE TABLE threads ({', '.join(f'{n} {t}' for n, t in _COLUMNS.items())})")
    return connection


def add_row(connection: sqlite3.Connection, codex_home: str, thread: Thread, **changes: Any) -> None:
    """The row that Codex keeps of a thread."""
    row = {
        "id": thread.id, "rollout_path": thread.path(codex_home), "created_at": int(thread.began.timestamp()),
        "updated_at": int(thread.ended.timestamp()), "source": thread.source, "model_provider": "openai",
        "cwd": thread.cwd, "title": thread.name or thread.prompt, "sandbox_policy": '{"type":"read-only"}',
        "approval_mode": "on-request", "archived": int(thread.archived), "git_branch": thread.branch,
        "cli_version": "0.104.0", "first_user_message": thread.prompt, "model": "gpt-5.4-codex",
        "reasoning_effort": "medium", "created_at_ms": int(thread.began.timestamp() * 1000),
        "updated_at_ms": int(thread.ended.timestamp() * 1000), "preview": thread.prompt,
        "history_mode": "paginated" if thread.generation == PAGINATED else "legacy",
    } | changes  # fmt: skip
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO threads ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))

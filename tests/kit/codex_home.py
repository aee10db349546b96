"""A Codex home for tests: write rollouts, read what the provider makes of it all."""

from __future__ import annotations

import json
import os
from pathlib import Path

from sessiond.model import Observation, Walk
from sessiond.providers.codex import Codex

CWD = "/Users/alex/code/shop-api"
CREATED = "2026-09-01T10:00:00.000Z"
ENDED = "2026-09-01T10:09:00.000Z"
CREATED_MS = 1_788_256_800_000
ENDED_MS = 1_788_257_340_000


def uid(number: int) -> str:
    return f"019b0000-0000-7000-8000-{number:012d}"


def record(kind: str, payload: dict, timestamp: str = CREATED, **more: object) -> dict:
    return {"timestamp": timestamp, **more, "type": kind, "payload": payload}


def meta(thread_id: str, **fields: object) -> dict:
    payload = {"id": thread_id, "timestamp": CREATED, "cwd": CWD, "originator": "codex-tui", "cli_version": "0.151.0"}
    return record("session_meta", {**payload, "source": "cli", "model_provider": "openai", **fields})


def turn(**fields: object) -> dict:
    payload = {"cwd": CWD, "approval_policy": "on-request", "sandbox_policy": {"type": "read-only"}}
    return record("turn_context", {**payload, "model": "gpt-5", "effort": "low", **fields})


def user(text: str) -> dict:
    return record("event_msg", {"type": "user_message", "message": text})


def answer(text: str = "ok", timestamp: str = ENDED) -> dict:
    return record("event_msg", {"type": "agent_message", "message": text}, timestamp)


def conversation(thread_id: str, prompt: str = "Fix the build", **fields: object) -> list[dict]:
    return [meta(thread_id, **fields), turn(), user(prompt), answer()]


def lines(records: list) -> bytes:
    return b"".join(
        (r if isinstance(r, bytes) else json.dumps(r, separators=(",", ":")).encode()) + b"\n" for r in records
    )


class CodexHome:
    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "sessions").mkdir(parents=True)
        (path / "archived_sessions").mkdir()
        self.provider = Codex([str(path)], scratch=str(path.parent / "own"))

    def rollout(self, thread_id: str, records: list | bytes, *, tree: str = "sessions", ending: str = ".jsonl") -> Path:
        folder = self.path / tree / ("2026/09/01" if tree == "sessions" else "")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"rollout-2026-09-01T12-00-00-{thread_id}{ending}"
        path.write_bytes(records if isinstance(records, bytes) else lines(records))
        return path

    def observations(self) -> dict[str, list[Observation]]:
        found: dict[str, list[Observation]] = {}
        for path, fingerprint in self.provider.discover(Walk()):
            source = self.provider.claim(path)
            with open(path, "rb", buffering=0) as file:
                reading = self.provider.observe(source, file, fingerprint.size, None)
            for thread_id, facts in reading.facts.items():
                stored = json.loads(json.dumps(facts))
                found.setdefault(thread_id, []).append(Observation(source, fingerprint, thread_id, stored))
        return found

    def sessions(self) -> dict:
        """Thread id -> Session or Excluded."""
        return {i: self.provider.merge(observations) for i, observations in self.observations().items()}

    def session(self, thread_id: str):
        return self.sessions()[thread_id]


def touch(path: Path, milliseconds: int) -> None:
    os.utime(path, ns=(milliseconds * 1_000_000,) * 2)

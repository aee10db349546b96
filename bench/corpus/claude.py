"""Claude Code transcripts as several of its versions wrote them (docs/formats/claude-code.md)."""

from __future__ import annotations

import os
import random
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bench.corpus import words
from bench.corpus.blocks import BRANCH, CWD, MINUTE, SESSION, Blocks, line

NEW, OLD = "2.1.240", "2.0.61"


def envelope(version: str, **changes: Any) -> dict[str, Any]:
    """What surrounds a message; the facts are placeholders."""
    fields = {
        "parentUuid": None, "isSidechain": False, "userType": "external", "entrypoint": "cli", "cwd": CWD,
        "sessionId": SESSION, "version": version, "gitBranch": BRANCH, "timestamp": MINUTE + ":07.113Z",
        "uuid": "5f0c2d1e-7a64-4b55-9a0e-3d1f2c9b8a70",
    }  # fmt: skip
    return fields | changes


def record(kind: str, message: dict[str, Any], version: str, **changes: Any) -> dict[str, Any]:
    """Old versions write the whole envelope before the message, new ones all but its first two fields after it."""
    body = {"type": kind, "message": message}
    around = envelope(version, **changes)
    if version == OLD:
        return around | body
    first = {key: around.pop(key) for key in ("parentUuid", "isSidechain")}
    return first | body | around


def _turn(version: str) -> Any:
    def make(dice: random.Random) -> list[dict[str, Any]]:
        tool = f"toolu_{dice.getrandbits(64):016x}"
        said = {"role": "assistant", "model": "claude-opus-4-7", "id": f"msg_{dice.getrandbits(64):016x}",
                "stop_reason": None, "usage": {"input_tokens": 3, "output_tokens": dice.randrange(900),
                                               "cache_read_input_tokens": dice.randrange(90_000)}}  # fmt: skip
        more = {} if version == OLD else {"effort": "high"}

        def uuid() -> str:
            return words.session_id(dice)

        def text(low: int, high: int) -> str:
            return words.sentence(dice, dice.randint(low, high))

        blocks: list[dict[str, Any]] = [
            {"type": "thinking", "thinking": text(40, 200), "signature": f"{dice.getrandbits(1600):0400x}"},
            {"type": "text", "text": text(20, 120)},
            {
                "type": "tool_use",
                "id": tool,
                "name": "Bash",
                "input": {"command": text(4, 12), "description": text(4, 9)},
            },
        ]
        records = [record("assistant", said | {"content": [b]}, version, uuid=uuid(), **more) for b in blocks]
        output = text(60, 900).replace(" the ", "\n")
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": tool, "content": output}]}
        records.append(
            record("user", result, version, uuid=uuid(), toolUseResult={"stdout": output[:2000], "interrupted": False})
        )
        if version != OLD:
            extra = {"type": "todo_reminder", "content": text(5, 60)}
            around = envelope(version, uuid=uuid())
            first = {key: around.pop(key) for key in ("parentUuid", "isSidechain")}
            records.append(first | {"attachment": extra, "type": "attachment"} | around)
        follow_up = {"role": "user", "content": text(5, 40)}
        records.append(record("user", follow_up, version, uuid=uuid(), permissionMode="default"))
        return records

    return make


TURNS = {version: Blocks(f"claude-{version}", _turn(version)) for version in (NEW, OLD)}


@dataclass
class Transcript:
    """One session to be written; what it does not set is drawn."""

    dice: random.Random
    cwd: str
    branch: str
    version: str = NEW
    entrypoint: str = "cli"
    id: str = ""
    prompt: str = ""
    ended: datetime = words.NEWEST
    custom_title: str | None = None
    ai_title: str | None = None
    size: int = 31_000
    opening: list[dict[str, Any]] = field(default_factory=list)
    closing: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.id = self.id or words.session_id(self.dice)
        self.prompt = self.prompt or words.prompt(self.dice)

    @property
    def facts(self) -> dict[str, str]:
        return {CWD: self.cwd, BRANCH: self.branch, SESSION: self.id}

    def own(self, **changes: Any) -> dict[str, Any]:
        """Changes that put this session's facts into an envelope."""
        base = {"cwd": self.cwd, "gitBranch": self.branch, "sessionId": self.id, "entrypoint": self.entrypoint}
        return base | changes

    def data(self) -> bytes:
        began = self.ended - timedelta(minutes=90)
        lines = [*self.opening]
        if self.version != OLD:
            lines.append({"type": "permission-mode", "permissionMode": "default", "sessionId": self.id})
            lines.append({"type": "file-history-snapshot", "messageId": self.id, "isSnapshotUpdate": False,
                          "snapshot": {"trackedFileBackups": {}, "timestamp": words.stamp(began)}})  # fmt: skip
        asked = {"role": "user", "content": self.prompt}
        lines.append(record("user", asked, self.version, **self.own(timestamp=words.stamp(began))))
        start = b"".join(map(line, lines))
        end = b"".join(map(line, self._end()))
        minute = (self.ended - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M")
        return start + TURNS[self.version].fill(self.dice, self.size - len(start) - len(end), self.facts, minute) + end

    def _end(self) -> list[dict[str, Any]]:
        said = {"role": "assistant", "model": "claude-opus-4-7", "content": [{"type": "text", "text": "Done."}]}
        lines = [record("assistant", said, self.version, **self.own(timestamp=words.stamp(self.ended)))]
        if self.ai_title:
            lines.append({"type": "ai-title", "aiTitle": self.ai_title, "sessionId": self.id})
        if self.custom_title:
            lines.append({"type": "custom-title", "customTitle": self.custom_title, "sessionId": self.id})
            lines.append({"type": "agent-name", "agentName": self.custom_title, "sessionId": self.id})
        if self.version != OLD:
            lines.append({"type": "last-prompt", "lastPrompt": self.prompt[:200], "sessionId": self.id})
        return lines + self.closing


def project_folder(home: str, cwd: str) -> str:
    return os.path.join(home, ".claude", "projects", re.sub(r"[^A-Za-z0-9]", "-", cwd))


def write(path: str, data: bytes, at: datetime) -> None:
    """A file with its time: the session's last use."""
    try:
        with open(path, "wb") as file:
            file.write(data)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    ns = int(at.timestamp() * 1000) * 1_000_000
    os.utime(path, ns=(ns, ns))


def put(home: str, session: Transcript) -> str:
    path = os.path.join(project_folder(home, session.cwd), session.id + ".jsonl")
    write(path, session.data(), session.ended)
    return path


def put_agents(home: str, session: Transcript, count: int) -> None:
    """Transcripts of sub-agents beside a session: no sessions, and never to be opened."""
    folder = os.path.join(project_folder(home, session.cwd), session.id, "subagents")
    for number in range(count):
        path = os.path.join(folder, f"agent-{session.dice.getrandbits(32):08x}{number}.jsonl")
        said = record("user", {"role": "user", "content": "Explore the tree."}, NEW, **session.own(isSidechain=True))
        body = TURNS[NEW].fill(session.dice, 8_000, session.facts, session.ended.strftime("%Y-%m-%dT%H:%M"))
        write(path, line(said) + body, session.ended)


def put_sidecar(home: str, session: Transcript, name: str) -> None:
    path = os.path.join(project_folder(home, session.cwd), session.id, "custom-title.json")
    write(path, line({"customTitle": name}).strip(), session.ended)

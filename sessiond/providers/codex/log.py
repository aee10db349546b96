"""Codex's records as a conversation, for every generation of rollouts. Pure but for reading the open file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from sessiond import jsonl
from sessiond.errors import UnreadableLogError
from sessiond.jsonl import BinaryFile
from sessiond.provider import Entry, Git, Metadata, Said, plain
from sessiond.providers.codex import compressed, document, layout, prompts

_NAMED = ("id", "timestamp", "cwd", "originator", "cli_version", "source", "model_provider", "forked_from_id", "git")
_CREDENTIAL = re.compile(r"(?<=://)[^/@\s]*@")


def is_log_path(path: str) -> bool:
    return layout.is_rollout(os.path.basename(path))


def records(file: BinaryFile) -> Iterator[dict[str, Any]]:
    """Every record of a rollout of any generation, plain or compressed, in order and in constant memory."""
    file.seek(0)
    start = file.read(4) or b""
    if start == compressed.MAGIC:
        stream = compressed.unpacked(file)
        if stream is None:
            raise UnreadableLogError("the log is compressed: install sessiond[zstd], or use Python 3.14 or newer")
        try:
            for line in jsonl.read_lines(stream):
                yield from jsonl.records(line)
        except compressed.DamagedError as error:
            raise UnreadableLogError(f"the compressed log is {error.strerror}; what came before it is whole") from error
        return
    if _is_document(file):
        for _, part in document.parts(file):
            yield part
        return
    for line in jsonl.read_lines(file):
        yield from jsonl.records(line)


def _is_document(file: BinaryFile) -> bool:
    """Whether the file is one indented object, as the first generation's were."""
    file.seek(0)
    start = (file.read(4096) or b"").lstrip(b"\xef\xbb\xbf \t\r\n")
    first, _, rest = start.partition(b"\n")
    return first.strip() == b"{" or (start.startswith(b'{"session":') and not rest.startswith(b"{"))


def opening(record: dict[str, Any]) -> Metadata | None:
    """From a `session_meta` record, or the first line of the generations before the envelope."""
    payload = record.get("payload")
    if record.get("type") == "session_meta" and isinstance(payload, dict):
        return _metadata(payload)
    session = record.get("session")
    if isinstance(session, dict):
        return _metadata(session)
    if "id" in record and "timestamp" in record and "type" not in record:
        return _metadata(record)
    return None


def _metadata(fields: dict[str, Any]) -> Metadata:
    git = fields.get("git")
    return Metadata(
        id=plain(fields.get("id")),
        timestamp=plain(fields.get("timestamp")),
        cwd=plain(fields.get("cwd")),
        originator=plain(fields.get("originator")),
        cli_version=plain(fields.get("cli_version")),
        source=fields.get("source"),
        model_provider=plain(fields.get("model_provider")),
        forked_from=plain(fields.get("forked_from_id")),
        git=_git(git) if isinstance(git, dict) else None,
        raw={key: value for key, value in fields.items() if key not in _NAMED},
    )


def _git(git: dict[str, Any]) -> Git:
    url = plain(git.get("repository_url"))
    return Git(plain(git.get("commit_hash")), plain(git.get("branch")), _CREDENTIAL.sub("", url) if url else None)


def entry(record: dict[str, Any]) -> Entry:
    if isinstance(record.get("type"), str) and "payload" in record:
        return Entry(plain(record.get("timestamp")), record["type"], record["payload"])
    return Entry(plain(record.get("timestamp")), None, record)


def said(entry: Entry) -> Said | None:
    """A message; events repeat most messages, so a caller passes over what was said just before."""
    payload = entry.payload
    if not isinstance(payload, dict):
        return None
    if entry.kind == "event_msg":
        role, text = _of_event(payload)
    elif entry.kind in ("response_item", None):
        role, text = _of_item(payload)
    else:
        return None
    return Said(role, text, entry.timestamp) if role and text.strip() else None


def _of_event(payload: dict[str, Any]) -> tuple[str, str]:
    if payload.get("type") == "user_message" and payload.get("kind") in ("plain", None):
        return "user", _string(payload.get("message"))
    if payload.get("type") == "agent_message":
        return "assistant", _string(payload.get("message"))
    item = payload.get("item")
    if payload.get("type") == "item_completed" and isinstance(item, dict):
        role = {"UserMessage": "user", "AgentMessage": "assistant"}.get(str(item.get("type")), "")
        return role, "\n".join(prompts.texts(item))
    return "", ""


def _of_item(item: dict[str, Any]) -> tuple[str, str]:
    role = item.get("role")
    if item.get("type") != "message" or role not in ("user", "assistant"):
        return "", ""
    if role == "user" and prompts.is_synthetic(item):
        return "", ""
    return str(role), "\n".join(prompts.texts(item))


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""

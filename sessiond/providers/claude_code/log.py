"""Claude Code's records as a conversation. Pure but for reading the open file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiond import jsonl
from sessiond.jsonl import BinaryFile
from sessiond.provider import Entry, Git, Metadata, Said, plain
from sessiond.providers.claude_code import layout

_NAMED = ("sessionId", "timestamp", "cwd", "entrypoint", "version", "gitBranch", "message", "toolUseResult")
_TALK = ("user", "assistant")


def is_log_path(path: str) -> bool:
    return layout.is_transcript_path(path)


def records(file: BinaryFile) -> Iterator[dict[str, Any]]:
    """Every record of a transcript, in order and in constant memory."""
    for line in jsonl.read_lines(file):
        yield from jsonl.records(line)


def opening(record: dict[str, Any]) -> Metadata | None:
    """From the first record that carries an id and a folder: a transcript has no header."""
    if plain(record.get("sessionId")) is None or plain(record.get("cwd")) is None:
        return None
    branch = plain(record.get("gitBranch"))
    return Metadata(
        id=plain(record["sessionId"]),
        timestamp=plain(record.get("timestamp")),
        cwd=plain(record["cwd"]),
        originator=plain(record.get("entrypoint")),
        cli_version=plain(record.get("version")),
        git=Git(branch=branch) if branch and branch != "HEAD" else None,
        raw={key: value for key, value in record.items() if key not in _NAMED},
    )


def entry(record: dict[str, Any]) -> Entry:
    return Entry(plain(record.get("timestamp")), plain(record.get("type")), record)


def said(entry: Entry) -> Said | None:
    """The text of a message; what tools were asked and answered is left out, and so is what no person sees."""
    record = entry.payload
    message = record.get("message")
    if entry.kind not in _TALK or record.get("isMeta") or not isinstance(message, dict):
        return None
    content = message.get("content")
    if isinstance(content, str):
        text = content
    elif isinstance(content, list):
        text = "\n".join(
            block["text"]
            for block in content
            if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
        )
    else:
        return None
    return Said(str(entry.kind), text, entry.timestamp) if text.strip() else None

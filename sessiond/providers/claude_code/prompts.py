"""What a person typed, told from what the program put into user records. Pure.

Rules and their sources: docs/formats/claude-code.md, "The first prompt".
"""

from __future__ import annotations

import re
from typing import Any

_INSERTED = (
    "<local-command-stdout>", "<local-command-stderr>", "<local-command-caveat>", "Caveat: The messages below",
    "<bash-input>", "<bash-stdout>", "<bash-stderr>", "<session-start-hook>", "<tick>", "<goal>", "<system-reminder>",
    "<task-notification>", "[Request interrupted by user", "Stop hook feedback:",
)  # fmt: skip
_EDITOR_CONTEXT = (("<ide_opened_file>", "</ide_opened_file>"), ("<ide_selection>", "</ide_selection>"))
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)


def is_typed(record: dict[str, Any]) -> bool:
    """Whether a user record can hold something a person wrote; what it does not say means unknown, not "no"."""
    if record.get("isMeta") or record.get("isCompactSummary") or record.get("isSidechain") or record.get("teamName"):
        return False
    if record.get("promptSource") == "system":
        return False
    origin = record.get("origin")
    if isinstance(origin, dict) and origin.get("kind", "human") != "human":
        return False
    return not any(isinstance(b, dict) and b.get("type") == "tool_result" for b in _blocks(record))


def texts(record: dict[str, Any]) -> list[str]:
    """All text of a message, in order."""
    content = _content(record)
    if isinstance(content, str):
        return [content]
    found = [b.get("text") for b in _blocks(record) if isinstance(b, dict) and b.get("type") == "text"]
    return [text for text in found if isinstance(text, str)]


def _content(record: dict[str, Any]) -> Any:
    message = record.get("message")
    return message.get("content") if isinstance(message, dict) else None


def _blocks(record: dict[str, Any]) -> list[Any]:
    content = _content(record)
    return content if isinstance(content, list) else []


def command(text: str) -> str | None:
    """The name of the slash command that a text stands for."""
    found = _COMMAND.search(text)
    return found[1] if found else None


def is_inserted(text: str) -> bool:
    """Whether a text was put there by the program; `text` has no white space around it."""
    return (
        not text
        or _COMMAND.search(text) is not None
        or text.startswith(_INSERTED)
        or text == "Warmup"
        or any(text.startswith(start) and text.find(end) == len(text) - len(end) for start, end in _EDITOR_CONTEXT)
    )

"""Which text is the first thing a person asked for (docs/formats/codex.md, first prompt). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sessiond.provider import one_line

_REQUEST = "## My request for Codex:"
_SYNTHETIC = re.compile(
    r"# AGENTS\.md instructions"
    r"|<(?:user_instructions|environment_context|turn_aborted|user_shell_command|subagent_notification|skill"
    r"|recommended_plugins|goal_context)>"
    r"|<(?:codex_internal_context\b|external_[^>\s]*>|hook_prompt\b)"
    r"|Warning: (?:apply_patch was requested via|The maximum number of unified exec processes"
    r"|Your account was flagged)",
    re.IGNORECASE,
)
_FOLDER = re.compile(r"<cwd>(.*?)</cwd>|Current working directory: ([^\n]+)", re.DOTALL)


def of_event(payload: dict[str, Any], behind: Sequence[dict[str, Any]] = ()) -> str | None:
    """The prompt that an `event_msg` of a user's message holds, None when it holds none.

    `behind`: the text parts at the end of an over-long line, which an image separates from the beginning.
    """
    if payload.get("type") == "user_message":
        if payload.get("kind", "plain") not in ("plain", None):
            return None
        return _shown(payload.get("message")) or _attachment(payload)
    if payload.get("type") != "item_completed":
        return None
    item = payload.get("item")
    if not isinstance(item, dict) or item.get("type") != "UserMessage":
        return None
    parts = [part for part in (*_list(item.get("content")), *behind) if isinstance(part, dict)]
    text = "\n".join(part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str))
    kinds = {str(part.get("type")) for part in parts}
    if _REQUEST in text:
        return _shown(text)
    return _shown(text) or (
        "[Image]" if kinds & {"image", "local_image"} else "[Audio]" if kinds & {"audio", "local_audio"} else None
    )


def of_goal(payload: dict[str, Any]) -> str | None:
    goal = payload.get("goal")
    return one_line(goal.get("objective")) if isinstance(goal, dict) else None


def of_message(item: dict[str, Any]) -> str | None:
    """The prompt in a message of the model's view: files without events have no other."""
    if item.get("type") != "message" or item.get("role") != "user":
        return None
    return None if is_synthetic(item) else _shown("\n".join(texts(item)))


def is_synthetic(item: dict[str, Any]) -> bool:
    """Whether a user's message was written by Codex itself: one such part makes the whole so."""
    return any(_SYNTHETIC.match(text.lstrip()) for text in texts(item))


def folder_in(item: dict[str, Any]) -> str | None:
    """The folder that a user message of the files before the envelope tells in its environment context."""
    if item.get("role") != "user":
        return None
    for text in texts(item):
        if text.lstrip().startswith("<environment_context>"):
            found = _FOLDER.search(text)
            if found:
                return (found[1] or found[2] or "").strip() or None
    return None


def _shown(text: object) -> str | None:
    if not isinstance(text, str):
        return None
    _, marked, request = text.partition(_REQUEST)
    return one_line(request if marked else text)


def _attachment(payload: dict[str, Any]) -> str | None:
    if isinstance(payload.get("message"), str) and _REQUEST in payload["message"]:
        return None
    if payload.get("images") or payload.get("local_images"):
        return "[Image]"
    return "[Audio]" if payload.get("audio") or payload.get("local_audio") else None


def texts(item: dict[str, Any]) -> list[str]:
    """The text parts of a message."""
    content = item.get("content")
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in _list(content) if isinstance(part, dict) and isinstance(part.get("text"), str)]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []

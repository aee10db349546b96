"""What the records of a transcript say about its session. Pure.

A first-fact is taken from the first record that states it, a last-fact from the last one. Each is kept with the offset
of its line, so that facts of several parts of a file combine in any order: the smaller offset wins for a first-fact,
the larger one for a last-fact. Which record a fact comes from is said at its reader below, why in
docs/formats/claude-code.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sessiond.jsonl import BinaryFile
from sessiond.provider import one_line, plain, time_ms
from sessiond.providers.claude_code import prompts
from sessiond.providers.claude_code.activity import CONVERSATION_KEYS, is_conversation
from sessiond.providers.claude_code.directory import last_directory, worktree
from sessiond.providers.claude_code.known import Known
from sessiond.providers.claude_code.records import Lines, Record
from sessiond.providers.claude_code.summary import last_summary

PLACEHOLDER = "<synthetic>"
"""The model of answers that no model gave."""

# -- first-facts -----------------------------------------------------------------------------------------------------


def first_facts(lines: Lines, known: Known) -> None:
    """Add the first-facts that are not known yet."""
    if "opening" not in known:
        _opening(lines, known)
    if "created_ms" not in known:
        _put_first(lines, known, "created_ms", b'"timestamp"', lambda record: time_ms(record.get("timestamp")))
    if "first_cwd" not in known or known["first_cwd"][0] > lines.chunk.start:
        first_directory(lines, known)
    if "entrypoint" not in known:
        _put_first(lines, known, "entrypoint", b'"entrypoint"', lambda record: plain(record.get("entrypoint")))
    if "first_prompt" not in known:
        _first_prompt(lines, known)


def first_directory(lines: Lines, known: Known) -> None:
    """`cwd` of the first record that has one; where the beginning has none, of the first one known."""
    _put_first(lines, known, "first_cwd", b'"cwd"', lambda record: plain(record.get("cwd")))


def _put_first(lines: Lines, known: Known, fact: str, key: bytes, read: Callable[[Record], Any]) -> None:
    for offset, record in lines.first(key):
        value = read(record)
        if value is not None:
            known[fact] = offset, value
            return


def _opening(lines: Lines, known: Known) -> None:
    """What the first conversation record says of the kind of session; a fork carries its parent on every record."""
    for offset, record in lines.first(*CONVERSATION_KEYS):
        if not is_conversation(record):
            continue
        opening: Record = {}
        if record.get("isSidechain") is True:
            opening["sidechain"] = True
        if plain(record.get("teamName")):
            opening["teammate"] = True
        kind = plain(record.get("sessionKind"))
        if kind:
            opening["kind"] = kind
        parent = record.get("forkedFrom")
        if isinstance(parent, dict) and plain(parent.get("sessionId")):
            opening["forked_from"] = plain(parent.get("sessionId"))
        known["opening"] = offset, opening
        return


def _first_prompt(lines: Lines, known: Known) -> None:
    """The first text a person typed, from `user` records."""
    for offset, record in lines.first(b'"user"'):
        if record.get("type") == "user" and prompts.is_typed(record):
            for text in map(str.strip, prompts.texts(record)):
                line = None if prompts.is_inserted(text) else one_line(text)
                if line:
                    known["first_prompt"] = offset, line
                    known.pop("command", None)
                    return
    if "command" not in known:
        _first_command(lines, known)


def _first_command(lines: Lines, known: Known) -> None:
    """The first slash command, from `user` records and, in newer versions, `local_command` ones: the last resort."""
    for offset, record in lines.first(b"<command-name>"):
        kind = record.get("type")
        content = record.get("content")
        texts: list[str] = []
        if kind == "user" and prompts.is_typed(record):
            texts = prompts.texts(record)
        elif kind == "system" and record.get("subtype") == "local_command" and isinstance(content, str):
            texts = [content]
        for text in texts:
            name = one_line(prompts.command(text))
            if name:
                known["command"] = offset, name
                return


# -- last-facts ------------------------------------------------------------------------------------------------------


def last_facts(lines: Lines, known: Known, name: str, file: BinaryFile) -> None:
    """Add the last-facts of a chunk, but for those that are known from a later place already.

    `name` is the project folder's, which the session's directory is told by.
    """
    start = lines.chunk.start
    for table, search in ((_LAST, lines.last), (_LAST_NOTES, lines.last_note)):
        for fact, key, read in table:
            if fact not in known or known[fact][0] <= start:
                for offset, record in search(key):
                    value = read(record)
                    if value is not None:
                        known[fact] = offset, value
                        break
    if "cwd" not in known or known["cwd"][0] <= start:
        last_directory(lines, known, name)
    if "summary" not in known or known["summary"][0] <= start:
        found = last_summary(lines, file)
        if found is not None:
            known["summary"] = found


def _branch(record: Record) -> str | None:
    """`gitBranch` of the last record with that key; empty and `HEAD` mean that there is none."""
    value = record.get("gitBranch")
    if not isinstance(value, str):
        return None
    return "" if value == "HEAD" else plain(value) or ""


def _version(record: Record) -> str | None:
    """`version`: the program that wrote the last record with an envelope."""
    return plain(record.get("version"))


def _mode(record: Record) -> str | None:
    """`permissionMode` of `permission-mode` records and of user records, whichever is later."""
    if record.get("type") not in ("permission-mode", "user") or record.get("isSidechain") is True:
        return None
    return plain(record.get("permissionMode"))


def _model(record: Record) -> str | None:
    """`message.model` of the last assistant record that is neither a placeholder nor a sub-agent's."""
    if record.get("type") != "assistant" or record.get("isSidechain") is True:
        return None
    model = _said_model(record)
    return None if model == PLACEHOLDER else model


def _effort(record: Record) -> str | None:
    """`effort` of the last such record that carries one (2.1.212 and later)."""
    if record.get("type") != "assistant" or record.get("isSidechain") is True or _said_model(record) == PLACEHOLDER:
        return None
    return plain(record.get("effort"))


def _said_model(record: Record) -> str | None:
    message = record.get("message")
    return plain(message.get("model")) if isinstance(message, dict) else None


def _title(kind: str, key: str) -> Callable[[Record], str | None]:
    """The last title of one kind that is not empty."""
    return lambda record: one_line(record.get(key)) if record.get("type") == kind else None


_LAST: tuple[tuple[str, bytes, Callable[[Record], Any]], ...] = (
    ("branch", b'"gitBranch"', _branch),
    ("version", b'"version"', _version),
    ("permission_mode", b'"permissionMode"', _mode),
    ("model", b'"assistant"', _model),
    ("effort", b'"effort"', _effort),
)
_LAST_NOTES: tuple[tuple[str, bytes, Callable[[Record], Any]], ...] = (
    ("custom_title", b'"customTitle"', _title("custom-title", "customTitle")),
    ("ai_title", b'"aiTitle"', _title("ai-title", "aiTitle")),
    ("agent_name", b'"agentName"', _title("agent-name", "agentName")),
    ("worktree", b'"worktreeSession"', worktree),
)

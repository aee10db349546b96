"""Sessions of the first generation (April to August 2025): one JSON document, `{"session":{…},"items":[…]}`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sessiond.jsonl import BinaryFile
from sessiond.provider import plain
from sessiond.providers.codex import prompts
from sessiond.providers.codex.header import NO_GENERATION, of_meta, thread_id

_BLOCK_BYTES = 1 << 18
_VALUE_CHARS = 16 << 20
"""A larger value ends the reading."""
_SPACE = " \t\r\n,:\ufeff"
_decoder = json.JSONDecoder(strict=False)


def observe(file: BinaryFile, size: int, most_items: int = 1000) -> tuple[str | None, dict[str, Any]]:
    """The session's id and facts: its folder and first prompt are told by its first items."""
    facts: dict[str, Any] = {"generation": NO_GENERATION}
    own_id = None
    if size == 0:
        return None, {}
    is_document = False
    for number, (name, value) in enumerate(parts(file)):
        is_document = True
        if name == "session":
            own_id = thread_id(value)
            facts |= of_meta(value, None)
            continue
        if "cwd" not in facts:
            _put(facts, "cwd", plain(prompts.folder_in(value)))
        if "prompt" not in facts:
            _put(facts, "prompt", prompts.of_message(value))
        if value.get("role") == "assistant" and "prompt" not in facts:
            facts["talk"] = 1
        if "prompt" in facts or number > most_items:
            break
    return (own_id, facts) if is_document else (None, {})


def parts(file: BinaryFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """`("session", …)` and then `("item", …)` for each item, in constant memory; ends where the text is broken."""
    text = _Text(file)
    if not text.take("{"):
        return
    while (name := text.value()) is not None and isinstance(name, str):
        if name == "items" and text.take("["):
            while not text.take("]"):
                item = text.value()
                if item is None:
                    return
                if isinstance(item, dict):
                    yield "item", item
            continue
        value = text.value()
        if value is None:
            return
        if name == "session" and isinstance(value, dict):
            yield "session", value


class _Text:
    """The document as a text that is read as far as it is needed."""

    def __init__(self, file: BinaryFile) -> None:
        self._file = file
        file.seek(0)
        self._text = ""
        self._at = 0
        self._rest = b""
        self._ended = False

    def _more(self) -> bool:
        block = self._file.read(max(_BLOCK_BYTES, len(self._text))) or b""
        if not block:
            self._ended = True
            return False
        block = self._rest + block
        cut = len(block)
        while cut > len(block) - 4 and cut > 0 and block[cut - 1] & 0xC0 == 0x80:
            cut -= 1
        if cut > 0 and block[cut - 1] >= 0xC0:
            cut -= 1
        else:
            cut = len(block)
        self._rest = block[cut:]
        self._text = self._text[self._at :] + block[:cut].decode("utf-8", "replace")
        self._at = 0
        return True

    def _skip(self) -> str:
        """The next character that separates nothing; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, sign: str) -> bool:
        if self._skip() != sign:
            return False
        self._at += 1
        return True

    def value(self) -> Any:
        """The next JSON value; None when there is no whole one."""
        if not self._skip():
            return None
        while True:
            try:
                value, end = _decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError):
                value, end = None, 0
            if end and (end < len(self._text) or self._ended):
                self._at = end
                return value
            if len(self._text) - self._at > _VALUE_CHARS or not self._more():
                if end:
                    self._at = end
                return value


def _put(facts: dict[str, Any], key: str, value: Any) -> None:
    if value is not None:
        facts[key] = value

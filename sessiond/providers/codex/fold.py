"""The fold over a rollout's lines: search the bytes for the wanted keys, parse the lines that hit. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from sessiond.jsonl import CUT, blocks_at_end, parse, records
from sessiond.provider import one_line, plain, time_ms
from sessiond.providers.codex import prompts
from sessiond.providers.codex.header import branch_of, thread_id, whole_payload
from sessiond.providers.codex.settings import SETTINGS, SETTINGS_KEYS, newest_settings

Facts = dict[str, Any]

EVENTS = 1
"""The file has events, so that prompts come from them alone."""
FROM_MESSAGE = 2
"""The prompt is that of a message, because no event was seen yet."""
WAS_GAP = 4
"""The file has, or had, a part that nobody read in order: what is appended is no longer the contiguous prefix."""

_TOLD = {key: 8 << number for number, key in enumerate((*SETTINGS, "provider", "name", "branch"))}
"""Last fact -> the flag that the suffix told it: the gap before it is older."""
OF_TAIL = sum(_TOLD.values())

SETTINGS_TAIL_BYTES = 1 << 20
"""How far back the settings of the last turn are looked for when the end of the file does not hold them."""
_TIMED_LINES = 64
"""How many broken lines at the end may hide the last record's time."""
_PROMPT_LINES = 400
"""How many lines may look like a prompt and be none."""

_PROMPT_KEYS = (b'"user_message"', b'"UserMessage"', b'"thread_goal_updated"')
_TALK_KEYS = (b'"assistant"', b'"agent_message"', b'"function_call"')


class Fold:
    """The facts of one file while its lines go by, in order."""

    def __init__(self, facts: Facts, own_id: str | None, flags: int = 0) -> None:
        self.facts = facts
        self.flags = flags
        self._id = own_id

    def prefix(self, data: bytes) -> None:
        """Lines that follow without a gap on all that was seen."""
        if not data:
            return
        if "generation" in self.facts and "cwd" not in self.facts:
            self._folder(data)
        self._prompt(data)
        self._latest(data)

    def suffix(self, data: bytes) -> None:
        """Lines behind a gap: only what the newest lines tell."""
        self.flags |= self._latest(data)
        self._talk(data)

    def middle(self, data: bytes) -> None:
        """Lines out of the gap, in order: older than a suffix, newer than the prefix."""
        known = dict(self.facts)
        self._prompt(data)
        self._latest(data)
        for key in told_by_tail(self.flags):
            put(self.facts, key, known.get(key))
        if "updated_ms" in known:
            self.facts["updated_ms"] = max(known["updated_ms"], self.facts["updated_ms"])

    def late(self, data: bytes) -> None:
        """Lines behind the gap once more, for the first prompt."""
        self._prompt(data)

    @staticmethod
    def is_enough(tail: bytes) -> bool:
        """Whether a tail tells when the last record was written and, within reason, the last turn's settings."""
        if _last_time(tail) is None:
            return False
        return len(tail) >= SETTINGS_TAIL_BYTES or any(key in tail for key in SETTINGS_KEYS)

    # -- first facts -------------------------------------------------------------------------------------------------

    def _folder(self, data: bytes) -> None:
        """Files before the envelope tell their folder in what the model is told of its surroundings."""
        for _, record in records_with(data, (b"<environment_context>",)):
            folder = plain(prompts.folder_in(record))
            if folder is not None:
                self.facts["cwd"] = folder
                return

    def _prompt(self, data: bytes) -> None:
        facts = self.facts
        if not self.flags & EVENTS and b'"event_msg"' in data:
            self.flags |= EVENTS
            if self.flags & FROM_MESSAGE:
                self.flags &= ~FROM_MESSAGE
                del facts["prompt"]
                facts["talk"] = 1
        if "prompt" not in facts and self.flags & EVENTS:
            self._prompt_of_events(data)
        if "prompt" not in facts:
            self._prompt_of_messages(data)
            self._talk(data)
        if "prompt" in facts:
            facts.pop("talk", None)

    def _prompt_of_events(self, data: bytes) -> None:
        for line, record in islice(records_with(data, _PROMPT_KEYS), _PROMPT_LINES):
            payload = record.get("payload")
            if not isinstance(payload, dict) or record.get("type") != "event_msg":
                continue
            prompt = prompts.of_event(payload, blocks_at_end(line) if CUT in line else ())
            if prompt is not None:
                self.facts["prompt"] = prompt
                return
            if payload.get("type") == "thread_goal_updated" and "goal" not in self.facts:
                put(self.facts, "goal", prompts.of_goal(payload))

    def _prompt_of_messages(self, data: bytes) -> None:
        facts = self.facts
        for _, record in islice(records_with(data, (b'"user"',)), _PROMPT_LINES):
            item = record.get("payload") if record.get("type") == "response_item" else record
            if not isinstance(item, dict):
                continue
            prompt = prompts.of_message(item)
            if prompt is None:
                continue
            if self.flags & EVENTS:
                facts["talk"] = 1
            else:
                facts["prompt"] = prompt
                self.flags |= FROM_MESSAGE
            return

    def _talk(self, data: bytes) -> None:
        facts = self.facts
        if "prompt" not in facts and "talk" not in facts and any(key in data for key in _TALK_KEYS):
            facts["talk"] = 1

    # -- last facts --------------------------------------------------------------------------------------------------

    def _latest(self, data: bytes) -> int:
        """Take over what the newest lines tell; what was among it, as flags."""
        told = 0
        moment = _last_time(data)
        if moment is not None:
            self.facts["updated_ms"] = moment
        if b'"session_meta"' in data:
            told |= self._git(data)
        if b'"thread_name_updated"' in data:
            told |= self._name(data)
        settings = newest_settings(data)
        for key, value in settings.items():
            put(self.facts, key, value)
            told |= _TOLD[key]
        return told

    def _git(self, data: bytes) -> int:
        """A later header of the same thread corrects its git facts; one of another thread is copied history."""
        told = 0
        for line, record in records_with(data, (b'"session_meta"',)):
            payload = record.get("payload") if record.get("type") == "session_meta" else None
            if not isinstance(payload, dict) or thread_id(payload) != self._id:
                continue
            payload = whole_payload(payload, line)
            if isinstance(payload.get("git"), dict):
                put(self.facts, "branch", branch_of(payload))
                told = _TOLD["branch"]
        return told

    def _name(self, data: bytes) -> int:
        """The name of this thread: a fork that copied the history of another one has that one's names, too."""
        told = 0
        for _, record in records_with(data, (b'"thread_name_updated"',)):
            payload = record.get("payload")
            if not isinstance(payload, dict) or payload.get("type") != "thread_name_updated":
                continue
            if payload.get("thread_id") in (None, self._id):
                put(self.facts, "name", one_line(payload.get("thread_name")))
                told = _TOLD["name"]
        return told


def told_by_tail(flags: int) -> tuple[str, ...]:
    """The facts that a gap cannot change, because the lines behind it told them."""
    return tuple(key for key, flag in _TOLD.items() if flags & flag)


def _last_time(data: bytes) -> int | None:
    """The time of the last whole record that has one."""
    end = len(data)
    for _ in range(_TIMED_LINES):
        end = _without_space(data, end)
        if end == 0:
            return None
        start = data.rfind(b"\n", 0, end) + 1
        if data.startswith(b'{"timestamp":"', start) and data[end - 1] == 0x7D:
            moment = time_ms(data[start + 14 : start + 14 + 40].partition(b'"')[0].decode("ascii", "replace"))
        else:
            moment = time_ms((parse(data[start:end]) or {}).get("timestamp"))
        if moment is not None:
            return moment
        end = start
    return None


def _without_space(data: bytes, end: int) -> int:
    """Where the last line that is not blank ends."""
    while end > 0:
        start = max(0, end - 4096)
        kept = len(data[start:end].rstrip(b"\n\r \t\0"))
        if kept:
            return start + kept
        end = start
    return 0


def records_with(data: bytes, keys: tuple[bytes, ...]) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The records of the lines that hold one of the keys, in order, each with its line."""
    return ((line, record) for line in lines_with(data, keys) for record in records(line))


def lines_with(data: bytes, keys: tuple[bytes, ...]) -> Iterator[bytes]:
    """The lines that hold one of the keys, in order."""
    at = {key: data.find(key) for key in keys}
    while True:
        hits = [offset for offset in at.values() if offset >= 0]
        if not hits:
            return
        hit = min(hits)
        start = data.rfind(b"\n", 0, hit) + 1
        stop = data.find(b"\n", hit)
        if stop < 0:
            stop = len(data)
        yield data[start:stop]
        for key, offset in at.items():
            if 0 <= offset < stop:
                at[key] = data.find(key, stop)


def put(facts: Facts, key: str, value: Any) -> None:
    """State a fact; None: that there is none."""
    if value is None:
        facts.pop(key, None)
    else:
        facts[key] = value

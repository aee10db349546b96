"""Reading a transcript: its two ends at first, then what was appended, at last the gap between. Pure over a file.

The state says where reading goes on and how to notice that the file was rewritten. While there is no gap, continued
reading yields what reading the whole yields; across a gap it never knows less than before and never loses a name.
"""

from __future__ import annotations

from typing import Any

from sessiond import jsonl
from sessiond.jsonl import BinaryFile, Chunk, chunks
from sessiond.model import Previous, Reading
from sessiond.provider import time_ms
from sessiond.providers.claude_code.activity import CONVERSATION_KEYS, is_conversation, last_activity
from sessiond.providers.claude_code.facts import first_directory, first_facts, last_facts
from sessiond.providers.claude_code.known import BEFORE_ALL, LAST, PLACED, Known, combined, load, store
from sessiond.providers.claude_code.records import Lines
from sessiond.providers.claude_code.state import State

GAP_BLOCK_BYTES = 4 << 20


class Reader:
    """One reading of one transcript."""

    def __init__(self, file: BinaryFile, size: int, name: str) -> None:
        self._file = file
        self._size = size
        self._name = name
        self._known: Known = {}
        self._seen: Known | None = None
        """What is known with the unfinished last line."""
        self._end = 0
        self._head_end: int | None = None
        self._gap: tuple[int, int] | None = None
        self._seal: list[int] | None = None

    # -- the three ways ----------------------------------------------------------------------------------------------

    def whole(self) -> None:
        """First sight: the head, and the tail when the head does not reach the end."""
        head = jsonl.read_head(self._file, self._size)
        reached = head.end >= self._size or not head.complete
        if reached:
            self._seal = jsonl.seal_of(head)
            self._add(head, first=True)
            return
        tail = jsonl.read_tail(self._file, head.end, self._size, _has_activity)
        if tail.start == head.end:
            self._add(head, first=True)
            self._add(tail, first=True)
            return
        self._leave_gap(head.end, tail.start)
        self._add(tail, first=False)
        seen, self._seen = self._seen, None
        self._fold(head, self._known, first=True, activity="updated_ms" not in self._known)
        if seen is not None:
            self._seen = combined(self._known, seen)
        self._end = tail.end

    def appended(self, facts: dict[str, Any], state: State) -> None:
        """Go on where the last reading stopped."""
        self._known = load(facts if state.committed is None else state.committed, state.places)
        self._end, self._head_end, self._gap = state.end, state.head_end, state.gap
        chunk = jsonl.read_appended(self._file, state.end, self._size)
        if chunk is None:
            chunk = jsonl.read_tail(self._file, state.end, self._size, _has_activity)
            if chunk.start > state.end:
                self._leave_gap(state.end, chunk.start)
        self._add(chunk, first=self._head_end is None)
        if self._gap is not None:
            self._reach_back()

    def is_better_anew(self) -> bool:
        """Whether reading anew would leave no gap where there was one, and so tell first facts from behind it."""
        if self._head_end is None or self._tail_start() > self._head_end:
            return False
        anew = Reader(self._file, self._size, self._name)
        anew.whole()
        return anew._head_end is None

    def _tail_start(self) -> int:
        """Where the tail would begin on reading anew: it grows to the last activity."""
        active_at = self._known["updated_ms"][0] if "updated_ms" in self._known else BEFORE_ALL
        want = chunks.TAIL_BYTES
        while self._size - want > active_at and want < chunks.TAIL_MAX_BYTES:
            want *= 2
        return self._size - want

    def _reach_back(self) -> None:
        """Take as much of the gap's end into the tail as reading anew would."""
        low, high = self._gap or (0, 0)
        reached = max(low, self._tail_start())
        if reached >= high:
            return
        for chunk in jsonl.read_back(self._file, reached, high, high - reached):
            self._look_into(chunk)
            self._gap = (low, chunk.start) if chunk.start > low else None

    def _look_into(self, chunk: Chunk) -> None:
        """Add what a part of the gap tells and no later place has told."""
        lines = Lines(chunk)
        found = {fact: place for fact, place in self._known.items() if place[0] >= chunk.end}
        last_facts(lines, found, self._name, self._file)
        last_activity(lines, found)
        self._known = combined(self._known, found)
        if self._seen is not None:
            self._seen = combined(self._seen, found)

    def keep_middle(self, facts: dict[str, Any], state: State, *, untouched: bool, moved: bool) -> None:
        """After reading anew: what the old reading knew and this one passed over.

        `untouched` says that nothing but the file's times changed; then what was looked through stays looked through.
        Otherwise what was known is believed until something is found in the gap, or nothing in all of it. The directory
        of a file that was `moved` is told anew: by the name of the folder where it lies now.
        """
        if self._gap is None:
            return
        low, high = self._gap
        unplaced = low - 1  # behind the beginning, before all of the gap
        old = load(
            facts if state.committed is None else state.committed,
            state.places,
            unplaced if state.end > low else BEFORE_ALL,
        )
        if moved:
            old.pop("cwd", None)
        middle = {
            fact: found if untouched else (unplaced, found[1])
            for fact, found in old.items()
            if fact in LAST and unplaced <= found[0] < high
        }
        for fact, (_, value) in old.items():
            if fact not in LAST and (untouched or fact != "updated_ms"):
                middle[fact] = high, value
        self._known = combined(self._known, middle)
        if self._seen is not None:
            self._seen = combined(self._seen, middle)
        if untouched:
            self._gap = state.gap

    def fill(self, facts: dict[str, Any], state: State, budget_bytes: int) -> None:
        """Look through the gap, last block first, for what nearer places did not tell; the rest is given up."""
        self._known = load(facts if state.committed is None else state.committed, state.places)
        if state.committed is not None:
            late = {fact: (state.end, value) for fact, value in facts.items() if state.committed.get(fact) != value}
            self._seen = self._known | late
        self._end, self._head_end, self._seal = state.end, state.head_end, state.seal
        if state.gap is not None:
            low = max(state.gap[0], state.gap[1] - budget_bytes)
            for chunk in jsonl.read_back(self._file, low, state.gap[1], GAP_BLOCK_BYTES):
                self._look_into(chunk)
            if low == state.gap[0]:
                self._look_into_head(low - 1)
                self._look_behind_head(low)

    def _look_into_head(self, unplaced: int) -> None:
        """After all of the gap: what only the head can tell.

        That is a time that is newer than those of copies at the end, and what was kept from before a rewrite, at
        `unplaced`, and was nowhere in the gap.
        """
        head = Lines(jsonl.read_head(self._file, self._size))
        told: Known = {}
        last_facts(head, told, self._name, self._file)
        last_activity(head, told)
        self._known = _confirmed(self._known, told, unplaced)
        if self._seen is not None:
            self._seen = _confirmed(self._seen, told, unplaced)

    def _look_behind_head(self, start: int) -> None:
        """After all of the gap: the first-facts that the head did not tell."""
        known = dict(self._known)
        for chunk in jsonl.read_blocks(self._file, start, self._end, GAP_BLOCK_BYTES):
            if "first_prompt" in known and "opening" in known:
                break
            first_facts(Lines(chunk), known)
        self._known = known
        if self._seen is not None:
            self._seen = combined(self._seen, known)

    # -- results -----------------------------------------------------------------------------------------------------

    def reading(self, session_id: str) -> Reading:
        committed = store(self._known)
        facts = committed if self._seen is None else store(self._seen)
        state = State(
            self._end,
            self._size,
            self._seal or jsonl.seal(self._file, self._end),
            self._head_end,
            self._gap,
            None
            if self._head_end is None
            else {f: at for f, (at, _) in self._known.items() if f in PLACED and at >= 0},
            None if facts == committed else committed,
        )
        gap_bytes = 0 if self._gap is None else self._gap[1] - self._gap[0]
        return Reading({session_id: facts}, state.encode(), gap_bytes)

    # -- parts -------------------------------------------------------------------------------------------------------

    def _leave_gap(self, low: int, high: int) -> None:
        if self._head_end is None:
            self._head_end = low
        self._gap = (low if self._gap is None else self._gap[0], high)

    def _add(self, chunk: Chunk, *, first: bool) -> None:
        """Fold a chunk into what is known; an unfinished last line counts but is not consumed."""
        self._end = chunk.end
        if chunk.complete:
            self._fold(chunk, self._known, first=first)
            return
        cut = chunk.data.rfind(b"\n") + 1
        self._fold(chunk._replace(data=chunk.data[:cut]), self._known, first=first)
        self._seen = dict(self._known)
        self._fold(Chunk(chunk.end, chunk.end, chunk.data[cut:]), self._seen, first=first)

    def _fold(self, chunk: Chunk, known: Known, *, first: bool, activity: bool = True) -> None:
        if not chunk.data:
            return
        lines = Lines(chunk)
        if first:
            first_facts(lines, known)
        elif "first_cwd" not in known:
            first_directory(lines, known)
        last_facts(lines, known, self._name, self._file)
        if activity:
            last_activity(lines, known)
        if "opening" not in known and "updated_ms" not in known and "readable" not in known and lines.holds_any():
            known["readable"] = chunk.start, True


def _confirmed(known: Known, head: Known, unplaced: int) -> Known:
    """What is known but for last-facts that were found nowhere; the head tells those, and maybe a newer time."""
    kept = {fact: found for fact, found in known.items() if fact not in LAST or found[0] != unplaced}
    return combined(kept, {fact: found for fact, found in head.items() if fact not in kept or fact == "updated_ms"})


def _has_activity(data: bytes) -> bool:
    """Whether a conversation record with a time is in sight."""
    lines = Lines(Chunk(0, len(data), data))
    return any(
        is_conversation(record) and time_ms(record.get("timestamp")) is not None
        for key in CONVERSATION_KEYS
        for _, record in lines.last(key)
    )


def observe(file: BinaryFile, size: int, session_id: str, name: str, previous: Previous | None) -> Reading:
    """What a transcript says, from where the last reading stopped if the file was only appended to since.

    `name` is the name of its project folder.
    """
    reader = Reader(file, size, name)
    state = None if previous is None else State.decode(previous.state)
    facts = None if previous is None else previous.facts.get(session_id)
    if state is None or facts is None:
        reader.whole()
        return reader.reading(session_id)
    seal = jsonl.seal(file, state.end)
    grown = size >= state.end and size != state.size and seal == state.seal
    moved = previous is not None and previous.moved  # the directory was told by the name of the folder it lay in
    if grown and not moved and not _outgrown(state, size):
        reader.appended(facts, state)
        if not reader.is_better_anew():
            return reader.reading(session_id)
        reader = Reader(file, size, name)
    reader.whole()
    if seal[0] == state.seal[0] and (moved or not grown):
        untouched = size == state.size and seal == state.seal and not moved
        reader.keep_middle(facts, state, untouched=untouched, moved=moved)
    return reader.reading(session_id)


def _outgrown(state: State, size: int) -> bool:
    """Whether a head and a tail tell more than the little that was read and a tail."""
    return state.end < chunks.HEAD_BYTES and size - state.end > chunks.APPEND_MAX_BYTES


def fill(file: BinaryFile, session_id: str, name: str, previous: Previous, budget_bytes: int) -> Reading:
    """The same reading with its gap closed; unchanged when the file is no longer the one that was read."""
    state = State.decode(previous.state)
    facts = previous.facts.get(session_id)
    if state is None or facts is None or jsonl.seal(file, state.end) != state.seal:
        return Reading(previous.facts, previous.state)
    reader = Reader(file, state.size, name)
    reader.fill(facts, state, budget_bytes)
    return reader.reading(session_id)

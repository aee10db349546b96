"""What a rollout says about its thread: a fold over its records that continues where it stopped.

Facts of a rollout, all optional (the vendor's formats are told in docs/formats/codex.md):

    generation    stated for the files before the envelope of September 2025, which nothing can resume
    created_ms, cwd, branch, provider, version, origin, source, hidden, forked_from   from the first line
    prompt, goal  the first thing asked for; the goal that was set before it
    name          the last name of the builds that kept it here
    model, effort, approval, sandbox, cwd   from the last turn's settings
    updated_ms    time of the last record
    talk          1 when somebody spoke or history was taken over, though no prompt was found
    sealed        1 when the file is compressed and there is no decoder
"""

import json
import struct
from typing import Any, NamedTuple

from sessiond import jsonl
from sessiond.jsonl import CUT, BinaryFile, Chunk
from sessiond.model import Previous
from sessiond.providers.codex.fold import EVENTS, FROM_MESSAGE, OF_TAIL, WAS_GAP, Facts, Fold, put, told_by_tail
from sessiond.providers.codex.header import opening

_STATE = struct.Struct("<HQQQQII")
_BOM = b"\xef\xbb\xbf"


class State(NamedTuple):
    """Where reading continues."""

    flags: int
    size: int
    """Of the file when it was read."""
    offset: int
    """Up to where its lines are consumed."""
    gap_from: int
    gap_to: int
    seal_first: int
    seal_last: int
    """Checksums of what was read: as long as they hold, the file was only appended to."""

    @property
    def gap_bytes(self) -> int:
        return self.gap_to - self.gap_from

    def pack(self) -> bytes:
        return _STATE.pack(*self)


def unpack(state: bytes) -> State | None:
    return State(*_STATE.unpack(state)) if len(state) == _STATE.size else None


def observe(
    file: BinaryFile, size: int, previous: Previous | None, named_id: str | None
) -> tuple[str | None, Facts, State]:
    """The thread's id, by the first line or else by the file's name, what the file says, and where to continue."""
    old = unpack(previous.state) if previous is not None else None
    if previous is None or old is None or len(previous.facts) != 1 or size < old.size or not _is_same(file, old):
        return _from_scratch(file, size, named_id)
    ((thread_id, facts),) = previous.facts.items()
    if not old.offset or ("created_ms" not in facts and old.offset < jsonl.HEAD_BYTES):  # the header may still come
        return _from_scratch(file, size, named_id)
    if size > old.size:
        return thread_id, *_continued(file, size, thread_id, dict(facts), old)
    found, new_facts, new = _from_scratch(file, size, named_id)
    return found, new_facts, _kept(new_facts, new, facts, old) if new.gap_bytes else new


def _is_same(file: BinaryFile, old: State) -> bool:
    return [old.seal_first, old.seal_last] == jsonl.seal(file, old.offset)


def _from_scratch(file: BinaryFile, size: int, named_id: str | None) -> tuple[str | None, Facts, State]:
    head = jsonl.read_head(file, size)
    header, rest = opening(_whole_lines(head).removeprefix(_BOM), named_id)
    thread_id = header.id or named_id
    fold = Fold(header.facts, thread_id)
    fold.prefix(rest)
    offset, gap = head.end, (0, 0)
    if size > jsonl.HEAD_BYTES and head.end < size and head.complete:
        offset, gap = _follow_up(fold, jsonl.read_tail(file, head.end, size, fold.is_enough), head.end)
    return thread_id, fold.facts, State(fold.flags, size, offset, *gap, *jsonl.seal(file, offset))


def _whole_lines(chunk: Chunk) -> bytes:
    """The lines of a chunk; a last one without a newline only when it is a whole record and not the half of one."""
    if chunk.complete:
        return chunk.data
    before, newline, last = chunk.data.rpartition(b"\n")
    return chunk.data if _is_record(last) else before + newline


def _is_record(line: bytes) -> bool:
    if CUT in line:
        return line.endswith(b"}")
    try:
        return isinstance(json.loads(line.removeprefix(_BOM)), dict)
    except (ValueError, RecursionError):
        return False


def _follow_up(fold: Fold, tail: Chunk, since: int) -> tuple[int, tuple[int, int]]:
    """Fold the last lines in; up to where the file is consumed, and the gap before them."""
    if tail.start <= since:
        fold.prefix(_whole_lines(tail))
        return tail.end, (0, 0)
    fold.flags = (fold.flags | WAS_GAP) & ~OF_TAIL
    fold.suffix(_whole_lines(tail))
    return tail.end, (since, tail.start)


def _kept(facts: Facts, new: State, known: Facts, old: State) -> State:
    """The same file looked at once more: what its middle told stays known."""
    flags = new.flags & ~WAS_GAP
    if flags & FROM_MESSAGE and old.flags & EVENTS:  # there are events, but beyond the head
        flags &= ~FROM_MESSAGE
        del facts["prompt"]
    for key in ("prompt", "goal", "talk"):
        if key in known:
            facts.setdefault(key, known[key])
    if "prompt" in facts:
        facts.pop("talk", None)
    for key in told_by_tail(OF_TAIL & ~flags):
        put(facts, key, known.get(key))
    flags |= old.flags
    return new._replace(flags=flags, gap_from=old.gap_from, gap_to=old.gap_to)


def _continued(file: BinaryFile, size: int, thread_id: str, facts: Facts, old: State) -> tuple[Facts, State]:
    fold = Fold(facts, thread_id, old.flags)
    chunk = jsonl.read_appended(file, old.offset, size)
    offset, gap = old.offset, (old.gap_from, old.gap_to)
    if chunk is None:
        offset, new_gap = _follow_up(fold, jsonl.read_tail(file, old.offset, size, fold.is_enough), old.offset)
        if new_gap[1]:
            gap = (old.gap_from if old.gap_bytes else new_gap[0], new_gap[1])
    else:
        (fold.suffix if fold.flags & WAS_GAP else fold.prefix)(_whole_lines(chunk))
        offset = chunk.end
    return fold.facts, State(fold.flags, size, offset, *gap, *jsonl.seal(file, offset))


def fill(file: BinaryFile, thread_id: str, facts: Facts, old: State, budget_bytes: int) -> tuple[Facts, State]:
    """The same facts with what the gap adds to them. It is looked at once; a part beyond the budget is passed over.

    A prompt that was not in the gap either is looked for behind it, where only the newest lines were of interest.
    """
    fold = Fold(dict(facts), thread_id, old.flags)
    start, end = old.gap_from, old.gap_to
    if "prompt" in facts:
        start = max(start, end - budget_bytes)
    stop = start + budget_bytes
    for chunk in jsonl.read_blocks(file, start, min(end, stop), jsonl.HEAD_BYTES):
        fold.middle(chunk.data)
    if end <= stop:
        for chunk in jsonl.read_blocks(file, end, min(old.offset, stop), jsonl.HEAD_BYTES):
            if "prompt" in fold.facts:
                break
            fold.late(chunk.data)
    if "prompt" in fold.facts or old.offset <= stop:
        fold.flags &= ~WAS_GAP  # nothing is left unread that could hold the first prompt
    return fold.facts, old._replace(flags=fold.flags, gap_from=0, gap_to=0)


def fold_stream(chunks: Any, named_id: str | None) -> tuple[str | None, Facts]:
    """The same from consecutive blocks of whole lines."""
    fold: Fold | None = None
    own_id = None
    for data in chunks:
        if fold is not None:
            fold.prefix(data)
            continue
        header, rest = opening(data.removeprefix(_BOM), named_id)
        own_id = header.id or named_id
        fold = Fold(header.facts, own_id)
        fold.prefix(rest)
    return own_id, fold.facts if fold is not None else {}

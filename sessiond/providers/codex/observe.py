"""Reading the files of Codex, each kind by its own rules. Pure over an open file."""

from __future__ import annotations

from typing import Any

from sessiond.jsonl import BinaryFile
from sessiond.model import Previous, Reading, Source
from sessiond.providers.codex import compressed, document, layout, names, rollouts


def observe(source: Source, file: BinaryFile, size: int, previous: Previous | None) -> Reading:
    """What a names file or a rollout of any generation says."""
    if source.kind == layout.NAMES:
        return Reading(names.observe(file, size))
    if source.path.endswith(layout.COMPRESSED):
        thread_id, facts, problem = compressed.observe(file, size, layout.id_in_name(source.path))
        return _one(source.path, thread_id, facts)._replace(problem=problem)
    if source.path.endswith(".json"):
        thread_id, facts = document.observe(file, size)
        return _one(source.path, thread_id, facts)
    thread_id, facts, state = rollouts.observe(file, size, previous, layout.id_in_name(source.path))
    return _one(source.path, thread_id, facts)._replace(state=state.pack(), gap_bytes=state.gap_bytes)


def fill(source: Source, file: BinaryFile, previous: Previous, budget_bytes: int) -> Reading:
    """The same of a rollout with its gap looked through; of all others what was known."""
    state = rollouts.unpack(previous.state)
    if source.kind != layout.ROLLOUT or state is None or len(previous.facts) != 1:
        return Reading(previous.facts, previous.state)
    ((thread_id, facts),) = previous.facts.items()
    facts, state = rollouts.fill(file, thread_id, facts, state, budget_bytes)
    return Reading({thread_id: facts}, state.pack())


def _one(path: str, thread_id: str | None, facts: dict[str, Any]) -> Reading:
    """A rollout's reading; its first line decides whose it is, its name when that cannot be read."""
    key = thread_id or layout.id_in_name(path)
    if key is None:
        return Reading({}, problem="neither its first line nor its name tells a thread id")
    return Reading({key: facts})

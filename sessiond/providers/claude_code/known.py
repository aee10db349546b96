"""What is known of a session from parts of its transcript, and how parts combine. Pure."""

from __future__ import annotations

from typing import Any

Known = dict[str, tuple[int, Any]]
"""Fact -> (offset of its line, value)."""

LAST = frozenset({
    "branch", "version", "permission_mode", "model", "effort", "custom_title", "ai_title", "agent_name", "summary",
    "worktree", "cwd",
})  # fmt: skip
"""Facts of which the last one in the file counts; of all others but `updated_ms` the first one does."""
PLACED = LAST | {"updated_ms"}
BEFORE_ALL = -1
"""Offset of a fact whose place no longer matters: all that is read from now on is newer."""


def combined(one: Known, other: Known) -> Known:
    """What two parts of a file tell together, in whatever order they were read."""
    known = dict(one)
    for fact, found in other.items():
        if fact not in known:
            known[fact] = found
        elif fact in LAST:
            known[fact] = max(known[fact], found, key=_place)
        elif fact == "updated_ms":
            known[fact] = max(known[fact], found, key=_value)
        else:
            known[fact] = min(known[fact], found, key=_place)
    if "first_prompt" in known:
        known.pop("command", None)
    return known


def _place(found: tuple[int, Any]) -> int:
    return found[0]


def _value(found: tuple[int, Any]) -> Any:
    return found[1]


def store(known: Known) -> dict[str, Any]:
    """The facts as the index keeps them; the first directory is left out where it is the session's own."""
    facts = {fact: known[fact][1] for fact in sorted(known)}
    if "opening" in known or "updated_ms" in known:
        facts.pop("readable", None)
    if "cwd" in facts:
        if "first_cwd" not in facts:
            facts["first_cwd"] = None
        elif facts["first_cwd"] == facts["cwd"]:
            del facts["first_cwd"]
    return facts


def load(facts: dict[str, Any], places: dict[str, int] | None, unplaced: int = BEFORE_ALL) -> Known:
    """The reverse of `store`; `unplaced` is where a last-fact is put whose offset was not kept."""
    places = places or {}
    known = {fact: (places.get(fact, unplaced if fact in LAST else BEFORE_ALL), facts[fact]) for fact in facts}
    if "cwd" in facts and "first_cwd" not in facts:
        known["first_cwd"] = BEFORE_ALL, facts["cwd"]
    elif "first_cwd" in facts and facts["first_cwd"] is None:
        del known["first_cwd"]
    return known

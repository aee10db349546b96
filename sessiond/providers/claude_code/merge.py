"""What all files that tell of one session amount to. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sessiond.model import Excluded, Observation, Reason, Session
from sessiond.providers.claude_code.folder import repository
from sessiond.providers.claude_code.layout import APP, TRANSCRIPT, project_folder

_TITLES = (("custom", "custom_title"), ("ai", "ai_title"), ("agent", "agent_name"), ("summary", "summary"))
_LAST_RESORTS = (("prompt", "first_prompt"), ("command", "command"))


def merge(observations: Sequence[Observation]) -> Session | Excluded:
    """One row of all copies of a transcript and its name file, or why there is none."""
    copies = [o for o in observations if o.source.kind == TRANSCRIPT]
    names = [o for o in observations if o.source.kind != TRANSCRIPT]
    if len(copies) > 1:
        copies.sort(key=_activity, reverse=True)
    if not copies:
        return Excluded(Reason.MISSING)
    reasons = [why_not(copy) for copy in copies]
    copies = [copy for copy, reason in zip(copies, reasons, strict=True) if reason is None]
    if not copies:
        return Excluded(reasons[0] or Reason.NO_CONVERSATION)
    newest = copies[0]
    facts = newest.facts
    opening = facts.get("opening") or {}
    cwd = facts.get("cwd") or facts.get("first_cwd")
    title_from, title = _title(copies, names)
    origin = facts.get("entrypoint")
    worktree = facts.get("worktree")
    return Session(
        app=APP,
        id=newest.id,
        home=newest.source.home,
        path=newest.source.path,
        cwd=cwd,
        repo=repository(cwd, tuple(worktree) if worktree else None),
        branch=facts.get("branch") or None,
        title=title,
        title_from=title_from,
        first_prompt=facts.get("first_prompt"),
        model=facts.get("model"),
        effort=facts.get("effort"),
        approval=facts.get("permission_mode"),
        version=facts.get("version"),
        origin=origin,
        created_ms=facts.get("created_ms"),
        updated_ms=_activity(newest)[0],
        bytes=newest.fingerprint.size,
        interactive=not (origin or "").startswith("sdk-"),
        forked_from=opening.get("forked_from"),
    )


def _activity(copy: Observation) -> tuple[int, int, str]:
    """When a copy was last used, by its records; the file's own time only where no record has one."""
    mtime_ms = copy.fingerprint.mtime_ns // 1_000_000
    return copy.facts.get("updated_ms") or mtime_ms, mtime_ms, copy.source.path


def why_not(copy: Observation) -> Reason | None:
    """Why a transcript is no session of a person, if so."""
    opening = copy.facts.get("opening") or {}
    if copy.fingerprint.size == 0:
        return Reason.EMPTY
    if opening.get("sidechain"):
        return Reason.SIDECHAIN
    if opening.get("teammate"):
        return Reason.TEAMMATE
    if str(opening.get("kind", "")).startswith("daemon"):
        return Reason.DAEMON
    if "opening" in copy.facts or "updated_ms" in copy.facts:
        return None
    return Reason.NO_CONVERSATION if copy.facts.get("readable") else Reason.UNREADABLE


def _title(copies: list[Observation], names: list[Observation]) -> tuple[str | None, str | None]:
    """(kind, title): kind first, recency second. The name file is newer than any name in a transcript."""
    if len(names) > 1:
        folder = project_folder(copies[0].source)
        names.sort(key=lambda o: (project_folder(o.source) == folder, o.fingerprint.mtime_ns), reverse=True)
    for kind, fact in _TITLES:
        for observation in [*names, *copies]:
            title = observation.facts.get(fact)
            if title:
                return kind, title
    for kind, fact in _LAST_RESORTS:
        title = copies[0].facts.get(fact)
        if title:
            return kind, title
    return None, None

"""Claude Code's half of the mixed home: one function for each way in which a transcript can be told or mistold."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from bench.corpus import claude, words
from bench.corpus.answers import Answer, Answers
from bench.corpus.blocks import line
from bench.corpus.claude import Transcript

Case = Callable[[str, Transcript], "tuple[str, str | None]"]
"""Writes one session and says its right title and branch."""
PER_CASE = 30


def _first_line(text: str) -> str:
    return " ".join(text.split())[:200].rstrip()


def custom(home: str, s: Transcript) -> tuple[str, str | None]:
    s.custom_title = s.custom_title or words.title(s.dice)
    claude.put(home, s)
    return s.custom_title, s.branch


def old_generation(home: str, s: Transcript) -> tuple[str, str | None]:
    s.version = claude.OLD
    return custom(home, s)


def generated_after_custom(home: str, s: Transcript) -> tuple[str, str | None]:
    s.closing = [{"type": "ai-title", "aiTitle": words.title(s.dice), "sessionId": s.id}]
    return custom(home, s)


def generated(home: str, s: Transcript) -> tuple[str, str | None]:
    s.ai_title = words.title(s.dice)
    claude.put(home, s)
    return s.ai_title, s.branch


def prompt_only(home: str, s: Transcript) -> tuple[str, str | None]:
    claude.put(home, s)
    return _first_line(s.prompt), s.branch


def sidecar(home: str, s: Transcript) -> tuple[str, str | None]:
    custom(home, s)
    name = words.title(s.dice) + " (renamed)"
    claude.put_sidecar(home, s, name)
    return name, s.branch


def name_in_the_middle(home: str, s: Transcript) -> tuple[str, str | None]:
    """The only custom title megabytes from both ends."""
    s.size = 3_000_000
    data = s.data()
    cut = data.index(b"\n", len(data) // 2) + 1
    name = words.title(s.dice) + " (buried)"
    buried = line({"type": "custom-title", "customTitle": name, "sessionId": s.id})
    path = os.path.join(claude.project_folder(home, s.cwd), s.id + ".jsonl")
    claude.write(path, data[:cut] + buried + data[cut:], s.ended)
    return name, s.branch


def branch_moved(home: str, s: Transcript) -> tuple[str, str | None]:
    later = words.branch(s.dice) + "-2"
    said = {"role": "user", "content": "And now on the other branch."}
    s.closing = [claude.record("user", said, claude.NEW, **s.own(gitBranch=later, timestamp=words.stamp(s.ended)))]
    title, _ = custom(home, s)
    return title, later


def detached(home: str, s: Transcript) -> tuple[str, str | None]:
    said = {"role": "user", "content": "Detached now."}
    s.closing = [claude.record("user", said, claude.NEW, **s.own(gitBranch="HEAD", timestamp=words.stamp(s.ended)))]
    title, _ = custom(home, s)
    return title, None


def giant_first_line(home: str, s: Transcript) -> tuple[str, str | None]:
    """A pasted image before everything else."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 900_000}}
    content = [image, {"type": "text", "text": "What is wrong in this picture?"}]
    s.opening = [claude.record("user", {"role": "user", "content": content}, s.version, **s.own())]
    return custom(home, s)


def torn_last_line(home: str, s: Transcript) -> tuple[str, str | None]:
    title, branch = custom(home, s)
    with open(os.path.join(claude.project_folder(home, s.cwd), s.id + ".jsonl"), "ab") as file:
        file.write(b'{"type":"assistant","message":{"role":"assi')
    return title, branch


def damaged_middle(home: str, s: Transcript) -> tuple[str, str | None]:
    s.custom_title = words.title(s.dice)
    data = s.data()
    cut = data.index(b"\n", len(data) // 2) + 1
    path = os.path.join(claude.project_folder(home, s.cwd), s.id + ".jsonl")
    claude.write(path, data[: cut - 40] + b"\0" * 5000 + b"\n" + data[cut:], s.ended)
    return s.custom_title, s.branch


def ide_wrapper(home: str, s: Transcript) -> tuple[str, str | None]:
    """The editor's context in the first block, the prompt in the second."""
    content = [
        {"type": "text", "text": "<ide_opened_file>The user opened a.py</ide_opened_file>"},
        {"type": "text", "text": "<b>why</b> is this bold?"},
    ]
    s.opening = [claude.record("user", {"role": "user", "content": content}, s.version, **s.own())]
    claude.put(home, s)
    return "<b>why</b> is this bold?", s.branch


def programmatic(home: str, s: Transcript) -> tuple[str, str | None]:
    s.entrypoint = "sdk-py"
    return custom(home, s)


def fork(home: str, s: Transcript) -> tuple[str, str | None]:
    """A copy under an id of its own; what it was copied from is deleted by now."""
    s.custom_title = words.title(s.dice) + " (fork)"
    origin = {"sessionId": words.session_id(s.dice), "messageUuid": words.session_id(s.dice)}
    said = {"role": "user", "content": s.prompt}
    s.opening = [claude.record("user", said, claude.NEW, **s.own(forkedFrom=origin))]
    return custom(home, s)


def two_copies(home: str, s: Transcript) -> tuple[str, str | None]:
    """One id in two folders: the newer activity names the session."""
    older = Transcript(s.dice, s.cwd + "-moved", s.branch, id=s.id, ended=s.ended - timedelta(days=3), prompt=s.prompt)
    claude.put(home, older)
    return custom(home, s)


CASES: tuple[Case, ...] = (
    custom, old_generation, generated_after_custom, generated, prompt_only, sidecar, name_in_the_middle, branch_moved,
    detached, giant_first_line, torn_last_line, damaged_middle, ide_wrapper, programmatic, fork, two_copies,
)  # fmt: skip


def make(home: str, answers: Answers) -> None:
    for case in CASES:
        for number in range(PER_CASE):
            dice = words.rng("mixed", case.__name__, number)
            session = _session(dice)
            title, branch = case(home, session)
            answers.sessions.append(Answer("claude-code", session.id, f"claude: {case.__name__}", title, branch))
            if number % 5 == 0:
                claude.put_agents(home, session, 2)
    _no_sessions(home, answers)


def _session(dice: random.Random) -> Transcript:
    return Transcript(
        dice, words.folder(dice, 20), words.branch(dice), ended=words.moment(dice), size=words.size_bytes(dice)
    )


def _no_sessions(home: str, answers: Answers) -> None:
    changes: dict[str, dict[str, Any]] = {
        "a side chain": {"isSidechain": True}, "a teammate": {"teamName": "red", "agentName": "one"},
        "a background helper": {"sessionKind": "daemon"},
    }  # fmt: skip
    for what, change in changes.items():
        for number in range(4):
            session = _session(words.rng("no", what, number))
            data = session.data()
            marked = [line(record | change) if "uuid" in record else line(record) for record in _parsed(data)]
            folder = claude.project_folder(home, session.cwd)
            claude.write(f"{folder}/{session.id}.jsonl", b"".join(marked), session.ended)
            answers.not_sessions[session.id] = what
    for number in range(4):
        session = _session(words.rng("no", "conversation", number))
        folder = claude.project_folder(home, session.cwd)
        title = line({"type": "custom-title", "customTitle": "Nothing said", "sessionId": session.id})
        claude.write(f"{folder}/{session.id}.jsonl", title, session.ended)
        answers.not_sessions[session.id] = "a title without a conversation"
        empty = words.session_id(session.dice)
        claude.write(f"{folder}/{empty}.jsonl", b"", session.ended)
        answers.not_sessions[empty] = "an empty file"
        claude.write(f"{folder}/agent-{number:08x}.jsonl", session.data(), session.ended)
        answers.not_sessions[f"agent-{number:08x}"] = "an old sub-agent file"


def _parsed(data: bytes) -> list[dict[str, Any]]:
    import json  # noqa: PLC0415

    return [json.loads(text) for text in data.splitlines()]

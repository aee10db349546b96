"""Is it right: the mixed home's answers against what the index, the seed's method and fast-resume list."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from bench.corpus.answers import Answers, load
from bench.process import run
from bench.report import Figure, Section, table
from bench.scenes.first_index import output
from bench.setting import Setting

Listed = Mapping[str, tuple[str | None, str | None]]
"""Id -> (title, branch)"""


def measure(setting: Setting) -> Section:
    answers = load(setting.home("mixed"))
    section = Section(
        "Coverage",
        "python -m bench --only coverage",
        "A home of every generation, archived and compressed files, names megabytes from both ends, renames, rows that "
        "only the `-wal` holds, and things that look like sessions and are none. Its maker knows the right answers.",
    )
    run(setting.once("mixed", "--gaps", fresh=True))
    ours = _index(os.path.join(setting.state("mixed"), "index.db"))
    run(setting.seed("build", "mixed"))
    found: dict[str, Listed] = {"sessiond --once --gaps": ours, "the seed's method": _seed(setting)}
    if setting.peer:
        found["fast-resume"] = _peer(setting)
    rows = [_row(what, answers, listed) for what, listed in found.items()]
    section.tables.append(table(("", "sessions", "names", "branches", "listed, but none"), rows))
    missed = _missed(answers, found)
    if missed:
        section.tables.append("**Wrong or missing, by kind**\n\n" + table(("kind", *found), missed))
    right = _counts(answers, ours)
    everything = len(answers.sessions)
    section.figures += [
        Figure("mixed home: sessions found", 100 * right["session"] / everything, 100, " %", least=True),
        Figure("mixed home: names right", 100 * right["title"] / everything, 100, " %", least=True),
        Figure("mixed home: branches right", 100 * right["branch"] / everything, 100, " %", least=True),
        Figure("mixed home: listed that is no session", _extra(answers, ours), 0),
    ]
    return section


def _index(path: str) -> Listed:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    rows = connection.execute("SELECT id, title, branch FROM sessions").fetchall()
    connection.close()
    return {i: (title, branch) for i, title, branch in rows}


def _seed(setting: Setting) -> Listed:
    with open(os.path.join(setting.state("mixed-seed"), "index.json"), encoding="utf-8") as file:
        return {row["id"]: (row["title"], row["branch"]) for row in json.load(file)}


def _peer(setting: Setting) -> Listed:
    command = setting.fast_resume("mixed", fresh=True)
    command = replace(command, argv=[command.argv[0], "--json", "--all"])
    rows = json.loads(output(command))["sessions"]
    return {row.get("id") or row.get("session_id"): (row.get("title"), None) for row in rows}


def _same_title(shown: str | None, right: str) -> bool:
    """Shown as a whole, or cut: at least 40 characters of a longer one."""
    shown = " ".join((shown or "").split()).rstrip("….")
    return shown == right.rstrip(".") or (len(shown) >= 40 and right.startswith(shown))


def _counts(answers: Answers, listed: Listed) -> Counter[str]:
    right: Counter[str] = Counter()
    for answer in answers.sessions:
        if answer.id in listed:
            title, branch = listed[answer.id]
            right["session"] += 1
            right["title"] += _same_title(title, answer.title)
            right["branch"] += branch == answer.branch
    return right


def _extra(answers: Answers, listed: Listed) -> int:
    return len(listed.keys() - {a.id for a in answers.sessions})


def _row(what: str, answers: Answers, listed: Listed) -> tuple[str, ...]:
    right, everything = _counts(answers, listed), len(answers.sessions)
    branches = "not stored" if what == "fast-resume" else f"{right['branch']} of {everything}"
    return (
        what,
        f"{right['session']} of {everything}",
        f"{right['title']} of {everything}",
        branches,
        str(_extra(answers, listed)),
    )


def _missed(answers: Answers, found: Mapping[str, Listed]) -> list[tuple[str, ...]]:
    """Per kind, how many of its sessions lack or show a wrong name or branch (fast-resume: name)."""
    rows = []
    kinds = {a.case: [b for b in answers.sessions if b.case == a.case] for a in answers.sessions}
    for kind, wanted in kinds.items():
        wrong = [
            sum(
                a.id not in listed
                or not _same_title(listed[a.id][0], a.title)
                or (what != "fast-resume" and listed[a.id][1] != a.branch)
                for a in wanted
            )
            for what, listed in found.items()
        ]
        if any(wrong):
            rows.append((kind, *(f"{n} of {len(wanted)}" if n else "" for n in wrong)))
    return rows

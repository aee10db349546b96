"""The right answers of a made home: what must be listed, under which name and branch, and what must not."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Answer:
    app: str
    id: str
    case: str
    """What the session shows; the table of misses names it."""
    title: str
    branch: str | None


@dataclass
class Answers:
    sessions: list[Answer] = field(default_factory=list)
    not_sessions: dict[str, str] = field(default_factory=dict)
    """Id -> what it is instead."""

    def save(self, home: str) -> None:
        with open(os.path.join(home, "answers.json"), "w", encoding="utf-8") as file:
            json.dump({"sessions": [asdict(a) for a in self.sessions], "not_sessions": self.not_sessions}, file)


def load(home: str) -> Answers:
    with open(os.path.join(home, "answers.json"), encoding="utf-8") as file:
        table = json.load(file)
    return Answers([Answer(**a) for a in table["sessions"]], table["not_sessions"])

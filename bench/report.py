"""What a measurement amounts to, and docs/benchmarks.md made of it."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime


@dataclass
class Figure:
    """One promise: `measured` must be at most `limit` (`least`: at least)."""

    what: str
    measured: float
    limit: float
    unit: str = ""
    least: bool = False

    @property
    def met(self) -> bool:
        return self.measured >= self.limit if self.least else self.measured <= self.limit


@dataclass
class Section:
    """One subject: tables of what was measured, and the promises that go with them."""

    title: str
    command: str
    """Measures this section alone."""
    text: str = ""
    tables: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)


def number(value: float) -> str:
    """Three digits that mean something."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def summary(sections: Sequence[Section]) -> str:
    rows = [
        (
            f.what,
            ("at least " if f.least else "") + number(f.limit) + f.unit,
            number(f.measured) + f.unit,
            "yes" if f.met else "**no**",
        )
        for section in sections
        for f in section.figures
    ]
    return table(("what", "to reach", "measured", "reached"), rows)


INTRODUCTION = """\
Written by `make bench`. Times of different machines cannot be compared, so every promise is a ratio between things
measured side by side in one run: each command in turn, again and again, and the median taken. Spreads are the smallest
and largest value. CPU is user and system time together."""


def render(sections: Sequence[Section], conditions: str, notes: str) -> str:
    """The whole page."""
    parts = [
        "# Benchmarks",
        INTRODUCTION,
        conditions,
        "## Promises and what was measured",
        summary(sections),
    ]
    if notes:
        parts.append(notes)
    for section in sections:
        parts += [f"## {section.title}", f"`{section.command}`"]
        parts += [section.text] if section.text else []
        parts += section.tables
    return "\n\n".join(parts) + "\n"


def conditions(programs: dict[str, str], factor: float) -> str:
    load = os.getloadavg()
    rows = [
        ("date", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
        ("system", f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores"),
        ("Python", f"{platform.python_implementation()} {sys.version.split()[0]}"),
        ("SQLite", sqlite3.sqlite_version),
        ("load when it began", f"{load[0]:.1f} {load[1]:.1f} {load[2]:.1f}"),
        ("factor", f"{factor:g}"),
        *programs.items(),
    ]
    return table(("", ""), rows)

"""How large the index is, and what takes the room."""

from __future__ import annotations

import os
import sqlite3

from bench.process import run
from bench.report import Figure, Section, number, table
from bench.setting import Setting

LIMIT_BYTES = 2000


def measure(setting: Setting) -> Section:
    section = Section(
        "Size of the index",
        "python -m bench --only size",
        "Bytes of `index.db` after its checkpoint, by SQLite's dbstat.",
    )
    for name in ("1000", "10000"):
        run(setting.once(name, fresh=True))
        path = os.path.join(setting.state(name), "index.db")
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            (count,) = connection.execute("SELECT count(*) FROM sessions").fetchone()
            parts = _parts(connection)
        connection.close()
        size = os.path.getsize(path)
        rows = [(what, f"{used:,}", number(used / count)) for what, used in parts]
        rows.append(("whole file", f"{size:,}", number(size / count)))
        section.tables.append(f"**{count:,} sessions**\n\n" + table(("", "bytes", "a session"), rows))
        if name == "10000":
            section.figures.append(Figure("index, 10,000 sessions, bytes a session", size / count, LIMIT_BYTES, " B"))
    return section


def _parts(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    try:
        return connection.execute(
            "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 12"
        ).fetchall()
    except sqlite3.OperationalError:
        return []

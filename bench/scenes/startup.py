"""What a question costs from the key to the answer: whole processes against the bare interpreter and other programs."""

from __future__ import annotations

import os
from dataclasses import replace

from bench.corpus import words
from bench.process import Command, interleaved, run
from bench.report import Figure, Section, number, table
from bench.setting import Setting

LIMITS = {"10000": 2.0, "hidden": 2.3}


def measure(setting: Setting) -> Section:
    section = Section(
        "A question, whole process",
        "python -m bench --only startup",
        "The client, installed from the wheel by a current pip, with `--no-refresh`, as beside a living daemon.",
    )
    for name, limit in LIMITS.items():
        run(setting.once(name, fresh=False))  # an index that is not fresh would be told of, with another exit code
        run(setting.seed("build", name))
        if setting.peer:
            run(setting.fast_resume(name, "checkout"))
        series = interleaved(_commands(setting, name), max(21, setting.runs * 3), warm_up=2)
        bare = series["python -c pass"]
        rows = [
            (w, number(s.wall_ms), s.spread, number(s.cpu_ms), number(s.wall_ms / bare.wall_ms))
            for w, s in series.items()
        ]
        count = setting.scaled(100_000 if name == "hidden" else 10_000)
        section.tables.append(
            f"**{count:,} sessions**\n\n" + table(("", "wall ms", "spread", "CPU ms", "bare interpreter = 1"), rows)
        )
        ratio = series[f"sessions find {words.COMMON_WORD}"].wall_ms / bare.wall_ms
        section.figures.append(
            Figure(f"`sessions find WORD`, {count:,} rows, of a bare interpreter start", ratio, limit)
        )
    return section


def _commands(setting: Setting, name: str) -> dict[str, Command]:
    def find(*wanted: str) -> Command:
        return setting.client(name, "find", *wanted, "--no-refresh", "--limit", "20")

    index = os.path.join(setting.state(name), "index.db")
    commands = {
        "python -c pass": setting.plain("-c", "pass"),
        "python -c 'import click, sqlite3'": setting.plain("-c", "import click, sqlite3"),
        f"sessions find {words.COMMON_WORD}": find(words.COMMON_WORD),
        f"sessions find {words.RARE_WORD}": find(words.RARE_WORD),
        f"sessions find {words.MISSING_WORD}": find(words.MISSING_WORD),
        f"sessions find {words.SHORT_WORD}": find(words.SHORT_WORD),
        "sessions find fix checkout retry": find("fix", "checkout", "retry"),
        f"sessions find {words.COMMON_WORD} --json": find(words.COMMON_WORD, "--json"),
        "sessions path": setting.client(name, "path"),
        "the seed's method, find": setting.seed("find", name, words.COMMON_WORD),
    }
    if setting.sqlite:
        query = f"SELECT rowid FROM sessions_fts('{words.COMMON_WORD}') ORDER BY rowid DESC LIMIT 20"
        commands["sqlite3 on the index"] = replace(setting.plain(), argv=[setting.sqlite, "-readonly", index, query])
    if setting.peer:
        commands["fast-resume --no-refresh"] = setting.fast_resume(name, "--no-refresh", words.COMMON_WORD)
    if setting.ripgrep:
        argv = [setting.ripgrep, "-l", words.COMMON_WORD, setting.home(name) + "/.claude/projects"]
        commands["ripgrep over the tree"] = replace(setting.plain(), argv=argv)
    return commands

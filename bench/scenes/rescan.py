"""Looking again when nothing or one file changed, against a bare walk of the same files."""

from __future__ import annotations

import glob
import json
import os
import statistics

from bench.process import Command, interleaved, run
from bench.report import Figure, Section, number, table
from bench.scenes.first_index import output
from bench.setting import CHECKOUT, Setting

DAEMON, WHOLE = 2.0, 2.8


def measure(setting: Setting) -> Section:
    section = Section(
        "Rescan with nothing changed",
        "python -m bench --only rescan",
        "The bare walk lists the same folders, takes one stat of each session and sidecar, and keeps nothing. Inside: "
        "full scans of one living scanner, as the daemon makes them, beside the walk in the same process. Whole: "
        "processes from start to end, the walk too.",
    )
    for name in ("10000", "hidden", "flat"):
        _corpus(setting, name, section)
    return section


def _corpus(setting: Setting, name: str, section: Section) -> None:
    home, state = setting.home(name), setting.state(name)
    run(setting.once(name, fresh=True))
    env = setting.environment(home, state) | {"PYTHONPATH": CHECKOUT}
    child = Command([setting.python, "-m", "bench.inside", "rescan", home, str(setting.runs)], env)
    inside = json.loads(output(child))
    scan_ms, walk_ms = (statistics.median(wall for wall, _ in inside[key]) for key in ("scan_ms", "walk_ms"))
    commands = {
        "bare walk": setting.walk(name),
        "sessiond --once": setting.once(name, fresh=False),
        "sessions find, no daemon": setting.client(name, "find", "checkout", "--limit", "20"),
    }
    if setting.peer and name != "flat":
        commands["fast-resume, refresh and query"] = setting.fast_resume(name, "checkout")
    if name == "10000":
        commands["sessiond --once, one file changed"] = setting.once(name, fresh=False)
        commands["sessiond --once, one file changed"].before = lambda: _touch(home)
    series = interleaved(commands, setting.runs)
    bare = series["bare walk"]
    rows = [
        ("inside: bare walk", number(walk_ms), "", "", "1"),
        ("inside: full scan", number(scan_ms), "", "", number(scan_ms / walk_ms)),
    ]
    rows += [
        (w, number(s.wall_ms), s.spread, number(s.cpu_ms), number(s.wall_ms / bare.wall_ms)) for w, s in series.items()
    ]
    count = {"10000": 10_000, "hidden": 100_000, "flat": 107_000}[name]
    title = f"{setting.scaled(count):,} sessions" + (" in one folder" if name == "flat" else "")
    section.tables.append(
        f"**{title}**, {setting.runs} runs\n\n" + table(("", "wall ms", "spread", "CPU ms", "bare walk = 1"), rows)
    )
    if name != "flat":
        what = f"rescan of {count:,} files, nothing changed, of a bare walk"
        section.figures += [
            Figure(f"{what}: daemon", scan_ms / walk_ms, DAEMON),
            Figure(f"{what}: `--once`", series["sessiond --once"].wall_ms / bare.wall_ms, WHOLE),
            Figure(f"{what}: client", series["sessions find, no daemon"].wall_ms / bare.wall_ms, WHOLE),
        ]


def _touch(home: str) -> None:
    """Append one record to one transcript of the home."""
    path = min(glob.glob(os.path.join(home, ".claude", "projects", "*", "*.jsonl")))
    with open(path, "rb") as file:
        last = [text for text in file.read().splitlines() if b'"timestamp"' in text][-1]
    with open(path, "ab") as file:
        file.write(last + b"\n")

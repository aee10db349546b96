"""The first index of a home: whole process and inside it, against the seed's method and fast-resume."""

from __future__ import annotations

import json
import os
import statistics
import subprocess

from bench.process import Command, Series, interleaved, peak_mb
from bench.report import Figure, Section, number, table
from bench.setting import CHECKOUT, Setting

PEER_CPU, PEER_WALL, SEED_INSIDE, SEED_WHOLE = 0.8, 1.3, 0.3, 0.9


def measure(setting: Setting) -> Section:
    section = Section(
        "First index",
        "python -m bench --only first_index",
        "Index files removed before every run; the page cache is warm. fast-resume answers one query in the same run, "
        "and works on all cores: its CPU time is the fairer figure. Read: bytes asked of the kernel by read calls.",
    )
    for name in ("1000", "2000", "10000", "seed"):
        _corpus(setting, name, section)
    return section


def _corpus(setting: Setting, name: str, section: Section) -> None:
    commands = {"sessiond --once": setting.once(name, fresh=True), "the seed's method": setting.seed("build", name)}
    if setting.peer:
        commands["fast-resume"] = setting.fast_resume(name, "checkout", fresh=True)
    runs = max(5, setting.runs - 2) if name in ("10000", "seed") else setting.runs
    series = interleaved(commands, runs)
    ours = series["sessiond --once"]
    peaks = {what: peak_mb(command) for what, command in commands.items()}
    rows = [_row(what, done, ours, peaks[what]) for what, done in series.items()]
    title = "seed's shape" if name == "seed" else f"{setting.scaled(int(name)):,} sessions"
    section.tables.append(f"**{title}**, {_size(setting.home(name))}, {runs} runs\n\n" + table(_HEADER, rows))
    section.figures += _figures(setting, name, series, peaks["sessiond --once"])


_HEADER = ("whole process", "wall ms", "spread", "CPU ms", "read MB", "peak MB", "wall, sessiond = 1")


def _row(what: str, done: Series, ours: Series, peak: float) -> tuple[object, ...]:
    return (
        what, number(done.wall_ms), done.spread, number(done.cpu_ms), number(done.read_bytes / 1e6), number(peak),
        number(done.wall_ms / ours.wall_ms),
    )  # fmt: skip


def _figures(setting: Setting, name: str, series: dict[str, Series], peak: float) -> list[Figure]:
    ours, seed, peer = series["sessiond --once"], series["the seed's method"], series.get("fast-resume")
    if name == "seed":
        inside, theirs = inside_ms(setting, name)
        return [
            Figure("first index, seed's shape, inside the process, of the seed's method", inside / theirs, SEED_INSIDE),
            Figure("the same, whole `sessiond --once`, more than its inside", ours.wall_ms - inside, 60, " ms"),
        ]
    if name == "2000":
        return [
            Figure("first index, 2,000 sessions, whole, of the seed's method", ours.wall_ms / seed.wall_ms, SEED_WHOLE)
        ]
    figures = []
    if peer:
        what = f"first index, {int(name):,} sessions, of fast-resume's"
        figures.append(Figure(f"{what} CPU time", ours.cpu_ms / peer.cpu_ms, PEER_CPU))
        figures.append(Figure(f"{what} wall time", ours.wall_ms / peer.wall_ms, PEER_WALL))
    if name == "10000":
        figures.append(Figure("first index, 10,000 sessions, peak memory", peak, 40, " MB"))
    return figures


def inside_ms(setting: Setting, name: str) -> tuple[float, float]:
    """Medians of the time inside the process, ours and the seed's method, in turn."""
    ours, theirs = [], []
    state = setting.state(name + "-inside")
    env = setting.environment(setting.home(name), state) | {"PYTHONPATH": CHECKOUT}
    first = Command([setting.python, "-m", "bench.inside", "first"], env, setting.clearing(state))
    for _ in range(setting.runs):
        ours.append(json.loads(output(first))["wall_ms"])
        theirs.append(float(output(setting.seed("build", name)).split()[-2]))
    return statistics.median(ours), statistics.median(theirs)


def output(command: Command) -> str:
    """What a command prints; its time is not taken here."""
    if command.before is not None:
        command.before()
    done = subprocess.run(command.argv, env=command.env, capture_output=True, text=True, check=False)
    if done.returncode not in command.expect:
        raise RuntimeError(f"{' '.join(command.argv)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def _size(home: str) -> str:
    total = 0
    for folder, _, names in os.walk(home):
        total += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
    return f"{total / 1e6:,.0f} MB"

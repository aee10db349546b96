"""The running daemon under load and at rest: `python -m bench.daemon [--quick] [--only NAME]` prints a table.

Real processes over real files in a temporary folder. Linux alone: CPU time, memory and opened files come from procfs
and strace.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from bench.report import Figure, Section, number, table
from tests.kit.daemon import Daemon
from tests.kit.oracle import assert_sound, index_rows, oracle_rows
from tests.kit.world import World, id_of, until

STORM_FILES = 100
STORM_RATE = 100

WRITER = """
import os, sys, time
paths = sys.stdin.read().splitlines()
rate, seconds, kind = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
files = [(os.open(p, os.O_WRONLY | os.O_APPEND), os.path.basename(p)[:36]) for p in paths]
began = time.monotonic()
count = 0
while time.monotonic() - began < seconds:
    for fd, session in files:
        title = '{"type":"custom-title","customTitle":"%d","sessionId":"%s"}\\n' % (count, session)
        os.write(fd, title.encode())
    count += 1
    time.sleep(max(0.0, began + count / rate - time.monotonic()))
print(count)
"""
"""Appends a name to every file, round after round; prints how many rounds."""


@contextlib.contextmanager
def machine(sessions: int, projects: int = 20) -> Iterator[tuple[World, list[str]]]:
    """A temporary world with so many small sessions, and their paths."""
    folder = tempfile.mkdtemp(prefix="sessiond-bench-")
    try:
        world = World(folder)
        world.configure(rescan_s=60)
        paths = [world.claude(f"prompt {n}", project=f"-project-{n % projects}") for n in range(sessions)]
        yield world, paths
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def running(world: World) -> Iterator[Daemon]:
    daemon = Daemon(world)
    try:
        yield daemon.start()
        daemon.stop()
    finally:
        daemon.close()


def latency(*, quick: bool) -> Section:
    """From an append to a file that was quiet for a second until a query shows it."""
    count = 200 if quick else 2000
    took_ms = []
    with machine(300) as (world, paths), running(world):
        time.sleep(3)
        reader = sqlite3.connect(f"file:{world.index}?mode=ro", uri=True, isolation_level=None)
        with contextlib.closing(reader):
            for turn in range(count):
                path = paths[turn % len(paths)]
                world.name(path, f"name {turn}")
                began = time.monotonic()
                query = "SELECT title FROM sessions WHERE id = ?"
                while reader.execute(query, (id_of(path),)).fetchone()[0] != f"name {turn}":
                    if time.monotonic() - began > 10:
                        raise AssertionError(f"append {turn} was not seen in 10 s")
                    time.sleep(0.0005)
                took_ms.append((time.monotonic() - began) * 1000)
                time.sleep(0.005)
    took_ms.sort()
    p50, p99 = statistics.median(took_ms), took_ms[int(len(took_ms) * 0.99)]
    section = Section("Append to a quiet file until a query shows it", "python -m bench.daemon --only latency")
    section.tables.append(
        table(("appends", "p50 ms", "p99 ms", "largest ms"), [(count, number(p50), number(p99), number(took_ms[-1]))])
    )
    section.figures += [
        Figure("append to a quiet file until a query shows it, p50", p50, 30, " ms"),
        Figure("the same, p99", p99, 150, " ms"),
    ]
    return section


def storm(*, quick: bool) -> Section:
    """A hundred files that are appended to a hundred times a second each."""
    seconds = 6 if quick else 30
    with machine(STORM_FILES) as (world, paths), running(world) as daemon:
        time.sleep(1)
        rss_kb, cpu_s = daemon.stat("VmRSS"), daemon.cpu_s()
        began = time.monotonic()
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(STORM_RATE), str(seconds), "title"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        out, _ = writer.communicate("\n".join(paths))
        ended = time.monotonic()
        last = str(int(out) - 1)
        cpu_share = (daemon.cpu_s() - cpu_s) / (ended - began) * 100
        until(lambda: set(world.titles().values()) == {last}, "the last change of every file is seen", 20)
        late_s = time.monotonic() - ended
        after_kb = daemon.stat("VmRSS")
        reached = int(out) * STORM_FILES / (ended - began)
    section = Section("Storm", "python -m bench.daemon --only storm")
    section.tables.append(
        table(
            ("seconds", "appends a second", "CPU of one core %", "right after s", "RSS before MB", "after MB"),
            [
                (
                    seconds,
                    number(reached),
                    number(cpu_share),
                    number(late_s),
                    number(rss_kb / 1000),
                    number(after_kb / 1000),
                )
            ],
        )
    )
    section.figures += [
        Figure("storm: CPU of one core", cpu_share, 32, " %"),
        Figure("storm: until the index is right after its end", late_s, 1.0, " s"),
        Figure("RSS after the storm", after_kb / 1000, 40, " MB"),
    ]
    return section


def idle(*, quick: bool) -> Section:
    """Ten thousand sessions and nothing to do, rescans included."""
    seconds = 70 if quick else 300
    with machine(10_000, 200) as (world, _), running(world) as daemon:
        until(lambda: world.try_rows("SELECT count(*) FROM sources WHERE racy") == [(0,)], "all is settled", 120)
        time.sleep(8)
        trace = os.path.join(world.folder, "trace")
        cpu_s, began = daemon.cpu_s(), time.monotonic()
        time.sleep(seconds)
        per_second_ms = (daemon.cpu_s() - cpu_s) / (time.monotonic() - began) * 1000
        rss_kb = daemon.stat("VmRSS")
        opened = 0
        if shutil.which("strace"):
            scanned = world.meta("last_full_scan_ms")
            tracer = subprocess.Popen(
                ["strace", "-f", "-qq", "-e", "trace=open,openat", "-o", trace, "-p", str(daemon.pid)]
            )
            until(lambda: world.meta("last_full_scan_ms") > scanned, "a rescan", 100)
            time.sleep(1)
            tracer.terminate()
            tracer.wait(10)
            with open(trace, encoding="utf-8", errors="replace") as file:
                opened = sum("O_DIRECTORY" not in line and "= -1" not in line for line in file)
    section = Section("At rest with 10,000 sessions", "python -m bench.daemon --only idle")
    section.tables.append(
        table(
            ("seconds", "CPU ms a second", "files opened by a rescan", "RSS MB"),
            [(seconds, number(per_second_ms), opened, number(rss_kb / 1000))],
        )
    )
    section.figures += [
        Figure("idle: CPU", per_second_ms, 1.5, " ms/s"),
        Figure("idle: files opened", opened, 0),
        Figure("idle: RSS", rss_kb / 1000, 35, " MB"),
    ]
    return section


def kills(*, quick: bool) -> Section:
    """SIGKILL at random moments of writing."""
    count = 60 if quick else 1000
    dice = random.Random(7)
    bad = 0
    with machine(50) as (world, paths):
        for turn in range(count):
            daemon = Daemon(world).start(wait=False)
            try:
                stop = time.monotonic() + dice.uniform(0.1, 0.35)
                while time.monotonic() < stop:
                    world.name(dice.choice(paths), f"turn {turn}")
                    if dice.random() < 0.02:
                        paths.append(world.claude(f"born in turn {turn}", project=f"-project-{turn % 20}"))
                    time.sleep(0.002)
                daemon.kill()
            finally:
                daemon.close()
            if os.path.exists(world.index):
                try:
                    assert_sound(world.index)
                except (AssertionError, sqlite3.Error):
                    bad += 1
        with running(world):
            until(lambda: len(world.titles()) == len(paths), "every session is listed", 30)
            expected = oracle_rows(world)
            with contextlib.suppress(AssertionError):
                until(lambda: index_rows(world) == expected, "the index equals one built from nothing", 30)
            lost = len({row[1] for row in expected} - {row[1] for row in index_rows(world)})
            wrong = len(set(map(repr, expected)) ^ set(map(repr, index_rows(world))))
    section = Section("SIGKILL while writing", "python -m bench.daemon --only kills")
    section.tables.append(
        table(("kills", "bad indexes", "lost sessions", "wrong rows afterwards"), [(count, bad, lost, wrong)])
    )
    section.figures += [
        Figure("SIGKILLs while writing: bad indexes", bad, 0),
        Figure("SIGKILLs while writing: lost sessions after restart", lost, 0),
    ]
    return section


def soak(*, quick: bool) -> Section:
    """A day's events and more, as fast as they can be taken."""
    target = 100_000 if quick else 1_000_000
    samples = []
    written = 0
    with machine(STORM_FILES) as (world, paths), running(world) as daemon:
        while written < target:
            writer = subprocess.Popen(
                [sys.executable, "-c", WRITER, "200", "2", "title"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            out, _ = writer.communicate("\n".join(paths))
            written += int(out) * len(paths)
            samples.append(daemon.stat("VmRSS"))
            for path in paths[:10]:  # files that come and go, so that nothing is kept of what is gone
                os.unlink(path)
            paths[:10] = [world.claude("born in the soak") for _ in range(10)]
        until(lambda: {id_of(p) for p in paths} <= set(world.titles()), "every session is listed", 30)
        warm = samples[len(samples) // 5]
        growth = (samples[-1] / warm - 1) * 100
        log_bytes = os.path.getsize(os.path.join(world.state, "sessiond.log"))
    section = Section("Soak", "python -m bench.daemon --only soak")
    section.tables.append(
        table(
            ("events", "RSS after a fifth MB", "at the end MB", "growth %", "log bytes"),
            [(f"{written:,}", number(warm / 1000), number(samples[-1] / 1000), number(growth), log_bytes)],
        )
    )
    section.figures.append(Figure("soak: growth of RSS", growth, 10, " %"))
    return section


SCENES: dict[str, Callable[..., Section]] = {
    "latency": latency,
    "storm": storm,
    "idle": idle,
    "kills": kills,
    "soak": soak,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.daemon", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers, a few minutes in all")
    parser.add_argument("--only", choices=SCENES, action="append", help="one scene")
    options = parser.parse_args()
    met = True
    for name in options.only or SCENES:
        section = SCENES[name](quick=options.quick)
        print(f"### {section.title}\n")
        print("\n\n".join(section.tables) + "\n", flush=True)
        for figure in section.figures:
            met &= figure.met
            print(f"{'reached' if figure.met else 'MISSED '}  {figure.what}: {number(figure.measured)}{figure.unit}"
                  f" (at most {number(figure.limit)}{figure.unit})", flush=True)  # fmt: skip
        print()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

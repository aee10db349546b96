"""Measurements inside one process, run as a child: `python -m bench.inside TASK ...`; one JSON object on stdout."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from itertools import product
from typing import Any

from bench import walk
from sessiond import config, paths
from sessiond.provider import load_all
from sessiond.scan import Scanner, refresh, scan_all
from sessiond.store.writer import Writer


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU milliseconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000


def _setting() -> tuple[str, config.Config, config.Homes]:
    settings = config.load(os.environ)
    return paths.state_dir(os.environ), settings, config.homes(settings, os.environ)


def first() -> dict[str, Any]:
    """One first index, everything imported before."""
    for app, role in product(("claude_code", "codex"), ("merge", "observe")):
        import_module(f"sessiond.providers.{app}.{role}")
    folder, settings, homes = _setting()
    wall, cpu = _timed(lambda: refresh(folder, homes, settings, wait_s=None))
    return {"wall_ms": wall, "cpu_ms": cpu}


def rescan(home: str, runs: str) -> dict[str, Any]:
    """Full scans of an unchanged home by one living scanner, and the bare walk, in turn."""
    folder, settings, homes = _setting()
    refresh(folder, homes, settings, wait_s=None)
    scans, walks = [], []
    with contextlib.closing(Writer(folder)) as writer:
        scanner = Scanner(load_all(homes), writer)
        for number in range(int(runs) + 1):
            done = _timed(lambda: scan_all(scanner, homes, settings)), _timed(lambda: walk.walk_homes(home))
            if number:
                scans.append(done[0])
                walks.append(done[1])
    return {"scan_ms": scans, "walk_ms": walks}


def append(path: str, runs: str) -> dict[str, Any]:
    """Appends to one large transcript, each followed by a scan of that file alone."""
    from bench.corpus import claude, words  # noqa: PLC0415
    from bench.corpus.blocks import line  # noqa: PLC0415

    folder, settings, homes = _setting()
    refresh(folder, homes, settings, wait_s=None)
    said = {"role": "user", "content": words.sentence(words.rng("append"), 200)}
    record = claude.record("user", said, claude.NEW, cwd="/Users/alex/code/shop-api-0", gitBranch="main")
    took, read = [], []
    with contextlib.closing(Writer(folder)) as writer:
        scanner = Scanner(load_all(homes), writer)
        for number in range(int(runs) + 3):
            data = line(record | {"timestamp": f"2026-11-29T10:{number // 60:02d}:{number % 60:02d}.000Z"})
            with open(path, "ab") as file:
                file.write(data)
            before = _read_bytes()
            done = _timed(lambda: scanner.changed([path]))
            if number >= 3:
                took.append(done)
                read.append(_read_bytes() - before - len(data))
    return {"took_ms": took, "read_beyond": read}


def search() -> list[dict[str, Any]]:
    """Searches of every kind, each 25 times, in the default list and everywhere."""
    import statistics  # noqa: PLC0415

    from bench.corpus import words  # noqa: PLC0415
    from sessiond.store.query import Filters, split  # noqa: PLC0415
    from sessiond.store.reader import Reader  # noqa: PLC0415

    texts = (
        words.COMMON_WORD, words.RARE_WORD, words.MISSING_WORD, words.SHORT_WORD, "qx", "fix checkout retry",
        "add api users main", "users", "main", "feed", "codex", "shop-api-0", "",
    )  # fmt: skip
    reader = Reader(paths.state_dir(os.environ))
    rows = []
    for everywhere in (False, True):
        for text in texts:
            question = Filters(words=split(text), all=everywhere)
            took = [_timed(functools.partial(_ask, reader, question))[0] for _ in range(25)]
            hits = len(reader.find(question, "s.id"))
            rows.append({"text": text, "scope": "--all" if everywhere else "default", "hits": hits,
                         "median_ms": statistics.median(took), "largest_ms": max(took)})  # fmt: skip
    reader.close()
    return rows


def _ask(reader: Any, filters: Any) -> None:
    """What the client asks for one screen."""
    from sessiond.store.search import Search  # noqa: PLC0415

    search = Search(reader, filters, limit=21)
    found = search.find("s.app, s.id, s.title, s.cwd, s.branch, s.updated_ms")
    search.hidden(truncated=len(found) > 20)


def _read_bytes() -> int:
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            return int(file.readline().split()[1])
    except OSError:
        return 0


if __name__ == "__main__":
    tasks: dict[str, Callable[..., Any]] = {"first": first, "rescan": rescan, "append": append, "search": search}
    print(json.dumps(tasks[sys.argv[1]](*sys.argv[2:])))

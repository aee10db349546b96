"""`python -m bench` measures everything and writes docs/benchmarks.md; `--only NAME` prints one section instead."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable

from bench import daemon, report
from bench.report import Section
from bench.scenes import append, coverage, first_index, rescan, search, size, snapshots, startup
from bench.setting import CHECKOUT, Setting

SECTIONS: dict[str, Callable[[Setting], Section]] = {
    "coverage": coverage.measure,
    "first_index": first_index.measure,
    "size": size.measure,
    "append": append.measure,
    "rescan": rescan.measure,
    "startup": startup.measure,
    "search": search.measure,
    "latency": lambda setting: daemon.latency(quick=not setting.long),
    "storm": lambda setting: daemon.storm(quick=not setting.long),
    "idle": lambda setting: daemon.idle(quick=not setting.long),
    "kills": lambda setting: daemon.kills(quick=not setting.long),
    "snapshots": snapshots.measure,
    "soak": lambda setting: daemon.soak(quick=not setting.long),
}
PAGE = os.path.join(CHECKOUT, "docs", "benchmarks.md")
NOTES = os.path.join(CHECKOUT, "bench", "notes.md")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, action="append", help="one section, printed instead of written")
    parser.add_argument("--factor", type=float, default=1.0, help="scales every corpus")
    parser.add_argument("--runs", type=int, default=7, help="runs of each command")
    parser.add_argument("--work", help="where the corpora are made, 4 GB; default: a temporary folder")
    parser.add_argument("--long", action="store_true", help="the daemon's scenes at full length, half an hour more")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the corpora are removed
    work = tempfile.mkdtemp(prefix="sb-", dir=options.work)
    sections = []
    try:
        setting = Setting(work, options.factor, options.runs)
        setting.long = options.long
        conditions = report.conditions(setting.programs(), options.factor)
        for name in options.only or SECTIONS:
            began = time.monotonic()
            try:
                sections.append(SECTIONS[name](setting))
            except (RuntimeError, AssertionError) as error:  # the other sections took minutes and are still right
                print(f"{name}: {error}", file=sys.stderr)
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
            if not options.only:  # after each section, so that what was measured is not lost with what fails
                with open(PAGE, "w", encoding="utf-8") as file:
                    file.write(_page(sections, conditions))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if options.only:
        print(_page(sections, conditions))
    return 0


def _page(sections: list[Section], conditions: str) -> str:
    with open(NOTES, encoding="utf-8") as file:
        return report.render(sections, conditions, file.read().strip())


if __name__ == "__main__":
    sys.exit(main())

"""A whole scan with what belongs to it, for the daemon, for `--once` and for a client without a daemon."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator, Mapping

from sessiond import locks, paths
from sessiond.config import Config, Homes
from sessiond.errors import IndexUnavailableError
from sessiond.provider import load_all
from sessiond.scan.scanner import Outcome, Progress, Scanner
from sessiond.store import sound
from sessiond.store.connection import prepare_folder, translated
from sessiond.store.writer import Writer

DAY_MS = 86_400_000
DAMAGES_MAX = 2
"""How often in a row an index that looked sound may turn out damaged in use; each time it is mended more thoroughly."""


def refresh(
    folder: str,
    homes: Homes,
    config: Config,
    *,
    wait_s: float | None,
    progress: Progress | None = None,
    gaps: bool = False,
) -> bool:
    """Bring the index in `folder` up to date; False when somebody else held `write.lock` for all of `wait_s`.

    With `gaps` also what takes long: the middle of large files is looked through, and the search tables are checked.
    """
    prepare_folder(folder)
    with locks.held(paths.write_lock(folder), wait_s) as mine, _without_collector():
        if not mine:
            return False
        for damages in range(int(gaps), DAMAGES_MAX + 1):
            try:
                _refresh(folder, homes, config, progress, gaps=gaps, damages=damages)
            except IndexUnavailableError as error:
                if not error.damaged or damages == DAMAGES_MAX:
                    raise
            else:
                break
    return True


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Nothing that a refresh makes refers back to itself, and going through all of it takes a tenth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _refresh(folder: str, homes: Homes, config: Config, progress: Progress | None, *, gaps: bool, damages: int) -> None:
    with contextlib.closing(Writer(folder, damages=damages)) as writer:
        with translated(writer.path, expects_tables=True):
            scanner = Scanner(load_all(homes), writer)
        scan_all(scanner, homes, config, progress)
        while gaps and scanner.fill_next_gap() is not None:
            pass
    sound.note(writer.path)


def scan_all(scanner: Scanner, homes: Homes, config: Config, progress: Progress | None = None) -> Outcome:
    """A full scan with what belongs to it: build state and homes in `meta`, second look, rows past their time."""
    writer = scanner.writer
    first = writer.meta("state") != "complete"

    def report(done: int, total: int, /) -> None:
        if first:
            with writer.transaction():
                writer.set_meta(state=f"building {done}/{total}")
        if progress is not None:
            progress(done, total)

    outcome = scanner.full(report, homes)
    if scanner.has_missing:
        scanner.second_look()
    now_ms = time.time_ns() // 1_000_000
    with writer.transaction():
        writer.drop_gone(now_ms - config.gone_days * DAY_MS)
        writer.set_meta(
            state="complete", last_full_scan_ms=now_ms, homes=homes.lines(), rescan_s=config.rescan_s,
            retention_days=config.retention_lines(), unreadable=_lines(outcome.walk.unreadable),
        )  # fmt: skip
    return outcome


def _lines(unreadable: Mapping[str, str]) -> str:
    lines = "\n".join(f"{folder}\t{why}" for folder, why in sorted(unreadable.items()))
    return lines.encode("utf-8", "replace").decode()

"""Bringing the index up to date with the disk: decide what to read, read, merge, store, and forget what is gone."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sessiond import locks, paths
from sessiond.config import Config, Homes
from sessiond.model import DATABASE, Excluded, Fingerprint, Previous, Reading, Reason, Source, Walk
from sessiond.providers import load_all
from sessiond.providers.base import Provider
from sessiond.store.writer import Key, Known, Writer

log = logging.getLogger(__name__)

RACY_MS = 3000
"""A file changed less than this before it was read is looked at again: coarse clocks may hide a second change."""
SECOND_LOOK_MS = 2000
"""How long a session must have been without a file before its row is marked gone."""
GAP_FILE_BYTES = 64 << 20
"""How much of one file's middle the gap pass looks at."""
BATCH_SOURCES = 400
BATCH_S = 0.5
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW

Progress = Callable[[int, int], None]
"""Called with (files read, files to read)."""


class Decision(NamedTuple):
    read: list[tuple[str, Fingerprint]]
    absent: list[str]


def decide(
    found: Mapping[str, Fingerprint],
    known: Mapping[str, Known],
    unreadable: Iterable[str],
    versions: Callable[[str], int | None],
) -> Decision:
    """What has to be read, newest first, and which known files are no longer there. Pure.

    A file below an unreadable folder is never absent, nor is one that no present home claims (`versions` says None).
    """
    read = []
    for path, fingerprint in found.items():
        old = known.get(path)
        if (
            old is None
            or old.fingerprint != fingerprint
            or old.racy
            or old.problem
            or old.reader_version != versions(path)
        ):
            read.append((path, fingerprint))
    read.sort(key=lambda item: item[1].mtime_ns, reverse=True)
    absent = []
    if len(known) > len(found) or any(path not in found for path in known):
        hidden = tuple(unreadable)
        absent = [
            path
            for path in known
            if path not in found
            and versions(path) is not None
            and not any(path == folder or path.startswith(folder + "/") for folder in hidden)
        ]
    return Decision(read, absent)


@dataclass(slots=True)
class Outcome:
    """What one scan did."""

    found: int = 0
    read: int = 0
    absent: int = 0
    walk: Walk = field(default_factory=Walk)


class Scanner:
    """The present homes against the index. The caller holds `write.lock` while any method runs."""

    def __init__(self, providers: Sequence[Provider], writer: Writer) -> None:
        self.providers = providers
        self.writer = writer
        self._by_app = {provider.app: provider for provider in providers}
        self._known = writer.known()

    # -- entry points ------------------------------------------------------------------------------------------------

    def full(self, progress: Progress | None = None) -> Outcome:
        """Look at everything on disk."""
        outcome = Outcome()
        found: dict[str, Fingerprint] = {}
        for provider in self.providers:
            found.update(provider.discover(outcome.walk))
        outcome.found = len(found)
        self._carry_out(decide(found, self._known, outcome.walk.unreadable, self._version), outcome, progress)
        return outcome

    def changed(self, changed_paths: Iterable[str]) -> Outcome:
        """Look at single paths: files, folders, or what used to be one of them."""
        outcome = Outcome()
        found: dict[str, Fingerprint] = {}
        looked_at: dict[str, Known] = {}
        hidden: dict[str, str] = {}
        for path in changed_paths:
            claimed = False
            for provider in self.providers:
                source = provider.claim(path)
                if source is not None:
                    claimed = True
                    self._look_at(provider, source, found, looked_at, hidden)
            if not claimed:
                self._look_below(path, found, looked_at, outcome.walk)
        outcome.found = len(found)
        hidden.update(outcome.walk.unreadable)
        self._carry_out(decide(found, looked_at, hidden, self._version), outcome, None)
        return outcome

    def second_look(self, now_ms: int | None = None) -> int:
        """Mark sessions gone whose files have been missing for long enough; how many still wait."""
        now_ms = _now_ms() if now_ms is None else now_ms
        back = [path for path in self.writer.missing_paths() if os.path.lexists(path)]
        if back:
            self.changed(back)
        with self.writer.transaction():
            return self.writer.settle_missing(now_ms, SECOND_LOOK_MS)

    def fill_next_gap(self) -> int | None:
        """Look through the middle of the newest file that has one left; the bytes looked at, None when none is left."""
        for path, source_id, gap_bytes in self.writer.gaps():
            source = self._claim(path)
            if source is not None:
                self._fill(source, self.writer.previous(source_id))
                return min(gap_bytes, GAP_FILE_BYTES)
        return None

    def _fill(self, source: Source, previous: Previous) -> None:
        provider = self._by_app[source.app]
        known = self._known[source.path]

        def fill(file: io.FileIO, _size: int) -> Reading:
            return provider.fill(source, file, previous, GAP_FILE_BYTES)

        reading, _ = self._open_and(source, known.fingerprint, fill)
        if reading is None:
            reading = Reading({}, previous.state, partial=True, problem=self._problem)
        with self.writer.transaction():
            self._known[source.path], touched = self.writer.replace_source(
                source, known.fingerprint, reading, provider.reader_version, racy=known.racy
            )
            self._merge(touched)

    def files_with_gaps(self) -> int:
        return len(self.writer.gaps())

    # -- looking -----------------------------------------------------------------------------------------------------

    def _version(self, path: str) -> int | None:
        source = self._claim(path)
        return None if source is None else self._by_app[source.app].reader_version

    def _claim(self, path: str) -> Source | None:
        for provider in self.providers:
            source = provider.claim(path)
            if source is not None:
                return source
        return None

    def _look_at(
        self,
        provider: Provider,
        source: Source,
        found: dict[str, Fingerprint],
        looked_at: dict[str, Known],
        hidden: dict[str, str],
    ) -> None:
        known = self._known.get(source.path)
        if known is not None:
            looked_at[source.path] = known
        try:
            found[source.path] = provider.fingerprint(source)
        except (FileNotFoundError, NotADirectoryError):
            if not self._parent_is_readable(provider, source):
                hidden[source.path] = "its folder cannot be read"
        except OSError as error:
            hidden[source.path] = error.strerror or str(error)

    def _parent_is_readable(self, provider: Provider, source: Source) -> bool:
        """Whether the nearest folder that is left above a vanished file, at most its root, can be listed."""
        roots = [root.path for root in provider.roots() if source.path.startswith(root.path + "/")]
        if not roots:
            return False
        root = max(roots, key=len)
        folder = os.path.dirname(source.path)
        while len(folder) >= len(root):
            if os.path.isdir(folder):
                return os.access(folder, os.R_OK | os.X_OK)
            folder = os.path.dirname(folder)
        return False

    def _look_below(self, path: str, found: dict[str, Fingerprint], looked_at: dict[str, Known], walk: Walk) -> None:
        inside = path + "/"
        gone = [known_path for known_path in self._known if known_path.startswith(inside)]
        if not gone and not os.path.isdir(path):
            return
        looked_at.update((p, self._known[p]) for p in gone)
        for provider in self.providers:
            found.update(provider.discover(walk, below=path))

    # -- carrying out ------------------------------------------------------------------------------------------------

    def _carry_out(self, decision: Decision, outcome: Outcome, progress: Progress | None) -> None:
        total = len(decision.read)
        done = 0
        for batch in _batches(decision.read):
            with self.writer.transaction():
                touched: set[Key] = set()
                for path, fingerprint in batch:
                    touched |= self._read(path, fingerprint)
                    done += 1
                if done == total:
                    touched |= self._forget(decision.absent)
                self._merge(touched)
            if progress is not None:
                progress(done, total)
        if not total and decision.absent:
            with self.writer.transaction():
                self._merge(self._forget(decision.absent))
        outcome.read = total
        outcome.absent = len(decision.absent)

    def _read(self, path: str, fingerprint: Fingerprint) -> set[Key]:
        source = self._claim(path)
        if source is None:
            return set()
        provider = self._by_app[source.app]
        known = self._known.get(path)
        previous = None
        if (
            known is not None
            and known.reader_version == provider.reader_version
            and (source.kind == DATABASE or known.fingerprint[:2] == fingerprint[:2])
        ):
            previous = self.writer.previous(known.source_id)

        def observe(file: io.FileIO, size: int) -> Reading:
            return provider.observe(source, file, size, previous)

        reading, opened = self._open_and(source, fingerprint, observe)
        if reading is None:
            if known is not None:
                self._known[path] = self.writer.note_source(known, fingerprint, self._problem, racy=False)
                return set()
            reading = Reading({}, problem=self._problem)
        fingerprint = opened or fingerprint
        racy = fingerprint.newest_ns // 1_000_000 > _now_ms() - RACY_MS
        self._known[path], touched = self.writer.replace_source(
            source, fingerprint, reading, provider.reader_version, racy=racy
        )
        return touched

    def _open_and(
        self, source: Source, fingerprint: Fingerprint, use: Callable[[io.FileIO, int], Reading]
    ) -> tuple[Reading | None, Fingerprint | None]:
        """Open a source as safely as can be, and use it; a failure is left in `_problem`."""
        try:
            descriptor = os.open(source.path, _OPEN_FLAGS)
        except OSError as error:
            self._problem = error.strerror or str(error)
            return None, None
        with io.FileIO(descriptor) as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                self._problem = "not a regular file"
                return None, None
            if source.kind != DATABASE:
                fingerprint = Fingerprint(
                    status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
                )
            try:
                return use(file, fingerprint.size), fingerprint
            except OSError as error:
                self._problem = error.strerror or str(error)
            except Exception:  # one file must never stop the rest
                log.exception("cannot read %s", source.path)
                self._problem = "internal error, see the log"
            return None, None

    _problem = ""

    def _forget(self, absent: Iterable[str]) -> set[Key]:
        touched: set[Key] = set()
        for path in absent:
            known = self._known.pop(path, None)
            if known is not None:
                touched |= self.writer.forget_source(known.source_id)
        return touched

    def _merge(self, touched: Iterable[Key]) -> None:
        for key in touched:
            observations = self.writer.observations(key)
            merged = self._by_app[key[0]].merge(observations) if observations else Excluded(Reason.MISSING)
            if not isinstance(merged, Excluded):
                self.writer.put_session(merged)
            elif merged.reason is Reason.MISSING:
                self.writer.miss_session(key, _now_ms())
            else:
                self.writer.drop_session(key)


def _batches(items: Sequence[tuple[str, Fingerprint]]) -> Iterator[Iterator[tuple[str, Fingerprint]]]:
    """Runs of items, each as many as fit into `BATCH_SOURCES` and `BATCH_S`."""
    rest = iter(items)
    left = len(items)

    def batch() -> Iterator[tuple[str, Fingerprint]]:
        nonlocal left
        deadline = time.monotonic() + BATCH_S
        for taken, item in enumerate(rest, 1):
            left -= 1
            yield item
            if taken >= BATCH_SOURCES or time.monotonic() >= deadline:
                return

    while left > 0:
        yield batch()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def refresh(
    folder: str,
    homes: Homes,
    config: Config,
    *,
    wait_s: float | None,
    progress: Progress | None = None,
    gaps: bool = False,
) -> bool:
    """Bring the index in `folder` up to date; False when somebody else held `write.lock` for all of `wait_s`."""
    from sessiond.store.connection import prepare_folder  # noqa: PLC0415

    prepare_folder(folder)
    with locks.held(paths.write_lock(folder), wait_s) as mine:
        if not mine:
            return False
        writer = Writer(folder)
        with contextlib.closing(writer):
            scanner = Scanner(load_all(homes), writer)
            scan_all(scanner, homes, config, progress)
            while gaps and scanner.fill_next_gap() is not None:
                pass
    return True


def scan_all(scanner: Scanner, homes: Homes, config: Config, progress: Progress | None = None) -> Outcome:
    """A full scan with what belongs to it: build state and homes in `meta`, second look, rows past their time."""
    writer = scanner.writer
    first = writer.meta("state") != "complete"

    def report(done: int, total: int) -> None:
        if first:
            with writer.transaction():
                writer.set_meta(state=f"building {done}/{total}")
        if progress is not None:
            progress(done, total)

    outcome = scanner.full(report)
    scanner.second_look()
    now_ms = _now_ms()
    with writer.transaction():
        writer.drop_gone(now_ms - config.gone_days * 86_400_000)
        writer.set_meta(
            state="complete", last_full_scan_ms=now_ms, homes=homes.lines(), rescan_s=config.rescan_s,
            retention_days=config.claude_retention_days, unreadable=_lines(outcome.walk.unreadable),
        )  # fmt: skip
    return outcome


def _lines(unreadable: Mapping[str, str]) -> str:
    return (
        "\n".join(f"{folder}\t{why}" for folder, why in sorted(unreadable.items())).encode("utf-8", "replace").decode()
    )

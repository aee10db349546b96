"""The present homes against the index: look, read, merge, store, forget."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Protocol

from sessiond import memory
from sessiond.config import Homes
from sessiond.model import DATABASE, Excluded, Fingerprint, Observation, Previous, Reading, Reason, Source, Walk
from sessiond.provider import Provider
from sessiond.reading import helper
from sessiond.reading.opened import Opened, read, read_safely
from sessiond.scan import roots
from sessiond.scan.decide import RACY_MS, Decision, decide, is_racy
from sessiond.store.writer import ANEW, Key, Known, Writer

__all__ = ["GAP_FILE_BYTES", "RACY_MS", "SECOND_LOOK_MS", "Outcome", "Progress", "Scanner"]

SECOND_LOOK_MS = 2000
"""How long a session must have been without a file before its row is marked gone."""
GAP_FILE_BYTES = 64 << 20
"""How much of one file's middle the gap pass looks at."""
BATCH_SOURCES = 200
BATCH_S = 0.5
_NO_FINGERPRINT = Fingerprint(0, 0, 0, 0, 0)


class Progress(Protocol):
    """Told of each batch; may raise to end the scan after it."""

    def __call__(self, done: int, total: int, /) -> None: ...


class Outcome:
    """What one scan did."""

    def __init__(self) -> None:
        self.found = 0
        self.read = 0
        self.absent = 0
        self.changed: list[tuple[str, Fingerprint]] = []
        """What was on disk otherwise than remembered."""
        self.walk = Walk()


class Scanner:
    """The caller holds `write.lock` while any method runs, and makes a new scanner after any exception."""

    def __init__(self, providers: Sequence[Provider], writer: Writer) -> None:
        memory.keep_freed()
        self.providers = providers
        self.writer = writer
        self._by_app = {provider.app: provider for provider in providers}
        self._roots = [root for provider in providers for root in provider.roots()]
        self._known = writer.known({provider.app: provider.reader_version for provider in providers})
        self._folders: set[str] | None = None
        self._identities: roots.Identities = json.loads(str(writer.meta("roots") or "{}"))
        self._just_told: dict[Key, list[Observation]] = {}
        self._left: dict[tuple[int, str], Known] = {}
        """By inode and name, what this scan finds gone from its place: a file that was moved is still the same."""
        self.has_missing = bool(writer.missing_paths())
        """Whether sessions wait for their second look."""

    # -- entry points ------------------------------------------------------------------------------------------------

    def full(self, progress: Progress | None = None, homes: Homes | None = None) -> Outcome:
        """Look at everything on disk; with the homes that the providers are over, a helper may read what is new."""
        outcome = Outcome()
        found = self._discover(outcome.walk)
        outcome.found = len(found)
        hidden = outcome.walk.unreadable
        decision = decide(found, self._known, hidden, self._is_ours)
        if decision.absent:
            hidden.update(roots.replaced(self._roots, self._identities, self._known, found))
            found = {**self._discover(Walk()), **found}  # what moved while the folders were listed is found now
            decision = decide(found, self._known, hidden, self._is_ours)
        self._carry_out(decision, outcome, progress, homes)
        self._remember_roots(hidden)
        if hidden:
            for root in roots.never_seen(self._roots, self._known_folders()):
                hidden.pop(root, None)
        return outcome

    def changed(self, changed_paths: Iterable[str]) -> Outcome:
        """Look at single paths: files, folders, or what used to be one of them."""
        outcome = Outcome()
        found: dict[str, Fingerprint] = {}
        looked_at: dict[str, Known] = {}
        hidden = outcome.walk.unreadable
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
        lost = looked_at.keys() - found.keys()
        for path in lost:
            why = roots.why_hidden(path, self._roots, self._identities)
            if why is not None:
                hidden.setdefault(*why)
        self._carry_out(decide(found, looked_at, hidden, self._is_ours), outcome)
        return outcome

    def second_look(self, now_ms: int | None = None) -> int:
        """Mark sessions gone whose files have been missing for long enough; how many still wait."""
        now_ms = _now_ms() if now_ms is None else now_ms
        back = [path for path in self.writer.missing_paths() if os.path.lexists(path)]
        if back:
            self.changed(back)
        with self.writer.transaction():
            left = self.writer.settle_missing(now_ms, SECOND_LOOK_MS)
        self.has_missing = left > 0
        return left

    def fill_next_gap(self) -> int | None:
        """Look through the middle of the newest file that has one left; the bytes looked at, None when none is left."""
        found = next(((path, size) for path, size in self.writer.gaps() if self._is_at_hand(path)), None)
        if found is None:
            return None
        path, gap_bytes = found
        source = self._claim(path)
        assert source is not None
        self._fill(source, self._known[path])
        return min(gap_bytes, GAP_FILE_BYTES)

    def _is_at_hand(self, path: str) -> bool:
        return path in self._known and self._is_ours(path)

    def files_with_gaps(self) -> int:
        return self.writer.gap_count()

    # -- looking -----------------------------------------------------------------------------------------------------

    def _discover(self, walk: Walk) -> dict[str, Fingerprint]:
        found: dict[str, Fingerprint] = {}
        for provider in self.providers:
            found.update(provider.discover(walk))
        return found

    def _is_ours(self, path: str) -> bool:
        return self._claim(path) is not None

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
            pass
        except OSError as error:
            hidden[source.path] = error.strerror or str(error)

    def _look_below(self, path: str, found: dict[str, Fingerprint], looked_at: dict[str, Known], walk: Walk) -> None:
        """A folder, or a path that no provider knows: what was known below it, and what lies there now."""
        inside = path + "/"
        if path in self._known_folders() or any(folder.startswith(inside) for folder in self._known_folders()):
            looked_at.update((p, known) for p, known in self._known.items() if p.startswith(inside))
        if os.path.isdir(path):
            for provider in self.providers:
                found.update(provider.discover(walk, below=path))

    def _known_folders(self) -> set[str]:
        """Folders that hold or held a known file; few, so that foreign names cost little."""
        if self._folders is None:
            self._folders = {path.rpartition("/")[0] for path in self._known}
        return self._folders

    def _remember_roots(self, hidden: Iterable[str]) -> None:
        now = roots.identities(root for root in self._roots if root.path not in hidden)
        if any(self._identities.get(path) != identity for path, identity in now.items()):
            self._identities.update(now)
            with self.writer.transaction():
                self.writer.set_meta(roots=json.dumps(self._identities))

    # -- carrying out ------------------------------------------------------------------------------------------------

    def _carry_out(
        self, decision: Decision, outcome: Outcome, progress: Progress | None = None, homes: Homes | None = None
    ) -> None:
        total = len(decision.read)
        outcome.read = total
        outcome.absent = len(decision.absent)
        outcome.changed = [
            item for item in decision.read if item[0] not in self._known or not self._known[item[0]].is_at(item[1])
        ]
        self._left = {(self._known[p].ino, os.path.basename(p)): self._known[p] for p in decision.absent}
        done = 0
        with contextlib.closing(self._to_store(decision.read, homes)) as answers:
            for batch in _batches(answers, total):
                with self.writer.transaction():
                    touched: set[Key] = set()
                    for path, fingerprint, opened in batch:
                        touched |= self._store(path, fingerprint, opened)
                        done += 1
                    if done == total:
                        touched |= self._forget(decision.absent)
                    self._merge(touched)
                if progress is not None:
                    progress(done, total)
        if not total and decision.absent:
            with self.writer.transaction():
                self._merge(self._forget(decision.absent))

    def _to_store(self, items: Sequence[helper.Item], homes: Homes | None) -> Generator[helper.Answer]:
        """What has to be read, some of it read already where there is much that is new."""
        new = [item for item in items if self._continued(*item) is None]
        if homes is None or not helper.is_worth_it(new):
            yield from ((path, fingerprint, None) for path, fingerprint in items)
            return
        skipped = {path for path, _ in new}
        yield from ((path, fingerprint, None) for path, fingerprint in items if path not in skipped)
        yield from helper.shared(new, homes)

    def _store(self, path: str, fingerprint: Fingerprint, opened: Opened | None) -> set[Key]:
        """Put into the index what a file says, read here if it is not yet; the sessions it touches."""
        source = self._claim(path)
        if source is None:
            return set()
        provider = self._by_app[source.app]
        known = self._known.get(path)
        if opened is None:
            opened = read(provider, source, fingerprint, self._previous(source, fingerprint))
        if opened.reading is None and opened.is_gone:
            if known is None or roots.why_hidden(path, self._roots, self._identities) is not None:
                return set()
            return self._forget([path])
        if opened.reading is None and known is not None:
            self._known[path] = self.writer.note_source(known, opened.fingerprint, opened.problem)
            return set()
        reading = opened.reading or Reading({}, problem=opened.problem)
        again = opened.reading is None or reading.partial or is_racy(opened.fingerprint, opened.read_ms)
        self._known[path], touched = self.writer.replace_source(
            source, opened.fingerprint, reading, provider.reader_version, again=again, known=known
        )
        if known is None:
            for session_id, facts in reading.facts.items():
                told = Observation(source, opened.fingerprint, session_id, facts)
                self._just_told.setdefault((source.app, session_id), []).append(told)
            if self._folders is not None:
                self._folders.add(os.path.dirname(path))
        return touched

    def _previous(self, source: Source, fingerprint: Fingerprint) -> Previous | None:
        """What was read of the file, here or where it was moved from; None when it is read from its start."""
        if source.kind == DATABASE:
            known = self._known.get(source.path)
            return None if known is None or known.again == ANEW else self.writer.previous(known.source_id, facts=False)
        known = self._continued(source.path, fingerprint)
        if known is None:
            return None
        return self.writer.previous(known.source_id)._replace(moved=source.path not in self._known)

    def _continued(self, path: str, fingerprint: Fingerprint) -> Known | None:
        """The source whose reading goes on in a file; None when it is another file or was read by other rules."""
        known = self._known.get(path) or self._left.get((fingerprint.ino, os.path.basename(path)))
        return None if known is None or known.again == ANEW or known.ino != fingerprint.ino else known

    def _fill(self, source: Source, known: Known) -> None:
        provider = self._by_app[source.app]
        previous = self.writer.previous(known.source_id)

        def fill(file: io.FileIO, _size: int) -> Reading:
            try:
                return provider.fill(source, file, previous, GAP_FILE_BYTES)
            finally:
                _leave_cache_alone(file)

        opened = read_safely(source, _NO_FINGERPRINT, fill)
        remembered = Fingerprint(opened.fingerprint.dev, *known[1:5])
        reading = opened.reading or Reading({}, previous.state, partial=True, problem=opened.problem)
        with self.writer.transaction():
            self._known[source.path], touched = self.writer.replace_source(
                source, remembered, reading, provider.reader_version, again=bool(known.again), known=known
            )
            self._merge(touched)

    def _forget(self, absent: Iterable[str]) -> set[Key]:
        touched: set[Key] = set()
        for path in absent:
            known = self._known.pop(path, None)
            if known is not None:
                touched |= self.writer.forget_source(known.source_id)
        return touched

    def _merge(self, touched: Iterable[Key]) -> None:
        for key in touched:
            observations = self._observations(key)
            merged = self._by_app[key[0]].merge(observations) if observations else Excluded(Reason.MISSING)
            if not isinstance(merged, Excluded):
                self.writer.put_session(merged)
            elif merged.reason is Reason.MISSING:
                self.has_missing |= self.writer.miss_session(key, _now_ms())
            else:
                self.writer.drop_session(key)
        self._just_told.clear()

    def _observations(self, key: Key) -> Sequence[Observation]:
        """All that is said about one session, from memory when new files of this batch said it all."""
        told = self._just_told.get(key)
        if told is None or self.writer.count_observations(key[1]) != len(told):
            return self.writer.observations(key)
        told.sort(key=lambda observation: observation.source.path)
        return told


def _batches(answers: Iterator[helper.Answer], total: int) -> Iterator[Iterator[helper.Answer]]:
    """Runs of answers, each as many as fit into `BATCH_SOURCES` and `BATCH_S`."""
    left = total

    def batch() -> Iterator[helper.Answer]:
        nonlocal left
        deadline = time.monotonic() + BATCH_S
        for taken, answer in enumerate(answers, 1):
            left -= 1
            yield answer
            if taken >= BATCH_SOURCES or time.monotonic() >= deadline:
                return

    while left > 0:
        yield batch()


def _leave_cache_alone(file: io.FileIO) -> None:
    """Give back the pages that the gap pass read: nobody else asked for them."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

"""Codex over its homes: which files are its sources, and who reads them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from sessiond import paths
from sessiond.config import Homes
from sessiond.jsonl import BinaryFile
from sessiond.model import (
    DATABASE,
    Excluded,
    Fingerprint,
    Observation,
    Previous,
    Reading,
    Reason,
    Session,
    Source,
    Walk,
    fingerprint_of,
)
from sessiond.provider import LogFile, Provider, Root
from sessiond.providers.codex import layout
from sessiond.providers.codex.layout import ARCHIVED, NAMES, NAMES_FILE, ROLLOUT, SESSIONS

if TYPE_CHECKING:
    from sessiond.resume import Cli, Command, Plan


class Codex(Provider):
    app = "codex"
    reader_version = 2

    def __init__(self, homes: Sequence[str], sqlite_homes: Sequence[str] = (), scratch: str | None = None) -> None:
        """`scratch` is the private folder for copies of databases; None: one where temporary files go."""
        self.homes = tuple(homes)
        self._scratch = scratch
        self._databases: Any = None
        self._trees = [
            (f"{home}/{tree}/", Source(self.app, home, "", ROLLOUT))
            for home in self.homes
            for tree in (SESSIONS, ARCHIVED)
        ]
        self._flat = self._database_folders(sqlite_homes)

    @classmethod
    def over(cls, homes: Homes) -> Self:
        state = paths.state_dir(os.environ)
        named = homes.parts.get("CODEX_SQLITE_HOME")
        scratch = os.path.join(state, "copies") if os.path.isdir(state) else None
        return cls(homes.of(cls.app), (named,) if named else (), scratch)

    def _database_folders(self, named: Sequence[str]) -> dict[str, str]:
        """Folder that can hold a state database -> the home it is counted to."""
        found: dict[str, str] = {}
        for home in self.homes:
            configured = layout.configured_sqlite_home(home)
            for folder in (home, os.path.join(home, "sqlite"), *((configured,) if configured else ())):
                found.setdefault(folder, home)
        if self.homes:
            for folder in named:
                found.setdefault(folder, self.homes[0])
        return found

    # -- what is there -----------------------------------------------------------------------------------------------

    @property
    def cli(self) -> Cli:
        from sessiond.providers.codex import launch  # noqa: PLC0415 - indexing does without it

        return launch.CLI

    def roots(self) -> list[Root]:
        trees = []
        for home in self.homes:
            trees.append(Root(self.app, home, os.path.join(home, SESSIONS), recursive=True))
            trees.append(Root(self.app, home, os.path.join(home, ARCHIVED), False, layout.is_rollout))
        return trees + [Root(self.app, home, folder, False, _is_flat_source) for folder, home in self._flat.items()]

    def claim(self, path: str) -> Source | None:
        for prefix, source in self._trees:
            if path.startswith(prefix):
                return source._replace(path=path) if layout.is_rollout(path.rpartition("/")[2]) else None
        folder, _, name = path.rpartition("/")
        home = self._flat.get(folder)
        if home is None:
            return None
        if name == NAMES_FILE:
            return Source(self.app, home, path, NAMES) if folder == home else None
        database = layout.database_of(name)
        return None if database is None else Source(self.app, home, f"{folder}/{database}", DATABASE)

    def discover(self, walk: Walk, below: str | None = None) -> Iterator[tuple[str, Fingerprint]]:
        for home in self.homes:
            for tree in (SESSIONS, ARCHIVED):
                root = f"{home}/{tree}"
                if below is None or _is_in(below, root):
                    yield from _rollouts(below or root, walk)
                elif _is_in(root, below):
                    yield from _rollouts(root, walk)
        for folder in self._flat:
            if below is None or _is_in(folder, below):
                yield from self._flat_sources(folder, walk)

    def _flat_sources(self, folder: str, walk: Walk) -> Iterator[tuple[str, Fingerprint]]:
        try:
            databases = layout.listed_databases(folder)
        except OSError as error:
            walk.unreadable[folder] = error.strerror or str(error)
            return
        walk.directories.append(folder)
        names_file = os.path.join(folder, NAMES_FILE)
        for path in (*databases[:1], names_file):
            source = self.claim(path)
            if source is not None:
                try:
                    yield path, self.fingerprint(source)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    walk.unreadable[path] = error.strerror or str(error)

    def fingerprint(self, source: Source) -> Fingerprint:
        """The file's state; of a database with the files beside it and the older generations counted in.

        An older generation of a database that has a newer one beside it is no source: FileNotFoundError.
        """
        if source.kind != DATABASE:
            return fingerprint_of(os.lstat(source.path))
        folder = os.path.dirname(source.path)
        databases = layout.listed_databases(folder)
        if source.path not in databases[:1]:
            raise FileNotFoundError(source.path)
        total = fingerprint_of(os.stat(source.path))
        for path in databases:
            for sidecar in ("", "-wal", "-journal"):
                if path + sidecar != source.path:
                    total = _added(total, path + sidecar)
        return total

    # -- reading -----------------------------------------------------------------------------------------------------

    def observe(self, source: Source, file: BinaryFile, size: int, previous: Previous | None) -> Reading:
        if source.kind == DATABASE:
            return self._observe_database(source.path, previous)
        from sessiond.providers.codex import observe  # noqa: PLC0415 - most scans read nothing

        return observe.observe(source, file, size, previous)

    def _observe_database(self, path: str, previous: Previous | None) -> Reading:
        from sessiond.providers.codex import threads  # noqa: PLC0415 - most scans read no database

        if self._databases is None:
            self._databases = threads.Databases(self._scratch)
        reading: Reading = self._databases.observe(layout.listed_databases(os.path.dirname(path)), previous)
        return reading

    def fill(self, source: Source, file: BinaryFile, previous: Previous, budget_bytes: int) -> Reading:
        from sessiond.providers.codex import observe  # noqa: PLC0415 - most scans read nothing

        return observe.fill(source, file, previous, budget_bytes)

    def merge(self, observations: Sequence[Observation]) -> Session | Excluded:
        from sessiond.providers.codex.merge import merge  # noqa: PLC0415 - most scans read nothing

        return merge(observations)

    # -- history and resuming ----------------------------------------------------------------------------------------

    def says(self, reason: Reason) -> str:
        return "an internal helper thread of Codex" if reason is Reason.INTERNAL else reason

    def logs(self, after: str | None, before: str | None) -> Iterator[LogFile]:
        from sessiond.providers.codex.dated import dated  # noqa: PLC0415 - indexing does without it

        return dated(self.homes, after, before)

    def resume(self, session: Session, plan: Plan) -> Command:
        from sessiond.providers.codex import launch  # noqa: PLC0415 - indexing does without it

        return launch.command(session, plan)


def _rollouts(folder: str, walk: Walk) -> Iterator[tuple[str, Fingerprint]]:
    """The rollouts in a folder and below it; symbolic links are not followed."""
    waiting = [folder]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    if layout.is_rollout(name) and not entry.is_dir(follow_symlinks=False):
                        try:
                            status = entry.stat(follow_symlinks=False)
                        except FileNotFoundError:
                            continue
                        except OSError as error:
                            walk.unreadable[entry.path] = error.strerror or str(error)
                            continue
                        if stat.S_ISREG(status.st_mode):
                            yield entry.path, fingerprint_of(status)
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError as error:
            walk.unreadable[folder] = error.strerror or str(error)
        else:
            walk.directories.append(folder)


def _added(total: Fingerprint, path: str) -> Fingerprint:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return total
    return total._replace(
        size=total.size + status.st_size,
        mtime_ns=max(total.mtime_ns, status.st_mtime_ns),
        ctime_ns=max(total.ctime_ns, status.st_ctime_ns),
    )


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _is_flat_source(name: str) -> bool:
    return name == NAMES_FILE or layout.database_of(name) is not None

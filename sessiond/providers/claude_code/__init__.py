"""Claude Code: sessions below `projects/` of each home. The format is told in docs/formats/claude-code.md."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self

from sessiond.config import Homes
from sessiond.jsonl import BinaryFile
from sessiond.model import Excluded, Fingerprint, Observation, Previous, Reading, Session, Source, Walk
from sessiond.providers.base import LogFile, Root
from sessiond.providers.claude_code import places

if TYPE_CHECKING:
    from sessiond.resume import Cli, Command, Plan

__all__ = ["ClaudeCode"]


class ClaudeCode:
    """Claude Code over its homes."""

    app = places.APP
    reader_version = 2

    def __init__(self, homes: Sequence[str]) -> None:
        self._homes = [(home, places.projects(home) + "/") for home in homes]

    @classmethod
    def over(cls, homes: Homes) -> Self:
        return cls(homes.claude_code)

    @property
    def cli(self) -> Cli:
        from sessiond.providers.claude_code import launch  # noqa: PLC0415 - indexing does without it

        return launch.CLI

    def roots(self) -> list[Root]:
        return [Root(self.app, home, root[:-1], recursive=True) for home, root in self._homes]

    def discover(self, walk: Walk, below: str | None = None) -> Iterator[tuple[str, Fingerprint]]:
        for home, _ in self._homes:
            yield from places.in_home(home, walk, below)

    def claim(self, path: str) -> Source | None:
        for home, root in self._homes:
            if path.startswith(root):
                return places.source(home, path)
        return None

    def fingerprint(self, source: Source) -> Fingerprint:
        return places.fingerprint(source)

    def observe(self, source: Source, file: BinaryFile, size: int, previous: Previous | None) -> Reading:
        from sessiond.providers.claude_code import name_file, transcript  # noqa: PLC0415 - most scans read nothing

        session_id = places.session_id(source)
        if source.kind == places.TITLE:
            return name_file.observe(file, size, session_id)
        name = os.path.basename(places.project_folder(source))
        return transcript.observe(file, size, session_id, name, previous)

    def fill(self, source: Source, file: BinaryFile, previous: Previous, budget_bytes: int) -> Reading:
        from sessiond.providers.claude_code import transcript  # noqa: PLC0415 - most scans read nothing

        name = os.path.basename(places.project_folder(source))
        return transcript.fill(file, places.session_id(source), name, previous, budget_bytes)

    def merge(self, observations: Sequence[Observation]) -> Session | Excluded:
        from sessiond.providers.claude_code import merged  # noqa: PLC0415 - most scans read nothing

        return merged.merge(observations)

    def logs(self, after: str | None, before: str | None) -> Iterator[LogFile]:
        found = sorted(self.discover(Walk()), key=lambda item: item[1].mtime_ns, reverse=True)
        for path, fingerprint in found:
            source = self.claim(path)
            if source is None or source.kind != places.TRANSCRIPT:
                continue
            date = time.strftime("%Y-%m-%d", time.localtime(fingerprint.mtime_ns // 1_000_000_000))
            if (after is None or date >= after) and (before is None or date < before):
                yield LogFile(self.app, path, places.session_id(source), date)

    def resume(self, session: Session, plan: Plan) -> Command:
        from sessiond.providers.claude_code import launch  # noqa: PLC0415 - indexing does without it

        return launch.command(session, plan)

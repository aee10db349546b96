"""Claude Code over its homes: which files are its sources, and who reads them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self

from sessiond.config import Homes
from sessiond.jsonl import BinaryFile
from sessiond.model import Excluded, Fingerprint, Observation, Previous, Reading, Reason, Session, Source, Walk
from sessiond.provider import LogFile, Provider, Root
from sessiond.providers.claude_code import layout

if TYPE_CHECKING:
    from sessiond.resume import Cli, Command, Plan


class ClaudeCode(Provider):
    """Claude Code over its homes."""

    app = layout.APP
    reader_version = 2

    def __init__(self, homes: Sequence[str]) -> None:
        self._homes = [(home, layout.projects(home) + "/") for home in homes]

    @classmethod
    def over(cls, homes: Homes) -> Self:
        return cls(homes.of(cls.app))

    @property
    def cli(self) -> Cli:
        from sessiond.providers.claude_code import launch  # noqa: PLC0415 - indexing does without it

        return launch.CLI

    def roots(self) -> list[Root]:
        return [Root(self.app, home, root[:-1], recursive=True) for home, root in self._homes]

    def discover(self, walk: Walk, below: str | None = None) -> Iterator[tuple[str, Fingerprint]]:
        for home, _ in self._homes:
            yield from layout.in_home(home, walk, below)

    def claim(self, path: str) -> Source | None:
        for home, root in self._homes:
            if path.startswith(root):
                return layout.source(home, path)
        return None

    def fingerprint(self, source: Source) -> Fingerprint:
        return layout.fingerprint(source)

    def observe(self, source: Source, file: BinaryFile, size: int, previous: Previous | None) -> Reading:
        from sessiond.providers.claude_code import observe  # noqa: PLC0415 - most scans read nothing

        return observe.observe(source, file, size, previous)

    def fill(self, source: Source, file: BinaryFile, previous: Previous, budget_bytes: int) -> Reading:
        from sessiond.providers.claude_code import observe  # noqa: PLC0415 - most scans read nothing

        return observe.fill(source, file, previous, budget_bytes)

    def merge(self, observations: Sequence[Observation]) -> Session | Excluded:
        from sessiond.providers.claude_code import merge  # noqa: PLC0415 - most scans read nothing

        return merge.merge(observations)

    def says(self, reason: Reason) -> str:
        return "a background helper of Claude Code" if reason is Reason.DAEMON else reason

    def passed_over(self, path: str) -> Reason | None:
        inside = any(path.startswith(root) for _, root in self._homes)
        return Reason.SIDECHAIN if inside and "/subagents/" in path else None

    def logs(self, after: str | None, before: str | None) -> Iterator[LogFile]:
        found = sorted(self.discover(Walk()), key=lambda item: item[1].mtime_ns, reverse=True)
        for path, fingerprint in found:
            source = self.claim(path)
            if source is None or source.kind != layout.TRANSCRIPT:
                continue
            date = time.strftime("%Y-%m-%d", time.localtime(fingerprint.mtime_ns // 1_000_000_000))
            if (after is None or date >= after) and (before is None or date < before):
                yield LogFile(self.app, path, layout.session_id(source), date)

    def resume(self, session: Session, plan: Plan) -> Command:
        from sessiond.providers.claude_code import launch  # noqa: PLC0415 - indexing does without it

        return launch.command(session, plan)

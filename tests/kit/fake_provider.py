"""A vendor with the simplest files there can be, for tests of the scanner: `<root>/<folder>/<id>.jsonl`.

A line is `title` text; the last one names the session. `<id>.name` beside it is a second source of the same session.
An empty transcript is no session.
"""

from __future__ import annotations

import os
import stat

from sessiond.model import Excluded, Fingerprint, Reading, Reason, Session, Source
from sessiond.provider import Root


class FakeProvider:
    app = "codex"

    def __init__(self, *roots, reader_version=1):
        self.folders = [str(root) for root in roots]
        self.reader_version = reader_version
        self.opened = []
        self.fail_with = {}

    def roots(self):
        return [Root(self.app, os.path.dirname(folder), folder, recursive=True) for folder in self.folders]

    def discover(self, walk, below=None):
        for folder in self.folders:
            if below is None or below == folder:
                yield from self._list(folder, walk, deep=True)
            elif below.startswith(folder + "/"):
                yield from self._list(below, walk, deep=False)

    def _list(self, folder, walk, *, deep):
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            walk.unreadable[folder] = error.strerror
            return
        walk.directories.append(folder)
        for entry in entries:
            if entry.is_dir() and deep:
                yield from self._list(entry.path, walk, deep=False)
            elif self.claim(entry.path) and entry.is_file(follow_symlinks=False):
                yield entry.path, self.fingerprint(self.claim(entry.path))

    def claim(self, path):
        for folder in self.folders:
            if path.startswith(folder + "/") and path.count("/") == folder.count("/") + 2:
                for suffix, kind in ((".jsonl", "transcript"), (".name", "title")):
                    if path.endswith(suffix):
                        return Source(self.app, os.path.dirname(folder), path, kind)
        return None

    def fingerprint(self, source):
        status = os.stat(source.path, follow_symlinks=False)
        assert stat.S_ISREG(status.st_mode)
        return Fingerprint(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def observe(self, source, file, size, previous):
        self.opened.append(source.path)
        if source.path in self.fail_with:
            raise self.fail_with[source.path]
        lines = file.read(size).decode(errors="replace").splitlines()
        session_id = os.path.basename(source.path).rsplit(".", 1)[0].encode("utf-8", "replace").decode()
        facts = {"title": lines[-1]} if lines else {}
        if source.kind == "transcript":
            facts["continued"] = previous is not None
        return Reading({session_id: facts}, state=b"%d" % size)

    def fill(self, source, file, previous, budget_bytes):
        return Reading(previous.facts, previous.state)

    def merge(self, observations):
        held = [o for o in observations if o.source.kind == "transcript"]
        if not held:
            return Excluded(Reason.MISSING)
        titles = [o.facts["title"] for o in (*observations, *held) if "title" in o.facts]
        names = [o.facts["title"] for o in observations if o.source.kind == "title"]
        if not titles:
            return Excluded(Reason.EMPTY)
        newest = max(held, key=lambda o: o.fingerprint.mtime_ns)
        return Session(
            self.app, newest.id, newest.source.home, path=newest.source.path, title=(names or titles)[-1],
            cwd=os.path.dirname(newest.source.path).encode("utf-8", "replace").decode(),
            updated_ms=newest.fingerprint.mtime_ns // 1_000_000, bytes=newest.fingerprint.size,
        )  # fmt: skip

"""An index with chosen sessions, and stand-ins for the vendors' programs that record how they were started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from sessiond.model import Session
from sessiond.store.writer import Writer

STAND_IN = """#!{python} -SE
import json, os, signal, sys
ignored = [int(s) for s in signal.Signals if signal.getsignal(s) == signal.SIG_IGN]
started = {{"argv": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
json.dump(started, open({record!r}, "w"))
print("stand-in runs")
"""
CLAUDE_ID = "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58"
CODEX_ID = "019a2f1c-7d0e-7b31-9c4e-5a1f0e2d8b63"
HOUR_MS = 3_600_000


class Stage:
    """A HOME with an index, a PATH with stand-ins, and the real command to run there."""

    def __init__(self, home) -> None:
        self.home = home
        self.bin = home / "bin"
        self.record = home / "started.json"
        self.folder = home / "shop"
        self.bin.mkdir()
        self.folder.mkdir()
        for program in ("claude", "codex"):
            file = self.bin / program
            file.write_text(STAND_IN.format(python=sys.executable, record=str(self.record)))
            file.chmod(0o755)
        self.env = {
            **os.environ,
            "SESSIOND_HOME": str(home / "state"),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        }
        self.argv = [sys.executable, "-m", "sessions_cli.main"]

    def add(self, app="claude-code", *, written_ago_ms=HOUR_MS, facts=None, **columns):
        """Put one session into the index, by default an ordinary one with an old file and an existing folder."""
        is_claude = app == "claude-code"
        home = str(self.home / (".claude" if is_claude else ".codex"))
        values = {"id": CLAUDE_ID if is_claude else CODEX_ID, "home": home, "cwd": str(self.folder), "updated_ms": 1}
        values.update(columns)
        if "path" not in values:
            file = self.home / f"{len(os.listdir(self.home))}.jsonl"
            file.touch()
            stamp = time.time() - written_ago_ms / 1000
            os.utime(file, (stamp, stamp))
            values["path"] = str(file)
        session = Session(app=app, **values)
        writer = Writer(self.env["SESSIOND_HOME"])
        with writer.transaction():
            writer.put_session(session)
            writer.set_meta(state="complete", last_full_scan_ms=time.time_ns() // 1_000_000, rescan_s=60)
        writer.close()
        return session

    def run(self, *words, **env):
        """The command without a terminal; the index is taken as it is."""
        verb, *rest = words
        return subprocess.run(
            [*self.argv, verb, "--no-refresh", *rest],
            env={**self.env, **env}, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="surrogateescape",
            timeout=60, check=False, cwd=self.home,
        )  # fmt: skip

    @property
    def started(self):
        """How the stand-in was started, None when it was not."""
        return json.loads(self.record.read_text()) if self.record.exists() else None


@pytest.fixture
def stage(home):
    return Stage(home)

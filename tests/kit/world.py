"""A person's machine in a temporary folder: vendors' homes, a state folder, and the sessions in them."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import sqlite3
import subprocess
import sys
import time
import uuid

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUBLIC = (
    "app, id, home, path, cwd, repo, branch, title, title_from, first_prompt, model, model_provider, effort, approval,"
    " sandbox, version, origin, created_ms, updated_ms, bytes, archived, interactive, resumable, forked_from"
)


def until(condition, what, within_s=10.0, pause_s=0.01):
    """The first true value of `condition()`; fails after `within_s`, saying what was waited for."""
    deadline = time.monotonic() + within_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"after {within_s} s still not: {what}")
        time.sleep(pause_s)


class World:
    def __init__(self, folder):
        self.folder = str(folder)
        self.home = os.path.join(self.folder, "home")
        self.state = os.path.join(self.folder, "state")
        self.claude_home = os.path.join(self.home, ".claude")
        self.projects = os.path.join(self.claude_home, "projects")
        self.codex_home = os.path.join(self.home, ".codex")
        self.codex_sessions = os.path.join(self.codex_home, "sessions")
        os.makedirs(self.projects)
        os.makedirs(self.codex_sessions)
        self.env = {
            "HOME": self.home,
            "SESSIOND_HOME": self.state,
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "PYTHONPATH": os.pathsep.join([REPOSITORY, os.path.join(REPOSITORY, "cli")]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.configure(rescan_s=3600)

    def configure(self, **settings):
        """Write config.toml. The default period is so long that only events can explain what is seen."""
        folder = os.path.join(self.home, ".config", "sessiond")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.toml"), "w") as file:
            for key, value in sorted(settings.items(), key=lambda item: isinstance(item[1], dict)):
                lines = [
                    f"{k} = {json.dumps(v)}\n" for k, v in (value if isinstance(value, dict) else {key: value}).items()
                ]
                file.writelines([f"[{key}]\n", *lines] if isinstance(value, dict) else lines)

    # -- the vendors' files ------------------------------------------------------------------------------------------

    def claude(self, title="first prompt", project="-home-user-shop", session_id=None, root=None):
        """A Claude Code session; what comes back is its path."""
        session_id = session_id or str(uuid.uuid4())
        folder = os.path.join(root or self.projects, project)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{session_id}.jsonl")
        self.append(path, claude_prompt(session_id, title))
        return path

    def codex(self, title="first prompt", day="2026/03/04", thread_id=None):
        """A Codex rollout; what comes back is its path."""
        thread_id = thread_id or str(uuid.uuid4())
        folder = os.path.join(self.codex_sessions, day)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"rollout-{day.replace('/', '-')}T10-00-00-{thread_id}.jsonl")
        self.append(path, *codex_records(thread_id, title))
        return path

    @staticmethod
    def append(path, *records):
        """Whole lines in one write."""
        data = "".join(json.dumps(record) + "\n" for record in records).encode()
        with open(path, "ab") as file:
            file.write(data)

    def name(self, path, title):
        """The user gives a Claude Code session a name."""
        self.append(path, {"type": "custom-title", "customTitle": title, "sessionId": id_of(path)})

    # -- the program -------------------------------------------------------------------------------------------------

    def run(self, *arguments, module="sessiond", timeout_s=60, prefix=(), **env):
        """Run a command to its end."""
        return subprocess.run(
            [*prefix, sys.executable, "-m", module, *arguments],
            env={**self.env, **env}, capture_output=True, text=True, timeout=timeout_s, check=False, cwd=self.folder,
        )  # fmt: skip

    def once(self, *arguments, prefix=(), **env):
        done = self.run("--once", *arguments, prefix=prefix, **env)
        assert done.returncode == 0, done.stderr
        return done

    # -- the index ---------------------------------------------------------------------------------------------------

    @property
    def index(self):
        return os.path.join(self.state, "index.db")

    def rows(self, sql, *values):
        with contextlib.closing(sqlite3.connect(f"file:{self.index}?mode=ro", uri=True, timeout=5)) as connection:
            return connection.execute(sql, values).fetchall()

    def try_rows(self, sql, *values):
        """The same, empty while there is no index to ask."""
        try:
            return self.rows(sql, *values)
        except sqlite3.Error:
            return []

    def titles(self):
        """Title of each session that a person could resume, by id."""
        return dict(self.try_rows("SELECT id, title FROM sessions WHERE resumable AND gone_ms IS NULL"))

    def meta(self, key):
        return dict(self.try_rows("SELECT key, value FROM meta WHERE key = ?", key)).get(key)

    def health(self):
        text = self.meta("health")
        return json.loads(text) if text else {}

    def root_health(self, path):
        """What the daemon says of one root."""
        return next((root for root in self.health().get("roots", ()) if root["path"] == path), {})

    def write_index(self, sql, *values):
        with contextlib.closing(sqlite3.connect(self.index, timeout=5)) as connection, connection:
            connection.execute(sql, values)


def id_of(path):
    """The id in a session file's name."""
    return os.path.basename(path).removesuffix(".jsonl")[-36:]


def claude_prompt(session_id, text, **more):
    return {
        "type": "user",
        "sessionId": session_id,
        "uuid": str(uuid.uuid4()),
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/user/shop",
        "gitBranch": "main",
        "version": "2.1.100",
        "timestamp": now_text(),
        "message": {"role": "user", "content": text},
        **more,
    }


def codex_records(thread_id, text):
    return [
        {
            "timestamp": now_text(),
            "type": "session_meta",
            "payload": {
                "id": thread_id,
                "timestamp": now_text(),
                "cwd": "/home/user/shop",
                "originator": "codex_cli_rs",
                "cli_version": "0.98.0",
                "source": "cli",
                "model_provider": "openai",
                "git": {"branch": "main"},
            },
        },
        {"timestamp": now_text(), "type": "event_msg", "payload": {"type": "user_message", "message": text}},
    ]


def now_text():
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

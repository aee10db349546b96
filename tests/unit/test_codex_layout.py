"""Which files of a Codex home are read at all."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sessiond.model import Walk
from tests.kit.codex_home import CodexHome, conversation, lines, uid

A = uid(1)
SECRETS = (
    "auth.json", ".credentials.json", "secrets/local.age", "secrets/codex_auth.age", ".sandbox-secrets/x", ".env",
    "key.pem", "id.key", "installation_id", "history.jsonl", "queue_1.sqlite", "thread_history_1.sqlite",
    "logs_2.sqlite", "goals_1.sqlite", "memories/x.md", "thread-writer-locks/x.lock", "profile.config.toml",
    ".codex-global-state.json", "sqlite/codex-dev.db", "sqlite/auth.json",
)  # fmt: skip


@pytest.fixture
def codex(tmp_path):
    return CodexHome(tmp_path / "codex")


def found(codex, **where):
    walk = Walk()
    return [os.path.relpath(path, codex.path) for path, _ in codex.provider.discover(walk, **where)], walk


def test_secrets_and_foreign_files_are_never_opened(codex):
    """Each is a pipe: opening one would wait for ever, and the process would not end within its time."""
    codex.rollout(A, conversation(A))
    for name in SECRETS:
        path = codex.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)
        assert codex.provider.claim(str(path)) is None
    environment = {**os.environ, "CODEX_HOME": str(codex.path), "SESSIOND_HOME": str(codex.path.parent / "state")}
    subprocess.run([sys.executable, "-m", "sessiond", "--once"], env=environment, check=True, timeout=30)
    assert list(codex.sessions()) == [A]


def test_a_pipe_in_the_place_of_config_toml_is_not_waited_for(tmp_path):
    (tmp_path / "codex").mkdir()
    os.mkfifo(tmp_path / "codex" / "config.toml")
    code = f"from sessiond.providers.codex import Codex; Codex([{str(tmp_path / 'codex')!r}]).roots()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/passwd", path)])
def test_only_regular_files_are_rollouts(codex, make):
    make(codex.path / "sessions" / f"rollout-2026-09-01T12-00-00-{A}.jsonl")
    assert found(codex)[0] == []


def test_folders_that_are_links_are_not_entered(codex, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / f"rollout-2026-09-01T12-00-00-{A}.jsonl").write_bytes(lines(conversation(A)))
    (codex.path / "sessions" / "link").symlink_to(tmp_path / "elsewhere")
    (codex.path / "sessions" / "loop").symlink_to(codex.path / "sessions")
    assert found(codex)[0] == []


def test_every_listed_folder_is_told_so_that_it_can_be_watched(codex):
    codex.rollout(A, conversation(A))
    _, walk = found(codex)
    below = {os.path.relpath(folder, codex.path) for folder in walk.directories}
    assert below == {"sessions", "sessions/2026", "sessions/2026/09", "sessions/2026/09/01", "archived_sessions", "."}


def test_a_folder_that_cannot_be_listed_is_told_and_the_rest_is_found(codex, monkeypatch):
    path = codex.rollout(A, conversation(A))
    closed = codex.path / "sessions" / "2025"
    closed.mkdir()
    scandir = os.scandir

    def refusing(folder):
        if os.fspath(folder) == str(closed):
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    names, walk = found(codex)
    assert names == [os.path.relpath(path, codex.path)]
    assert walk.unreadable[str(closed)] == "Permission denied"


def test_a_missing_tree_is_told(codex):
    (codex.path / "archived_sessions").rmdir()
    assert str(codex.path / "archived_sessions") in found(codex)[1].unreadable


def test_below_one_folder_only_that_is_looked_at(codex):
    path = codex.rollout(A, conversation(A))
    codex.rollout(uid(2), conversation(uid(2)), tree="archived_sessions")
    assert found(codex, below=str(path.parent))[0] == [os.path.relpath(path, codex.path)]


def test_below_the_home_everything_is_looked_at(codex):
    codex.rollout(A, conversation(A))
    (codex.path / "session_index.jsonl").write_bytes(b"")
    assert sorted(found(codex, below=str(codex.path))[0]) == sorted(found(codex)[0])


def test_the_home_is_watched_flat_and_by_name(codex):
    roots = {os.path.relpath(root.path, codex.path): root for root in codex.provider.roots()}
    assert set(roots) == {"sessions", "archived_sessions", ".", "sqlite"}
    assert [name for name, root in roots.items() if root.recursive] == ["sessions"]
    wanted = roots["."].wanted
    for name in ("session_index.jsonl", "state_5.sqlite", "state_5.sqlite-wal", "state_5.sqlite-journal"):
        assert wanted(name)
    for name in (
        "logs_2.sqlite",
        "logs_2.sqlite-wal",
        "state_5.sqlite-shm",
        "history.jsonl",
        "config.toml",
        "auth.json",
    ):
        assert not wanted(name)

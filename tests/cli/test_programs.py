"""Programs that the client starts are never those of the present folder, whatever PATH says."""

from __future__ import annotations

import os

import pytest

from sessions_cli.moment import find_program


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A folder with programs of well-known names, first on PATH as `.`."""
    for name in ("git", "sqlite3"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\ntouch ran\n", encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "." + os.pathsep + os.environ["PATH"])
    return tmp_path


def test_git_is_not_taken_from_the_present_folder(client, hostile):
    client.fill()
    assert client("list", "--repo").code == 10
    assert not (hostile / "ran").exists()


def test_sqlite3_is_not_taken_from_the_present_folder(client, hostile, process):
    client.fill()
    if find_program("sqlite3", {"PATH": os.environ["PATH"]}) is None:
        pytest.skip("no sqlite3 here")
    process("sql")
    assert not (hostile / "ran").exists()

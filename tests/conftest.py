"""Every test lives in a temporary HOME: the environment that chooses homes never points at real ones."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("repeatable", database=None, derandomize=True, deadline=None)
settings.load_profile("repeatable")

CHOOSERS = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "CODEX_SQLITE_HOME", "SESSIOND_HOME")
XDG = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """An empty HOME for the test and for every process it starts."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(folder))
    for name in (*CHOOSERS, *XDG):
        monkeypatch.delenv(name, raising=False)
    return folder

"""Every test lives in a temporary HOME: the environment that chooses homes never points at real ones."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

from sessiond.service.job import CAPTURED

settings.register_profile("repeatable", database=None, derandomize=True, deadline=None)
settings.load_profile("repeatable")

OTHERS = ("XDG_CACHE_HOME", "XDG_RUNTIME_DIR")

for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:  # a job in the background would hand it down to all children
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """An empty HOME for the test and for every process it starts."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(folder))
    for name in (*CAPTURED, *OTHERS):
        monkeypatch.delenv(name, raising=False)
    return folder

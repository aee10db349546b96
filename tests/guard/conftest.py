"""A small made-up home of both apps and its index: what every count here is taken on."""

from __future__ import annotations

import os
import time

import pytest

from bench.corpus import small
from sessiond import config, paths
from sessiond.provider import load_all
from sessiond.scan import Scanner, refresh
from sessiond.store.writer import Writer

YOUNG_NS = 60_000_000_000


@pytest.fixture
def corpus(home, monkeypatch):
    """HOME with sixty sessions of both apps."""
    small.make(str(home), small.Shape(60, median=4000, mean=5000))
    monkeypatch.setenv("SESSIOND_HOME", str(home / "state"))
    return home


@pytest.fixture
def scanner(corpus, monkeypatch):
    """A living scanner over the whole, indexed home; the clock runs a minute ahead, so that no file is too young."""
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + YOUNG_NS)
    settings = config.load(os.environ)
    homes = config.homes(settings, os.environ)
    folder = paths.state_dir(os.environ)
    assert refresh(folder, homes, settings, wait_s=5)
    writer = Writer(folder)
    yield Scanner(load_all(homes), writer)
    writer.close()

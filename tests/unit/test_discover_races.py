"""Files that go while folders are listed (F7 of docs/faults.md) cost themselves and nothing beside them."""

from __future__ import annotations

import contextlib
import os

import pytest

from sessiond import config, paths
from sessiond.model import Walk
from sessiond.provider import load_all
from tests.kit.world import World

scandir = os.scandir


@pytest.mark.parametrize("app", ["claude", "codex"])
def test_a_file_that_goes_between_listing_and_looking_hides_no_other(tmp_path, monkeypatch, app):
    world = World(tmp_path)
    files = sorted(getattr(world, app)(f"prompt {number}") for number in range(9))

    @contextlib.contextmanager
    def listed_then_gone(folder="."):
        with scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: entry.path)
        if files[4] in [entry.path for entry in listed]:
            os.unlink(files[4])
        yield iter(listed)

    homes = config.homes(config.load(world.env), world.env)
    monkeypatch.setenv("SESSIOND_HOME", paths.state_dir(world.env))
    providers = load_all(homes)
    monkeypatch.setattr(os, "scandir", listed_then_gone)
    walk = Walk()
    found = dict(item for provider in providers for item in provider.discover(walk))
    assert sorted(found) == files[:4] + files[5:]

"""Fixtures over the kit: import them into a conftest."""

from __future__ import annotations

import pytest

from tests.kit.daemon import Daemon
from tests.kit.world import World


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def daemon(world):
    """Makes daemons over the world; every one of them is ended with the test."""
    started = []

    def start(*, wait=True, complete=True, **options):
        process = Daemon(world, **options)
        started.append(process)
        return process.start(wait=wait, complete=complete)

    yield start
    for process in started:
        process.close()

"""A session that moves to another project folder is still the same session."""

from __future__ import annotations

import contextlib
import os
import sqlite3

import pytest

from sessiond import paths
from sessiond.config import Config, Homes
from sessiond.provider import load_all
from sessiond.scan import Scanner, refresh, scan_all
from sessiond.store.writer import Writer
from tests.kit.world import World, claude_prompt, id_of

FILLER = claude_prompt("x", "filler " * 1000)


class Moving:
    """A transcript whose name stands so far from both ends that only the gap pass finds it."""

    def __init__(self, folder):
        self.world = World(folder)
        self.path = self.world.claude(project="-home-user-shop")
        self.fill(200)
        self.world.name(self.path, "Named long ago")
        self.fill(60)
        self.world.append(self.path, claude_prompt(id_of(self.path), "now elsewhere", cwd="/home/user/new"))
        self.homes = Homes({"claude-code": (self.world.claude_home,), "codex": (self.world.codex_home,)})
        refresh(self.world.state, self.homes, Config(), wait_s=1, gaps=True)

    def fill(self, count):
        self.world.append(self.path, *[{**FILLER, "sessionId": id_of(self.path)}] * count)

    def move(self):
        target = os.path.join(self.world.projects, "-home-user-new", os.path.basename(self.path))
        os.makedirs(os.path.dirname(target))
        os.rename(self.path, target)
        return target

    def row(self):
        with contextlib.closing(sqlite3.connect(paths.index_file(self.world.state))) as connection:
            return connection.execute("SELECT title, title_from, cwd, path FROM sessions").fetchone()


@pytest.fixture
def moving(tmp_path):
    return Moving(tmp_path)


def test_a_name_known_from_the_middle_alone_survives_the_move(moving):
    assert moving.row()[:2] == ("Named long ago", "custom")
    target = moving.move()
    refresh(moving.world.state, moving.homes, Config(), wait_s=1)
    assert moving.row() == ("Named long ago", "custom", "/home/user/new", target)


def test_it_survives_a_move_that_is_told_by_events(moving):
    with contextlib.closing(Writer(moving.world.state)) as writer:
        scanner = Scanner(load_all(moving.homes), writer)
        scan_all(scanner, moving.homes, Config())
        target = moving.move()
        scanner.changed([moving.path, target])
    assert moving.row() == ("Named long ago", "custom", "/home/user/new", target)


def test_what_is_appended_at_the_new_place_counts(moving):
    target = moving.move()
    moving.world.name(target, "Named anew")
    refresh(moving.world.state, moving.homes, Config(), wait_s=1)
    assert moving.row()[:2] == ("Named anew", "custom")


def test_another_file_of_the_same_name_takes_over_nothing(moving):
    target = moving.move()
    os.unlink(target)
    other = moving.world.claude(project="-home-user-new", session_id=id_of(moving.path))
    refresh(moving.world.state, moving.homes, Config(), wait_s=1)
    assert moving.row()[:2] == ("first prompt", "prompt")
    assert other == target

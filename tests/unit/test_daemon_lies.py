"""The daemon under a watcher that drops, repeats, reorders and mislabels events (also W16 of docs/faults.md)."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessiond import paths
from sessiond.daemon import Daemon, loop
from sessiond.daemon.timetable import NEVER
from sessiond.notify import Notifier
from sessiond.scan import refresh
from tests.kit.fake_watcher import FakeWatcher
from tests.kit.world import World

PROJECTS = ("-project-a", "-project-b", "-project-c")
IDS = [str(uuid.UUID(int=number)) for number in range(4)]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(loop, "BUSY_S", 0.0)
    monkeypatch.setattr(loop, "DATABASE_S", 0.0)
    monkeypatch.setattr(loop, "GATHER_S", 0.0)
    monkeypatch.setattr("sessiond.dirty.BUSY_SHARE", 0)


class Machine:
    """A world, a daemon in this process under a fake watcher, and a person who moves files about."""

    def __init__(self):
        self.world = World(tempfile.mkdtemp(prefix="sessiond-lies-"))
        os.makedirs(self.world.state, mode=0o700)
        self.daemon = Daemon(self.world.state, self.world.env, Notifier(None), watcher=FakeWatcher)
        self.watcher = self.daemon._watcher
        self.work_off()

    def next_at(self):
        return self.daemon._times.next_at(self.daemon._dirty.next_due_s())

    def work_off(self):
        """Let the daemon do all it has to do now."""
        while self.next_at() <= time.monotonic() or self.daemon._inbox._paths:
            self.daemon.turn()
        self.daemon._notice(time.monotonic())
        while self.daemon._dirty or self.daemon._times.rescan_at <= time.monotonic() + 1:
            self.daemon.turn()

    def close(self):
        self.daemon._index.close()
        self.daemon._inbox.close()
        shutil.rmtree(self.world.folder)

    # -- what a person does; what comes back are the paths that true events would name --------------------------------

    def write(self, session, project):
        path = self.world.claude(f"prompt {session}", project=project, session_id=session)
        return [path]

    def name(self, session, project):
        path = self.path(session, project)
        if not os.path.exists(path):
            return []
        self.world.name(path, f"name {time.monotonic_ns()}")
        return [path]

    def delete(self, session, project):
        path = self.path(session, project)
        if not os.path.exists(path):
            return []
        os.unlink(path)
        return [path]

    def move(self, session, project):
        source = self.path(session, project)
        target = self.path(session, PROJECTS[(PROJECTS.index(project) + 1) % 3])
        if not os.path.exists(source):
            return []
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(source, target)
        return [source, target]

    def rename_project(self, _session, project):
        source = os.path.join(self.world.projects, project)
        target = source + "-renamed"
        if not os.path.isdir(source) or os.path.exists(target):
            return []
        os.rename(source, target)
        return [source, target]

    def remove_project(self, _session, project):
        folder = os.path.join(self.world.projects, project)
        if not os.path.isdir(folder):
            return []
        shutil.rmtree(folder)
        return [folder]

    def path(self, session, project):
        return os.path.join(self.world.projects, project, f"{session}.jsonl")

    # -- what is compared ---------------------------------------------------------------------------------------------

    def listed(self, folder=None):
        index = paths.index_file(folder or self.world.state)
        with contextlib.closing(sqlite3.connect(index)) as connection:
            return connection.execute(
                "SELECT id, path, title, bytes FROM sessions WHERE gone_ms IS NULL"
                " AND session_no NOT IN (SELECT session_no FROM missing) ORDER BY id"
            ).fetchall()

    def truth(self):
        folder = os.path.join(self.world.folder, f"truth-{time.monotonic_ns()}")
        refresh(folder, self.daemon._homes, self.daemon._settings, wait_s=None)
        return self.listed(folder)


ACTIONS = ("write", "name", "delete", "move", "rename_project", "remove_project")
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.sampled_from(IDS), st.sampled_from(PROJECTS)), min_size=1, max_size=12
)
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@contextlib.contextmanager
def machine():
    made = Machine()
    try:
        yield made
    finally:
        made.close()


@QUICK
@given(STEPS, st.randoms(use_true_random=False))
def test_events_in_any_order_and_number_lead_to_the_truth(steps, dice):
    with machine() as m:
        told = []
        for action, session, project in steps:
            told += getattr(m, action)(session, project)
        told += dice.sample(told, len(told) // 2)
        dice.shuffle(told)
        m.watcher.tell(*told)
        m.work_off()
        assert m.listed() == m.truth()


@QUICK
@given(STEPS, st.data())
def test_events_between_the_changes_lead_to_the_truth(steps, data):
    with machine() as m:
        for action, session, project in steps:
            m.watcher.tell(*getattr(m, action)(session, project))
            if data.draw(st.booleans()):
                m.work_off()
        m.work_off()
        assert m.listed() == m.truth()


@QUICK
@given(STEPS, st.randoms(use_true_random=False))
def test_lost_and_false_events_cost_no_more_than_a_rescan(steps, dice):
    with machine() as m:
        for action, session, project in steps:
            true = getattr(m, action)(session, project)
            m.watcher.tell(*(path for path in true if dice.random() < 0.5))
            m.watcher.tell(m.path(dice.choice(IDS), dice.choice(PROJECTS)), m.world.home, "/nowhere", m.world.projects)
            if dice.random() < 0.5:
                m.work_off()
        m.daemon._times.rescan_at = 0.0
        m.work_off()
        assert m.listed() == m.truth()


@QUICK
@given(STEPS)
def test_an_overflow_is_answered_without_waiting_for_the_timer(steps):
    with machine() as m:
        m.watcher.is_dead = True
        for action, session, project in steps:
            getattr(m, action)(session, project)
        m.watcher.overflow()
        m.work_off()
        assert m.listed() == m.truth()


def test_watches_stand_before_the_first_scan():
    with machine() as m:
        order = []
        follow, full = m.watcher.follow, m.daemon._index._scanner.full
        m.watcher.follow = lambda roots: (order.append("watch"), follow(roots))
        m.daemon._index._scanner.full = lambda *a: (order.append("scan"), full(*a))[1]
        m.daemon._times.rescan_at = 0.0
        m.work_off()
        assert order == ["watch", "scan"]


def test_a_daemon_with_nothing_to_do_waits_for_its_rescan_alone():
    with machine() as m:
        m.daemon._times.checkpoint_at = NEVER
        assert m.next_at() == m.daemon._times.rescan_at


def test_rescans_are_jittered_around_their_period():
    with machine() as m:
        m.daemon._settings = m.daemon._settings._replace(rescan_s=100)
        periods = [m.daemon._period_s() for _ in range(200)]
        assert 75 <= min(periods) < 85
        assert 115 < max(periods) <= 125

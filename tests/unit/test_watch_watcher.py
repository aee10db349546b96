"""The watches, with an observer of our own in the place of watchdog's (group W of docs/faults.md has the real one)."""

from __future__ import annotations

import errno
import logging
import os
import threading

import pytest
from watchdog.events import (
    DirDeletedEvent,
    DirModifiedEvent,
    FileCreatedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileOpenedEvent,
)
from watchdog.observers.api import ObservedWatch

from sessiond.provider import Root
from sessiond.watch import Inbox, Watcher, coverage
from sessiond.watch.direct import EVENTS


class Emitter:
    def __init__(self, watch):
        self.watch = watch
        self.alive = True

    def is_alive(self):
        return self.alive


class FakeObserver:
    """Remembers what is scheduled, and fails where it is told to."""

    made = 0

    def __init__(self):
        FakeObserver.made += 1
        self.scheduled = {}
        self.emitters = set()
        self.alive = True
        self.fails = {}

    def start(self):
        pass

    def stop(self):
        self.alive = False

    def join(self, _timeout=None):
        pass

    def is_alive(self):
        return self.alive

    def schedule(self, handler, path, *, recursive=False, event_filter=None):
        if path in self.fails:
            raise self.fails[path]
        watch = ObservedWatch(path, recursive=recursive, event_filter=event_filter)
        self.scheduled[path] = handler
        self.emitters.add(Emitter(watch))
        return watch

    def unschedule(self, watch):
        self.scheduled.pop(watch.path)
        self.emitters = {emitter for emitter in self.emitters if emitter.watch != watch}


class Setting:
    def __init__(self, folder):
        self.home = str(folder / "home")
        self.root = os.path.join(self.home, "projects")
        os.makedirs(self.root)
        self.inbox = Inbox()
        self.observers = []
        self.watcher = Watcher(self.inbox, self.observer)
        self.roots = [Root("claude-code", self.home, self.root, recursive=True)]

    def observer(self):
        self.observers.append(FakeObserver())
        return self.observers[-1]

    def follow(self):
        self.watcher.follow(self.roots)
        return self.observers[-1].scheduled

    def health(self):
        return self.watcher.health()[0]


@pytest.fixture
def setting(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "watched_inodes", lambda: None)
    setting = Setting(tmp_path)
    yield setting
    setting.watcher.stop()
    setting.inbox.close()


def test_no_open_close_or_folder_modified_events_are_asked_for():
    assert not {FileOpenedEvent, DirModifiedEvent} & set(EVENTS)


def test_a_root_is_watched_as_it_says(setting):
    assert setting.root in setting.follow()
    assert setting.health()["mode"] == "events"


def test_following_twice_schedules_once(setting):
    first = dict(setting.follow())
    assert setting.follow() == first


def test_a_missing_root_is_waited_for_in_the_folder_above(setting):
    os.rmdir(setting.root)
    setting.follow()[setting.home].dispatch(FileCreatedEvent(setting.root))
    assert setting.health()["mode"] == "waiting"
    assert setting.inbox.take()[1] == ["a watched folder came or went"]


def test_names_beside_a_missing_root_are_of_no_interest(setting):
    os.rmdir(setting.root)
    setting.follow()[setting.home].dispatch(FileCreatedEvent(os.path.join(setting.home, "history.jsonl")))
    assert setting.inbox.take() == ([], [])


def test_a_root_that_was_there_and_is_missing_is_unavailable(setting):
    setting.follow()
    os.rmdir(setting.root)
    setting.follow()
    assert setting.health()["mode"] == "unavailable"


def test_a_swapped_root_is_watched_anew(setting):
    before = setting.follow()[setting.root]
    os.rename(setting.root, setting.root + "-away")
    os.mkdir(setting.root)
    assert setting.follow()[setting.root] is not before


def test_a_root_whose_emitter_ended_is_watched_anew(setting):
    before = setting.follow()[setting.root]
    for emitter in setting.observers[0].emitters:
        emitter.alive = False
    assert setting.follow()[setting.root] is not before


def test_both_ends_of_a_move_are_marked_together(setting):
    handler = setting.follow()[setting.root]
    handler.dispatch(FileMovedEvent(f"{setting.root}/a/x.jsonl", f"{setting.root}/b/x.jsonl"))
    assert setting.inbox.take()[0] == [f"{setting.root}/a/x.jsonl", f"{setting.root}/b/x.jsonl"]


def test_a_deleted_root_raises_an_alarm(setting):
    setting.follow()[setting.root].dispatch(DirDeletedEvent(setting.root))
    assert setting.inbox.take()[1] == ["a watched folder came or went"]


def test_in_a_flat_root_only_wanted_names_are_marked(setting):
    setting.roots = [Root("codex", setting.home, setting.home, False, lambda name: name == "state_5.sqlite-wal")]
    handler = setting.follow()[setting.home]
    for name in ("logs_2.sqlite-wal", "state_5.sqlite-wal", "history.jsonl"):
        handler.dispatch(FileModifiedEvent(os.path.join(setting.home, name)))
    assert setting.inbox.take()[0] == [os.path.join(setting.home, "state_5.sqlite-wal")]


def test_a_path_below_a_link_is_marked_as_the_provider_spells_it(setting):
    os.rename(setting.root, setting.root + "-real")
    os.symlink(setting.root + "-real", setting.root)
    handler = setting.follow()[setting.root + "-real"]
    handler.dispatch(FileModifiedEvent(f"{setting.root}-real/p/x.jsonl"))
    assert setting.inbox.take()[0] == [f"{setting.root}/p/x.jsonl"]


def test_a_handler_that_fails_raises_an_alarm_and_no_exception(setting, caplog):
    handler = setting.follow()[setting.root]
    handler.dispatch(None)
    assert setting.inbox.take()[1] == ["an event could not be handled"]
    assert "cannot handle an event" in caplog.text


def test_a_root_that_cannot_be_watched_is_polled_and_says_how_to_mend_it(setting):
    setting.follow()
    setting.watcher._unwatch(setting.watcher._roots[setting.root])
    setting.observers[0].fails[setting.root] = OSError(errno.ENOSPC, "no space")
    setting.follow()
    assert setting.health()["mode"] == "polling"
    assert "fs.inotify.max_user_watches=" in setting.health()["why"]


def test_no_observer_at_all_means_polling(setting):
    def none():
        raise OSError(errno.EMFILE, "too many")

    setting.watcher._new_observer = none
    setting.watcher.follow(setting.roots)
    assert setting.health()["mode"] == "polling"
    assert setting.watcher.is_degraded()


def test_an_overflow_in_watchdogs_log_raises_an_alarm_and_is_counted(setting):
    logging.getLogger("watchdog.observers.inotify_c").warning("Inotify queue overflowed; filesystem events were lost")
    assert (setting.inbox.take()[1], setting.watcher.overflows) == (["events were lost in an overflow"], 1)


def test_watchdog_still_says_overflow_where_we_listen():
    from watchdog.observers import inotify_c  # noqa: PLC0415 - on Linux alone

    with open(inotify_c.__file__, encoding="utf-8") as file:
        text = file.read()
    assert 'logger.warning("Inotify queue overflowed' in text
    assert inotify_c.logger.name == "watchdog.observers.inotify_c"


def test_a_dead_thread_raises_an_alarm_and_a_new_observer_takes_over(setting, caplog):
    setting.follow()

    def die():
        raise RuntimeError("dead")

    thread = threading.Thread(target=die)
    thread.start()
    thread.join()
    assert setting.inbox.take()[1] == ["a watching thread died"]
    setting.follow()
    assert (len(setting.observers), setting.watcher.restarts, setting.health()["mode"]) == (2, 1, "events")
    assert "a watching thread died" in caplog.text


def test_directories_that_are_not_watched_are_counted_and_called_degraded(setting, monkeypatch):
    folders = [os.path.join(setting.root, name) for name in "abc"]
    for folder in folders:
        os.mkdir(folder)
    setting.follow()
    monkeypatch.setattr(coverage, "watched_inodes", lambda: {os.stat(p).st_ino for p in (setting.root, folders[0])})
    setting.watcher.check([setting.root, *folders])
    assert (setting.health()["watched"], setting.health()["present"]) == (2, 4)
    assert setting.watcher.is_degraded()


def test_a_linked_project_gets_a_watch_of_its_own(setting, monkeypatch, tmp_path):
    target = tmp_path / "elsewhere"
    target.mkdir()
    link = os.path.join(setting.root, "linked")
    os.symlink(target, link)
    setting.follow()
    monkeypatch.setattr(coverage, "watched_inodes", lambda: {os.stat(setting.root).st_ino})
    assert setting.watcher.check([setting.root, link])
    setting.observers[0].scheduled[str(target)].dispatch(FileModifiedEvent(str(target / "x.jsonl")))
    assert setting.inbox.take()[0] == [os.path.join(link, "x.jsonl")]


def test_changes_that_no_event_told_twice_mean_polling(setting):
    setting.follow()
    modes = []
    for _ in range(2):
        setting.watcher.missed([f"{setting.root}/p/x.jsonl"])
        modes.append(setting.health()["mode"])
    assert modes == ["events", "polling"]


def test_what_was_missed_in_one_root_says_nothing_of_another(setting, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    setting.roots.append(Root("codex", str(other), str(other), recursive=True))
    setting.follow()
    for _ in range(2):
        setting.watcher.missed([f"{setting.root}/p/x.jsonl"])
    assert [root["mode"] for root in setting.watcher.health()] == ["polling", "events"]


@pytest.mark.skipif(not os.path.exists("/proc/self/mountinfo"), reason="needs procfs")
def test_the_file_system_of_a_folder_is_known():
    assert coverage._file_system("/proc/self") == "proc"


def test_a_network_file_system_is_polled_from_the_start(setting, monkeypatch):
    monkeypatch.setattr(coverage, "_file_system", lambda _path: "nfs4")
    setting.follow()
    assert (setting.health()["mode"], setting.health()["why"]) == ("polling", "its file system reports no changes")


def test_a_wait_ends_with_the_first_path(setting):
    setting.inbox.put(["a"])
    assert setting.inbox.wait(10)
    assert not setting.inbox.wait(0)


def test_a_path_put_a_thousand_times_is_there_once(setting):
    for _ in range(1000):
        setting.inbox.put(["a"])
    assert setting.inbox.take() == (["a"], [])

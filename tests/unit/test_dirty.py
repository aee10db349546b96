"""When a changed path is looked at."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiond.dirty import BUSY_MAX_S, BUSY_S, DATABASE_S, LONG_S, DirtySet


def test_a_change_to_a_quiet_file_is_due_at_once():
    dirty = DirtySet()
    dirty.mark("a", 100.0)
    assert dirty.take(100.0) == ["a"]


def test_many_marks_of_one_path_are_one_look():
    dirty = DirtySet()
    for _ in range(1000):
        dirty.mark("a", 100.0)
    assert len(dirty) == 1


def test_a_file_that_was_just_looked_at_waits_out_its_pause():
    dirty = DirtySet()
    dirty.mark("a", 100.0)
    dirty.take(100.0)
    dirty.mark("a", 100.01)
    assert (dirty.take(100.05), dirty.take(100.0 + BUSY_S)) == ([], ["a"])


def test_a_busy_file_does_not_delay_a_quiet_one():
    dirty = DirtySet()
    dirty.mark("busy", 100.0)
    dirty.take(100.0)
    dirty.mark("busy", 100.01)
    dirty.mark("quiet", 100.01)
    assert dirty.take(100.01) == ["quiet"]


def test_the_time_of_the_next_look_is_known():
    dirty = DirtySet()
    dirty.mark("a", 100.0)
    dirty.take(100.0)
    dirty.mark("a", 100.02)
    assert dirty.next_due_s() == 100.0 + BUSY_S


def test_nothing_is_due_when_nothing_is_marked():
    assert DirtySet().next_due_s() == float("inf")


def looks(dirty, until_s, step_s=0.01, start_s=0.0):
    """When a file that changes all the time is looked at."""
    times, now_s = [], start_s
    while now_s < until_s:
        dirty.mark("a", now_s)
        if dirty.take(now_s):
            times.append(now_s)
        now_s += step_s
    return times


def test_a_file_that_keeps_changing_is_looked_at_ten_times_a_second():
    times = looks(DirtySet(), LONG_S)
    assert 45 <= len(times) <= 51


def test_a_file_that_changes_for_long_is_looked_at_about_once_a_second():
    times = [s for s in looks(DirtySet(), 30.0) if s >= 20.0]
    assert 9 <= len(times) <= 13


def test_the_pause_doubles_once_changes_go_on_for_long():
    times = looks(DirtySet(), 12.0)
    pauses = [round(b - a, 1) for a, b in itertools.pairwise(times)]
    assert [p for p in pauses if p not in (0.1, 0.8)] == [0.2, 0.4]


def test_a_file_that_was_quiet_for_a_while_is_due_at_once_again():
    dirty = DirtySet()
    last = looks(dirty, 30.0)[-1]
    dirty.take(last + BUSY_MAX_S)
    later = last + BUSY_MAX_S + 2 * BUSY_MAX_S + 0.1
    dirty.mark("a", later)
    assert dirty.take(later) == ["a"]


def test_busy_files_wait_the_longer_the_more_they_cost():
    dirty = DirtySet()
    dirty.mark("a", 100.0)
    dirty.take(100.0)
    dirty.spent(0.1)
    dirty.mark("a", 100.01)
    assert dirty.next_due_s() == pytest.approx(100.8)


def test_what_busy_files_cost_delays_no_quiet_one():
    dirty = DirtySet()
    dirty.spent(10.0)
    dirty.mark("quiet", 100.0)
    assert dirty.take(100.0) == ["quiet"]


def test_a_database_is_looked_at_at_most_once_in_two_seconds():
    times = looks(DirtySet(lambda _path: DATABASE_S), 10.0)
    assert [round(s) for s in times] == [0, 2, 4, 6, 8]


def test_what_is_quiet_is_forgotten():
    dirty = DirtySet()
    for number in range(1000):
        dirty.mark(f"file {number}", 0.0)
    dirty.take(0.0)
    dirty.mark("other", 100.0)
    dirty.take(100.0)
    assert len(dirty._paces) == 1


def test_clearing_tells_what_was_marked():
    dirty = DirtySet()
    dirty.mark("a", 1.0)
    assert (dirty.clear(), len(dirty)) == (["a"], 0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 3)), max_size=60))
def test_every_mark_is_followed_by_a_look_within_the_longest_pause(marks):
    dirty, now_s, waiting = DirtySet(), 0.0, {}
    for path, pause_s in marks:
        now_s += pause_s
        for taken in dirty.take(now_s):
            assert now_s - waiting.pop(taken) <= pause_s + BUSY_MAX_S
        dirty.mark(path, now_s)
        waiting.setdefault(path, now_s)
    assert set(dirty.take(now_s + BUSY_MAX_S)) == set(waiting)

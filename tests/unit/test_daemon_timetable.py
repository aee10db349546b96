"""What is due next."""

import pytest

from sessiond.daemon.timetable import NEVER, Task, Timetable

NOW = 1000.0
LATER = NOW + 1


def quiet(**times):
    return Timetable(**{"rescan_at": LATER, **times})


def test_a_daemon_that_starts_scans_everything():
    assert Timetable().due(NOW, NEVER) is Task.RESCAN


def test_when_nothing_is_due_the_earliest_time_is_waited_for():
    times = quiet(gap_at=NOW + 0.5)
    assert times.due(NOW, NEVER) is None
    assert times.next_at(NEVER) == NOW + 0.5
    assert times.next_at(NOW + 0.25) == NOW + 0.25


@pytest.mark.parametrize(
    ("times", "marked_at", "task"),
    [
        ({"recheck_at": NOW}, NEVER, Task.RESCAN),
        ({}, NOW, Task.MARKED),
        ({"cover_at": NOW}, NEVER, Task.COVERAGE),
        ({"second_look_at": NOW}, NEVER, Task.SECOND_LOOK),
        ({"checkpoint_at": NOW}, NEVER, Task.CHECKPOINT),
        ({"gap_at": NOW}, NEVER, Task.GAP),
    ],
)
def test_each_has_its_time(times, marked_at, task):
    assert quiet(**times).due(NOW, marked_at) is task


def test_of_several_the_most_pressing_is_done_first():
    everything = Timetable(0.0, *[NOW] * 6)
    done = []
    for task, name in [
        (Task.RESCAN, "rescan_at"), (Task.MARKED, None), (Task.COVERAGE, "cover_at"),
        (Task.SECOND_LOOK, "second_look_at"), (Task.CHECKPOINT, "checkpoint_at"), (Task.GAP, "gap_at"),
    ]:  # fmt: skip
        assert everything.due(NOW, NOW if Task.MARKED not in done else NEVER) is task
        done.append(task)
        if name:
            setattr(everything, name, NEVER)
        everything.recheck_at = NEVER


def test_while_blocked_nothing_is_done_until_that_ends():
    times = Timetable(blocked_until=LATER, rescan_at=NOW)
    assert times.due(NOW, NOW) is None
    assert times.next_at(NOW) == LATER
    assert times.due(LATER, NEVER) is Task.RESCAN

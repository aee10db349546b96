"""Group W of docs/faults.md: what can go wrong with watching."""

from __future__ import annotations

import os
import shutil
import subprocess
import time

import pytest

from tests.kit.oracle import equals_oracle, oracle_rows
from tests.kit.privileges import Mount, need_mounts, need_strace, watch_limit
from tests.kit.world import claude_prompt, id_of, until


def see(world, path, title, within_s=10.0):
    """Wait until the session is listed under the title."""
    until(lambda: world.titles().get(id_of(path)) == title, f"{path} is listed as {title!r}", within_s)


# -- W1, W2: the kernel's limits -------------------------------------------------------------------------------------


def test_w1_folders_beyond_the_watch_limit_are_found_by_short_rescans(world, daemon):
    paths = [world.claude(project=f"-home-user-project-{number}") for number in range(90)]
    daemon(prefix=watch_limit(watches=50), short_rescan_s=1)
    for path in paths:
        world.name(path, "named later")
    until(lambda: set(world.titles().values()) == {"named later"}, "every change is seen in the fallback period", 15)


def test_w1_the_watch_limit_is_reported_with_the_command_that_raises_it(world, daemon):
    for number in range(90):
        world.claude(project=f"-home-user-project-{number}")
    daemon(prefix=watch_limit(watches=50))
    health = until(lambda: world.root_health(world.projects), "the root's state")
    assert (health["present"], health["watched"] <= 50) == (91, True)
    assert "fs.inotify.max_user_watches=" in health["why"]


def test_w1_a_limit_reached_later_is_noticed(world, daemon):
    daemon(prefix=watch_limit(watches=30))
    for number in range(60):
        world.claude(f"prompt {number}", project=f"-home-user-project-{number}")
    until(lambda: len(world.titles()) == 60, "every session is seen", 15)


def test_w2_without_inotify_instances_the_folders_are_polled(world, daemon):
    path = world.claude()
    daemon(prefix=watch_limit(instances=0), short_rescan_s=1)
    assert world.root_health(world.projects)["mode"] == "polling"
    world.name(path, "found by polling")
    see(world, path, "found by polling", 15)


# -- W3: queue overflow ----------------------------------------------------------------------------------------------


def overflow(world, process):
    """Stop the daemon, fill the kernel's queue to the brim, and change what no event can tell any more."""
    with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as file:
        limit = int(file.read())
    if limit > 50_000:
        pytest.skip(f"the queue holds {limit} events here, too many to fill in a test")
    first, second = world.claude("first"), world.claude("second")
    until(lambda: len(world.titles()) == 2, "both sessions are listed")
    line = b'{"type":"progress"}\n'
    with process.stopped():
        with open(first, "ab", buffering=0) as a, open(second, "ab", buffering=0) as b:
            for _ in range(limit // 2 + 100):
                a.write(line)
                b.write(line)
        world.name(first, "named in the overflow")
        return first, world.claude("born in the overflow", project="-home-user-born-in-the-overflow")


def test_w3_a_queue_overflow_is_answered_by_a_rescan(world, daemon):
    process = daemon()
    first, born = overflow(world, process)
    see(world, first, "named in the overflow", 5)
    see(world, born, "born in the overflow", 5)
    equals_oracle(world)
    assert until(lambda: world.health()["overflows"], "the overflow is counted") == 1


def test_w3_a_folder_born_in_an_overflow_is_watched_afterwards(world, daemon):
    process = daemon(recheck_s=0.3)
    _, born = overflow(world, process)
    see(world, born, "born in the overflow", 5)
    time.sleep(0.8)  # the second rescan, which would see what follows without any event, is over
    world.name(born, "told by an event")
    see(world, born, "told by an event", 2)


# -- W4, W5: our own cost --------------------------------------------------------------------------------------------


def settled(world):
    """Wait until no file has to be read again."""
    return until(
        lambda: world.try_rows("SELECT count(*) FROM sources WHERE racy") == [(0,)], "every file is settled", 15
    )


def test_w4_reading_raises_no_events_that_would_be_read_again(world, daemon, tmp_path):
    need_strace()
    world.configure(rescan_s=1)
    for number in range(50):
        world.claude(f"prompt {number}", project=f"-project-{number % 5}")
    process = daemon(racy_ms=300)
    settled(world)
    trace = tmp_path / "trace"
    tracer = subprocess.Popen(
        ["strace", "-f", "-qq", "-e", "trace=open,openat,pread64,read", "-P", world.home, "-y", "-o", trace, "-p",
         str(process.pid)], stderr=subprocess.DEVNULL,
    )  # fmt: skip
    time.sleep(3)
    tracer.terminate()
    tracer.wait(10)
    opened = [line for line in trace.read_text().splitlines() if ".jsonl" in line]
    assert opened == []


def test_w4_an_idle_daemon_uses_no_cpu(world, daemon):
    for number in range(50):
        world.claude(f"prompt {number}")
    process = daemon(checkpoint_s=0.3)
    until(lambda: os.stat(world.index + "-wal").st_size == 0, "the work after the first scan is done", 15)
    before_s = process.cpu_s()
    time.sleep(2)
    assert process.cpu_s() - before_s <= 0.02


def test_w5_a_storm_ends_with_the_right_state_within_a_second(world, daemon):
    paths = [world.claude(f"prompt {number}") for number in range(20)]
    process = daemon()
    descriptors = [os.open(path, os.O_WRONLY | os.O_APPEND) for path in paths]
    rss_kb = process.stat("VmRSS")
    deadline = time.monotonic() + 2
    count = 0
    while time.monotonic() < deadline:
        for descriptor, path in zip(descriptors, paths, strict=True):
            title = f'{{"type":"custom-title","customTitle":"{count}","sessionId":"{id_of(path)}"}}\n'
            os.write(descriptor, title.encode())
        count += 1
        time.sleep(0.01)
    for descriptor in descriptors:
        os.close(descriptor)
    until(lambda: set(world.titles().values()) == {str(count - 1)}, "the last change of every file is seen", 1.5)
    assert process.stat("VmRSS") - rss_kb < 5_000
    equals_oracle(world)


# -- W6, W7, W8: roots that come, go and are links -------------------------------------------------------------------


def test_w6_a_home_that_is_made_later_is_found_without_a_rescan(world, daemon):
    shutil.rmtree(world.claude_home)
    shutil.rmtree(world.codex_home)
    daemon()
    assert world.root_health(world.projects)["mode"] == "waiting"
    path = world.claude("first session ever")
    see(world, path, "first session ever", 5)
    world.name(path, "watched now")
    see(world, path, "watched now", 5)


def swap_by_removal(root):
    shutil.rmtree(root)
    os.mkdir(root)


def swap_by_rename(root):
    os.rename(root, root + "-away")
    os.mkdir(root)


def swap_by_link(root):
    os.rename(root, root + "-away")
    os.mkdir(root + "-elsewhere")
    os.symlink(root + "-elsewhere", root)


@pytest.mark.parametrize("swap", [swap_by_removal, swap_by_rename, swap_by_link])
def test_w7_a_root_that_was_swapped_is_watched_again(world, daemon, swap):
    world.claude("before")
    daemon()
    swap(world.projects)
    path = world.claude("after")
    see(world, path, "after", 5)
    world.name(path, "told by an event")
    see(world, path, "told by an event", 5)


def test_w7_an_empty_root_in_the_place_of_another_loses_no_row(world, daemon):
    path = world.claude("kept")
    daemon()
    swap_by_rename(world.projects)
    until(lambda: world.root_health(world.projects).get("mode") == "unavailable", "the swap is reported")
    assert world.titles() == {id_of(path): "kept"}
    os.rmdir(world.projects)
    os.rename(world.projects + "-away", world.projects)
    world.name(path, "back in its place")
    see(world, path, "back in its place", 5)


def test_w8_a_root_that_is_a_link_is_watched(world, daemon):
    shutil.rmtree(world.projects)
    elsewhere = os.path.join(world.folder, "elsewhere")
    os.mkdir(elsewhere)
    os.symlink(elsewhere, world.projects)
    daemon()
    path = world.claude("through a link")
    see(world, path, "through a link", 5)
    world.name(path, "told by an event")
    see(world, path, "told by an event", 5)
    (stored,) = world.rows("SELECT path FROM sessions")[0]
    assert stored == path


def test_w8_a_project_that_is_a_link_is_watched(world, daemon):
    elsewhere = os.path.join(world.folder, "elsewhere")
    path = world.claude("first", project="project", root=elsewhere)
    os.symlink(os.path.join(elsewhere, "project"), os.path.join(world.projects, "-linked"))
    daemon(recheck_s=0.1, short_rescan_s=60)
    time.sleep(0.5)  # the second scan, after the link got its watch, is over
    world.name(path, "told by an event")
    see(world, path, "told by an event", 2)
    health = world.root_health(world.projects)
    assert (health["watched"], health["present"]) == (2, 2)


def test_w8_loops_and_second_links_list_nothing_twice(world, daemon):
    path = world.claude("once", project="-real")
    for name, target in (
        ("-loop", world.projects),
        ("-same", os.path.join(world.projects, "-real")),
        ("-self", "-self"),
    ):
        os.symlink(target, os.path.join(world.projects, name))
    daemon()
    assert world.rows("SELECT id, path FROM sessions") == [(id_of(path), path)]


# -- W9: no events ---------------------------------------------------------------------------------------------------


def test_w9_changes_that_raise_no_events_are_found_and_the_root_polled(world, daemon):
    need_mounts()
    lower, upper, work = (os.path.join(world.folder, name) for name in ("lower", "upper", "work"))
    for folder in (lower, upper, work):
        os.mkdir(folder)
    path = world.claude("lower", root=lower)
    os.rmdir(world.projects)
    world.configure(rescan_s=2)
    with Mount(world.projects, "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}"):
        process = daemon()
        for number in range(12):
            world.name(path, f"name {number}")
            if until(lambda n=number: world.titles().get(id_of(path)) == f"name {n}", "the change is polled", 10) and (
                world.root_health(world.projects)["mode"] == "polling"
            ):
                break
        assert world.root_health(world.projects)["why"] == "changes there raised no events"
        process.stop()


# -- W10, W11: races and renames -------------------------------------------------------------------------------------


def test_w10_a_file_written_right_after_its_folders_were_made_is_found(world, daemon):
    daemon()
    for number in range(200):
        world.codex(f"session {number}", day=f"2026/{number % 12 + 1:02}/{number // 12 + 1:02}")
    until(lambda: len(world.titles()) == 200, "every session is seen", 5)
    equals_oracle(world)


@pytest.mark.parametrize("while_stopped", [False, True])
def test_w11_chains_of_folder_renames_end_in_the_state_of_a_fresh_scan(world, daemon, while_stopped):
    for name in "abc":
        for number in range(3):
            world.claude(f"{name} {number}", project=f"-project-{name}")
    process = daemon()

    def shuffle():
        at = os.path.join(world.projects, "-project-")
        for old, new in (("a", "x"), ("b", "a"), ("x", "b"), ("c", "y"), ("y", "z")):
            os.rename(at + old, at + new)
        world.claude("in a new folder of an old name", project="-project-c")
        os.rename(at + "b", os.path.join(world.folder, "moved out"))
        world.claude("after the renames", project="-project-b")

    if while_stopped:
        with process.stopped():
            shuffle()
    else:
        shuffle()
    expected = oracle_rows(world)
    assert len(expected) == 8
    equals_oracle(world)


# -- W12: threads that die -------------------------------------------------------------------------------------------

POISONED = """
from watchdog.observers.inotify import InotifyWatchGroup
handle = InotifyWatchGroup.on_event
def poisoned(self, event):
    if event.name == b"poison":
        raise RuntimeError("poison")
    handle(self, event)
InotifyWatchGroup.on_event = poisoned
"""


def poison(world):
    path = os.path.join(world.projects, "poison")
    with open(path, "w"):
        pass
    os.unlink(path)


def test_w12_a_watching_thread_that_died_is_replaced(world, daemon):
    path = world.claude()
    daemon(code=POISONED, recheck_s=0.3, short_rescan_s=1)
    poison(world)
    until(lambda: world.health()["watch_restarts"] == 1, "the restart is counted", 5)
    time.sleep(0.8)  # the second rescan after the alarm is over
    world.name(path, "told by an event")
    see(world, path, "told by an event", 2)


def test_w12_three_deaths_in_a_minute_end_in_polling(world, daemon):
    path = world.claude()
    daemon(code=POISONED, recheck_s=0.3, short_rescan_s=1)
    for count in (1, 2, 3):
        poison(world)
        until(lambda n=count: world.health()["watch_restarts"] >= n, f"restart {count} is counted", 5)
    assert world.root_health(world.projects)["mode"] == "polling"
    world.name(path, "found by polling")
    see(world, path, "found by polling", 10)


# -- W13, W14: mounts and suspended machines -------------------------------------------------------------------------


def test_w13_an_unmounted_root_loses_no_row_and_is_watched_again_when_it_is_back(world, daemon):
    need_mounts()
    world.configure(rescan_s=1)
    disk = os.path.join(world.folder, "disk")
    os.makedirs(os.path.join(disk, "projects"))
    path = world.claude("on a disk", root=os.path.join(disk, "projects"))
    with Mount(world.projects, "--bind", os.path.join(disk, "projects")) as mount:
        daemon()
        (row,) = world.rows("SELECT title, resumable, gone_ms FROM sessions")
        mount.unmount()
        until(lambda: world.root_health(world.projects)["mode"] == "unavailable", "the root is unavailable")
        time.sleep(2.5)
        assert world.rows("SELECT title, resumable, gone_ms FROM sessions") == [row]
        mount.mount()
        until(lambda: world.root_health(world.projects)["mode"] == "events", "the root is watched again")
        world.name(path, "back on its disk")
        see(world, path, "back on its disk", 5)


JUMPING = """
import os
from sessiond.daemon import loop
real = loop._clock_offset
loop._clock_offset = lambda: real() + (3600 if os.path.exists(os.environ["JUMP"]) else 0)
"""


def test_w14_a_jumped_clock_is_answered_by_a_rescan(world, daemon, tmp_path):
    jump = tmp_path / "jump"
    process = daemon(code=JUMPING, env={"JUMP": str(jump)})
    before = world.meta("last_full_scan_ms")
    jump.touch()
    world.claude("wakes the loop")
    until(lambda: world.meta("last_full_scan_ms") > before, "everything is scanned")
    assert "the clock jumped by 3600 s" in process.log()


def test_w14_what_changed_while_the_process_stood_still_is_seen_when_it_goes_on(world, daemon):
    path = world.claude()
    process = daemon()
    with process.stopped():
        world.name(path, "named meanwhile")
    see(world, path, "named meanwhile", 5)


# -- W15, W16 --------------------------------------------------------------------------------------------------------


def test_w15_a_thousand_folders_start_quickly_and_stay_small(world, daemon):
    for number in range(1000):
        session = world.claude(project=f"-project-{number}")
        os.makedirs(os.path.join(session.removesuffix(".jsonl"), "subagents"))
    began = time.monotonic()
    process = daemon(complete=False)
    ready_s = time.monotonic() - began
    until(lambda: len(world.titles()) == 1000, "every session is listed", 20)
    assert ready_s < 3
    assert process.stat("VmRSS") < 40_000


def test_w16_every_kind_of_event_leads_to_a_look_at_the_path(world, daemon):
    daemon()
    path = world.claude("created")
    see(world, path, "created", 5)
    os.rename(path, path + ".away")
    until(lambda: world.titles() == {}, "the session is missed")
    os.rename(path + ".away", path)
    see(world, path, "created", 5)
    with open(path, "w") as file:
        file.write("")
    world.append(path, claude_prompt(id_of(path), "rewritten"))
    see(world, path, "rewritten", 5)

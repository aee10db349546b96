"""What a real daemon tells a service manager, which here is a datagram socket, and when."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from sessiond import paths

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture
def manager(home):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(home / "notify"))
        receiver.settimeout(10)
        yield receiver


@pytest.fixture
def daemon(home, manager):
    """A daemon that reports to `manager`, over a home with one watched folder."""
    (home / ".claude" / "projects" / "-code").mkdir(parents=True)
    env = {**os.environ, "NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "1000000", "PYTHONPATH": ROOT}
    process = subprocess.Popen([sys.executable, "-m", "sessiond"], env=env, cwd=home, stderr=subprocess.PIPE)
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def heard_until(manager, word):
    messages = []
    while not messages or not messages[-1].startswith(word):
        messages.append(manager.recv(4096).decode())
    return messages


def watches(pid):
    """How many inotify watches the process holds."""
    found = 0
    for descriptor in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/fdinfo/{descriptor}") as info:
            found += info.read().count("inotify wd:")
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads the watches from /proc")
def test_at_ready_the_watches_stand_and_the_index_is_there(daemon, manager, home):
    heard_until(manager, "READY=1")
    assert watches(daemon.pid) >= 2
    assert os.path.getsize(paths.index_file(paths.state_dir({"HOME": str(home)}))) > 0


def test_ready_is_told_once_and_before_any_ping(daemon, manager):
    told = heard_until(manager, "WATCHDOG=1")
    assert [message for message in told if message.startswith(("READY", "WATCHDOG"))] == ["READY=1", "WATCHDOG=1"]


def test_with_nothing_to_do_it_pings_at_least_twice_in_the_watchdog_s_time(daemon, manager):
    heard_until(manager, "STATUS=0 sessions")
    for _ in range(2):
        began = time.monotonic()
        heard_until(manager, "WATCHDOG=1")
        assert time.monotonic() - began < 1.0


def test_a_stopped_loop_falls_silent(daemon, manager):
    heard_until(manager, "STATUS=0 sessions")
    daemon.send_signal(signal.SIGSTOP)
    manager.settimeout(1.5)
    with pytest.raises(TimeoutError):
        heard_until(manager, "nothing that it says")


def test_asked_to_end_it_says_so_and_ends_within_two_seconds(daemon, manager):
    heard_until(manager, "READY=1")
    began = time.monotonic()
    daemon.send_signal(signal.SIGTERM)
    heard_until(manager, "STOPPING=1")
    assert (daemon.wait(5), time.monotonic() - began < 2) == (0, True)


def test_a_daemon_whose_state_folder_is_emptied_ends_with_a_code_that_is_restarted(daemon, manager, home):
    state = paths.state_dir({"HOME": str(home)})
    heard_until(manager, "STATUS=0 sessions")
    for name in os.listdir(state):
        os.unlink(os.path.join(state, name))
    daemon.send_signal(signal.SIGHUP)
    assert daemon.wait(10) == 9


def test_killed_by_the_watchdog_it_leaves_word_of_where_it_hung(daemon, manager):
    heard_until(manager, "READY=1")
    daemon.send_signal(signal.SIGABRT)
    assert b"Fatal Python error: Aborted" in daemon.communicate(timeout=5)[1]

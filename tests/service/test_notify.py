"""The notifier speaks sd_notify(3) to a plain datagram socket."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time

import pytest

from sessiond.notify import Notifier

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture
def manager(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(5)
        yield receiver


def heard(receiver):
    receiver.setblocking(False)
    messages = []
    try:
        while True:
            messages.append(receiver.recv(4096))
    except BlockingIOError:
        return messages


def test_each_word_is_one_datagram(manager):
    notifier = Notifier(manager.getsockname())
    notifier.ready()
    notifier.status("watching 3 sessions")
    notifier.ping()
    notifier.stopping()
    assert heard(manager) == [b"READY=1", b"STATUS=watching 3 sessions", b"WATCHDOG=1", b"STOPPING=1"]


@pytest.mark.skipif(sys.platform != "linux", reason="the abstract namespace is Linux only")
def test_an_at_sign_means_the_abstract_namespace():
    name = f"sessiond-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(b"\0" + name.encode())
        Notifier(f"@{name}").ready()
        assert heard(receiver) == [b"READY=1"]


def test_a_status_cannot_smuggle_in_a_second_assignment(manager):
    Notifier(manager.getsockname()).status("indexing\nMAINPID=1")
    assert heard(manager) == [b"STATUS=indexing MAINPID=1"]


def test_the_same_status_is_sent_once(manager):
    notifier = Notifier(manager.getsockname())
    for text in ("a", "a", "b", "a"):
        notifier.status(text)
    assert heard(manager) == [b"STATUS=a", b"STATUS=b", b"STATUS=a"]


def test_a_busy_loop_pings_once_a_second(manager):
    times_s = (0.0, 0.02, 0.99, 1.0, 1.5, 2.0)
    notifier = Notifier(manager.getsockname(), clock=iter(times_s).__next__)
    notifier.ready()
    for _ in times_s:
        notifier.ping()
    assert heard(manager) == [b"READY=1"] + [b"WATCHDOG=1"] * 3


def test_a_loop_that_is_not_ready_yet_asks_for_more_time(manager):
    notifier = Notifier(manager.getsockname())
    notifier.ping()
    assert heard(manager) == [b"EXTEND_TIMEOUT_USEC=60000000"]


def test_a_short_watchdog_is_fed_more_often(manager):
    times_s = (0.0, 0.1, 0.25, 0.3, 0.5)
    notifier = Notifier(manager.getsockname(), "500000", clock=iter(times_s).__next__)
    notifier.ready()
    for _ in times_s:
        notifier.ping()
    assert heard(manager) == [b"READY=1"] + [b"WATCHDOG=1"] * 3


@pytest.mark.parametrize(
    ("watchdog_usec", "silence_s"),
    [("180000000", 90.0), (None, float("inf")), ("0", float("inf")), ("x", float("inf"))],
)
def test_an_idle_loop_is_told_to_speak_up_in_half_the_watchdog_s_time(watchdog_usec, silence_s):
    assert Notifier(None, watchdog_usec).silence_s == silence_s


@pytest.mark.parametrize("address", [None, "", "vsock:2:1234", "relative"])
def test_without_a_usable_address_nothing_happens(address):
    notifier = Notifier(address)
    notifier.ready()
    notifier.status("text")
    notifier.ping()
    notifier.stopping()


def test_a_manager_that_is_gone_is_survived(tmp_path):
    Notifier(str(tmp_path / "nobody")).ready()


@pytest.fixture
def deaf(manager):
    """A manager that receives no more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                channel.sendto(b"x", manager.getsockname())
    return manager


def test_a_manager_that_does_not_listen_costs_waiting_and_no_work(deaf):
    began_s, cpu_s = time.monotonic(), time.process_time()
    Notifier(deaf.getsockname()).ready()
    assert time.process_time() - cpu_s < 0.2 * (time.monotonic() - began_s)


def test_what_will_be_said_again_is_not_waited_for(deaf):
    notifier = Notifier(deaf.getsockname())
    began_s = time.monotonic()
    notifier.ping()
    notifier.status("working")
    assert time.monotonic() - began_s < 0.2


def test_a_status_that_was_not_received_is_sent_again(deaf):
    notifier = Notifier(deaf.getsockname())
    notifier.status("working")
    heard(deaf)
    notifier.status("working")
    assert heard(deaf) == [b"STATUS=working"]


def test_in_the_foreground_socket_is_not_imported():
    code = "import sys; from sessiond.notify import Notifier; Notifier(None).ready(); print('socket' in sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

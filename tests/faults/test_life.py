"""Groups D and T of docs/faults.md: the daemon's life, and time."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time

import pytest

import sessiond
from tests.kit.daemon import Daemon
from tests.kit.oracle import assert_sound, equals_oracle
from tests.kit.privileges import Mount, need_mounts
from tests.kit.world import REPOSITORY, claude_prompt, id_of, until


def see(world, path, title, within_s=5.0):
    until(lambda: world.titles().get(id_of(path)) == title, f"{path} is listed as {title!r}", within_s)


# -- D1, D2: one daemon ----------------------------------------------------------------------------------------------


def test_d1_a_second_daemon_says_who_runs_already(world, daemon):
    process = daemon()
    done = world.run()
    assert (done.returncode, str(process.pid) in done.stderr) == (8, True)


def test_d1_of_ten_started_at_once_one_lives(world, daemon):
    started = [daemon(wait=False) for _ in range(10)]
    until(lambda: sum(process.is_alive() for process in started) == 1, "nine have left", 20)
    assert sorted(process.end() for process in started if not process.is_alive()) == [8] * 9
    (alive,) = [process for process in started if process.is_alive()]
    until(lambda: world.health().get("pid") == alive.pid, "the one left works")


PROBE = """
import sys
from sessiond import locks
while True:
    locks.is_held(sys.argv[1])
"""


def test_d1_clients_that_probe_all_the_time_never_cost_a_daemon_its_start(world, daemon):
    os.makedirs(world.state, mode=0o700)
    lock = os.path.join(world.state, "daemon.lock")
    with open(lock, "w"):
        pass
    clients = [subprocess.Popen([sys.executable, "-c", PROBE, lock], env=world.env) for _ in range(4)]
    try:
        time.sleep(0.3)
        for _ in range(2):
            daemon().stop()
    finally:
        for client in clients:
            client.kill()
            client.wait()


def test_d1_clients_that_refresh_all_the_time_never_cost_a_daemon_its_start(world, daemon):
    world.claude("prompt")
    stop = threading.Event()
    codes = set()

    def refresh():
        while not stop.is_set():
            codes.add(world.run("list", module="sessions_cli.main").returncode)

    threads = [threading.Thread(target=refresh) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(2):
            daemon().stop()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert codes == {0}


def test_d2_a_killed_daemon_leaves_no_lock_behind(world, daemon):
    daemon().kill()
    began = time.monotonic()
    daemon()
    assert time.monotonic() - began < 2


def test_d2_the_pid_in_a_lock_file_is_never_believed(world, daemon):
    os.makedirs(world.state, mode=0o700)
    with open(os.path.join(world.state, "daemon.lock"), "w") as file:
        file.write(f"{os.getpid()}\n")
    assert daemon().is_alive()


def test_once_beside_a_daemon_says_so_and_leaves_well(world, daemon):
    process = daemon()
    done = world.run("--once")
    assert (done.returncode, f"pid {process.pid}" in done.stderr) == (0, True)


# -- D3, D4: signals -------------------------------------------------------------------------------------------------

SLOW = """
import time
from sessiond.scan import scanner
scanner.BATCH_SOURCES = 10
read = scanner.read
scanner.read = lambda *a: (time.sleep(0.01), read(*a))[1]
"""
BLOCKED = """
import time
from sessiond.scan import scanner
scanner.read = lambda *a: time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_d3_a_signal_ends_the_first_index_within_two_seconds_and_keeps_what_is_done(world, daemon, number):
    for count in range(300):
        world.claude(f"prompt {count}")
    process = daemon(code=SLOW, complete=False)
    until(lambda: len(world.titles()) > 20, "the index is under way")
    began = time.monotonic()
    assert process.stop(number) == 0
    assert time.monotonic() - began < 2
    assert 20 < len(world.titles()) < 300
    assert_sound(world.index)


def test_d3_a_read_that_blocks_does_not_keep_it_from_leaving(world, daemon):
    world.claude("prompt")
    process = daemon(code=BLOCKED, complete=False)
    time.sleep(0.3)
    began = time.monotonic()
    assert process.stop() == 0
    assert time.monotonic() - began < 2
    assert "Traceback" not in process.err


def test_d3_the_log_is_in_the_file_when_it_has_left(world, daemon):
    world.claude("prompt")
    process = daemon()
    process.stop()
    assert not os.path.exists(world.index + "-wal")
    assert "STOPPING=1" in process.listen()


def test_d4_sighup_reads_the_configuration_anew(world, daemon):
    other = os.path.join(world.folder, "other-claude")
    path = world.claude("in the other home", root=os.path.join(other, "projects"))
    process = daemon()
    world.configure(rescan_s=3600, homes={"claude-code": [other]})
    process.send(signal.SIGHUP)
    see(world, path, "in the other home")
    world.name(path, "watched now")
    see(world, path, "watched now")


def test_d4_sighup_with_a_broken_configuration_changes_nothing(world, daemon):
    process = daemon()
    world.configure(no_such_key=1)
    process.send(signal.SIGHUP)
    until(lambda: "no_such_key" in process.log(), "the mistake is in the log")
    path = world.claude("still working")
    see(world, path, "still working")


def test_d4_a_terminal_that_closes_does_not_end_it(world, daemon):
    process = daemon()
    for _ in range(5):
        process.send(signal.SIGHUP)
        time.sleep(0.02)
    path = world.claude("still working")
    see(world, path, "still working")
    assert process.is_alive()


# -- D5, D6 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["find", "prompt"]])
def test_d5_a_reader_that_leaves_early_is_no_error(world, arguments):
    for number in range(300):
        world.claude(f"prompt {number} " + "x" * 150)
    world.once()
    program = [sys.executable, "-m", "sessions_cli.main", *arguments]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            program, env=world.env, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=30, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode in (0, 141), done.stderr) == (True, "")


def test_d6_a_configuration_error_ends_with_the_code_on_which_nothing_restarts(world):
    world.configure(rescan_s="often")
    done = world.run()
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (11, 1)


def test_d6_the_unit_does_not_restart_on_what_a_restart_cannot_mend():
    with open(os.path.join(REPOSITORY, "systemd", "sessiond.service")) as file:
        (codes,) = re.findall(r"^RestartPreventExitStatus=(.*)$", file.read(), re.MULTILINE)
    assert {"4", "8", "11"} <= set(codes.split())


# -- D7: the watchdog ------------------------------------------------------------------------------------------------

HANGING = """
import os, time
from sessiond import daemon
turn = daemon.Daemon.turn
def hang(self):
    while os.path.exists(os.environ["HANG"]):
        time.sleep(0.01)
    turn(self)
daemon.Daemon.turn = hang
"""


def test_d7_pings_come_from_the_working_loop_and_stop_with_it(world, daemon, tmp_path):
    flag = tmp_path / "hang"
    process = daemon(code=HANGING, env={"HANG": str(flag), "WATCHDOG_USEC": "400000"})
    before = len(process.listen())
    until(lambda: process.listen()[before:].count("WATCHDOG=1") >= 3, "an idle loop pings", 5)
    flag.touch()
    time.sleep(0.3)
    count = process.listen().count("WATCHDOG=1")
    time.sleep(0.8)
    assert process.listen().count("WATCHDOG=1") == count
    flag.unlink()
    until(lambda: process.listen().count("WATCHDOG=1") > count, "it goes on")


# -- D9 to D15 -------------------------------------------------------------------------------------------------------


def test_d9_two_dozen_files_are_enough(world, daemon):
    paths = [world.claude(f"prompt {number}", project=f"-p{number}") for number in range(40)]
    process = daemon(prefix=("sh", "-c", 'ulimit -n 24; exec "$@"', "sh"))
    for path in paths:
        world.name(path, "seen with few files")
    until(lambda: set(world.titles().values()) == {"seen with few files"}, "all are seen")
    assert len(os.listdir(f"/proc/{process.pid}/fd")) < 20


def test_d9_running_out_of_files_is_waited_out(world, daemon):
    path = world.claude("before")
    process = daemon(retry_max_s=0.5)
    _, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{process.pid}/fd")), hard))
    world.name(path, "no file to spare")
    time.sleep(0.5)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (256, hard))
    world.name(path, "after")
    see(world, path, "after", 10)
    assert process.is_alive()


def test_d9_an_index_that_cannot_be_opened_for_want_of_files_is_opened_later(world, daemon):
    path = world.claude("before")
    process = daemon(retry_max_s=0.5)
    _, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{process.pid}/fd")) - 3, hard))
    os.unlink(world.index)
    world.name(path, "no file for the index")
    time.sleep(0.7)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (256, hard))
    see(world, path, "no file for the index", 10)
    assert process.is_alive()


def test_d10_memory_does_not_grow_with_events(world, daemon):
    paths = [world.claude(f"prompt {number}") for number in range(10)]
    process = daemon()

    def batch(count):
        for _ in range(count):
            for path in paths:
                with open(path, "ab", buffering=0) as file:
                    file.write(b'{"type":"progress"}\n')

    batch(500)
    time.sleep(1)
    before_kb = process.stat("VmRSS")
    batch(2000)
    time.sleep(1)
    assert process.stat("VmRSS") < before_kb + 4_000


def test_d11_the_version_of_the_daemon_is_in_the_index(world, daemon):
    daemon()
    assert world.health()["version"] == sessiond.__version__


def test_d12_a_home_that_is_mounted_later_is_found(world, daemon):
    need_mounts()
    world.configure(rescan_s=1)
    encrypted = os.path.join(world.folder, "encrypted")
    path = world.claude("behind the lock", root=os.path.join(encrypted, "projects"))
    daemon()
    with Mount(world.claude_home, "--bind", encrypted):
        see(world, path, "behind the lock")
        world.name(path, "watched now")
        see(world, path, "watched now")


def test_d13_a_file_that_fails_all_the_time_does_not_fill_the_log(world, daemon):
    broken = (
        "from sessiond.providers import claude_code\n"
        "def no(*_): raise RuntimeError('bug')\n"
        "claude_code.ClaudeCode.observe = no"
    )
    for number in range(400):
        world.claude(f"prompt {number}")
    process = daemon(code=broken)
    assert process.is_alive()
    assert 0 < process.log().count("cannot read") <= 10


def test_d13_the_log_of_a_busy_daemon_tells_no_single_event(world, daemon):
    process = daemon()
    for number in range(50):
        world.claude(f"prompt {number}")
    until(lambda: len(world.titles()) == 50, "all are listed")
    assert len(process.log().splitlines()) <= 3


def test_d14_the_gap_pass_waits_for_as_long_as_its_rate_asks(world, daemon):
    record = (
        b'{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"'
        + b"x" * 4000
        + b'"}]}}\n'
    )
    for number in range(3):
        path = world.claude(f"prompt {number}")
        with open(path, "ab") as file:
            file.write(record * 1024)
        world.append(path, claude_prompt(id_of(path), "the end"))
    began = time.monotonic()
    daemon(code="import sessiond.daemon.gaps\nsessiond.daemon.gaps.BYTES_S = 4 << 20", gap_idle_s=0.1)
    until(lambda: world.health()["gap_files"] == 0, "no gap is left", 15)
    assert time.monotonic() - began > 1.4  # 3 gaps of about 3 MB at 4 MB a second, the last one not waited for


@pytest.mark.parametrize(
    ("changes", "word"),
    [({"HOME": None}, "HOME"), ({"HOME": "relative"}, "HOME"), ({"SESSIOND_HOME": "relative"}, "SESSIOND_HOME")],
)
def test_d15_an_environment_that_says_nothing_useful_is_refused_by_name(world, changes, word):
    env = {k: v for k, v in {**world.env, **changes}.items() if v is not None}
    if "HOME" in changes:
        env.pop("SESSIOND_HOME")
    done = subprocess.run(
        [sys.executable, "-m", "sessiond"], env=env, capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, word in done.stderr) == (11, True)


@pytest.mark.parametrize("arguments", [[], ["--once"]])
def test_d15_a_home_that_is_not_named_in_utf_8_is_refused_by_name(world, arguments):
    home = os.path.join(world.folder, os.fsdecode(b"\xff"))
    done = world.run(*arguments, CODEX_HOME=home)
    assert (done.returncode, "UTF-8" in done.stderr, "Traceback" in done.stderr) == (11, True, False), done.stderr


def test_d15_any_locale_and_umask_will_do(world, daemon):
    path = world.claude("Größe 日本", project="-ünï-日本")
    process = daemon(prefix=("sh", "-c", 'umask 000; exec "$@"', "sh"), env={"LC_ALL": "C", "PYTHONUTF8": "0"})
    see(world, path, "Größe 日本")
    modes = {name: os.stat(os.path.join(world.state, name)).st_mode & 0o777 for name in os.listdir(world.state)}
    assert os.stat(world.state).st_mode & 0o777 == 0o700
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}
    assert process.is_alive()


# -- T1 --------------------------------------------------------------------------------------------------------------

SET_BACK = """
import os, time
real, real_ns = time.time, time.time_ns
def back_s():
    return 86400 if os.path.exists(os.environ["SET_BACK"]) else 0
time.time = lambda: real() - back_s()
time.time_ns = lambda: real_ns() - back_s() * 10**9
"""


def test_t1_a_clock_that_is_set_back_changes_nothing_but_times(world, daemon, tmp_path):
    flag = tmp_path / "back"
    keep, drop = world.claude("kept"), world.claude("deleted")
    process = daemon(code=SET_BACK, env={"SET_BACK": str(flag)})
    os.unlink(drop)
    until(lambda: set(world.titles()) == {id_of(keep)}, "the deletion is seen")
    flag.touch()
    until(lambda: world.rows("SELECT 1 FROM sessions WHERE gone_ms IS NOT NULL"), "the second look is taken", 5)
    world.name(keep, "after the step")
    see(world, keep, "after the step")
    assert process.is_alive()
    flag.unlink()
    world.name(keep, "and back")
    see(world, keep, "and back")
    equals_oracle(world)


def test_a_state_folder_that_goes_ends_the_daemon_so_that_it_is_started_anew(world, daemon):
    path = world.claude("prompt")
    process = daemon()
    for name in os.listdir(world.state):
        with contextlib.suppress(IsADirectoryError):
            os.unlink(os.path.join(world.state, name))
    world.name(path, "later")
    assert process.end(10) == 9
    again = Daemon(world)
    try:
        again.start()
        see(world, path, "later")
    finally:
        again.close()

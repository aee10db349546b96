"""Group H of docs/faults.md, as far as it concerns the daemon and its files; the client's part is in tests/cli."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys

import pytest

from tests.kit import statedb
from tests.kit.privileges import need_strace
from tests.kit.world import id_of, until


def test_h10_the_index_is_nobody_elses_business_whatever_the_umask(world):
    world.claude("private")
    world.once(prefix=("sh", "-c", 'umask 000; exec "$@"', "sh"))
    found = {name: stat.S_IMODE(os.stat(os.path.join(world.state, name)).st_mode) for name in os.listdir(world.state)}
    assert stat.S_IMODE(os.stat(world.state).st_mode) == 0o700
    assert {name: oct(mode) for name, mode in found.items() if mode & 0o077} == {}


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_h10_a_state_folder_that_others_can_write_is_refused(world, mode):
    os.mkdir(world.state)
    os.chmod(world.state, mode)
    done = world.run("--once")
    assert (done.returncode, f"chmod 700 {world.state}" in done.stderr) == (11, True)


def test_h10_a_state_folder_of_another_user_is_refused(world):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.mkdir(world.state, 0o700)
    os.chown(world.state, 12345, 12345)
    done = world.run("--once")
    assert (done.returncode, "another user" in done.stderr) == (11, True)


@pytest.mark.parametrize("name", ["index.db", "write.lock"])
def test_h11_a_link_planted_in_the_place_of_our_file_is_not_followed(world, name):
    victim = os.path.join(world.folder, "victim")
    with open(victim, "w") as file:
        file.write("precious")
    os.mkdir(world.state, 0o700)
    os.symlink(victim, os.path.join(world.state, name))
    done = world.run("--once")
    assert done.returncode == 11
    with open(victim) as file:
        assert file.read() == "precious"


@pytest.mark.parametrize("name", ["daemon.lock", "sessiond.log"])
def test_h11_a_link_planted_in_the_place_of_the_daemons_files_is_not_followed(world, name):
    victim = os.path.join(world.folder, "victim")
    with open(victim, "w") as file:
        file.write("precious")
    os.mkdir(world.state, 0o700)
    os.symlink(victim, os.path.join(world.state, name))
    done = world.run()
    assert (done.returncode, "Traceback" in done.stderr) == (11, False), done.stderr
    with open(victim) as file:
        assert file.read() == "precious"


KILLED_WHILE_COPYING = """
import os, signal
from sessiond.providers.codex import threads
threads.read_threads = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
"""


def private_copies(world):
    """Files of the state folder that hold a vendor's rows and are not the index."""
    found = []
    for folder, _, files in os.walk(world.state):
        found += [
            os.path.join(folder, name)
            for name in files
            if not name.startswith(("index.db", "daemon", "write", "sessiond"))
        ]
    return found


def test_h12_a_copy_left_by_a_killed_daemon_is_removed_by_the_next(world, daemon):
    with statedb.connect(statedb.path_of(world)) as connection:
        thread_id = statedb.add(connection, "private")
    process = daemon(wait=False, code=KILLED_WHILE_COPYING)
    process.end(10)
    process = daemon()
    until(lambda: thread_id in dict(world.rows("SELECT id, title FROM sessions")), "the thread is listed")
    process.stop()
    connection.close()
    assert private_copies(world) == []


SECRETS = (".credentials.json", "auth.json", "settings.json", ".claude.json", "history.jsonl", "remote-settings.json")


def test_h13_secrets_are_never_opened(world, tmp_path):
    need_strace()
    world.claude("one")
    world.codex("two")
    for home in (world.claude_home, world.codex_home, world.home):
        for name in SECRETS:
            with open(os.path.join(home, name), "w") as file:
                file.write('{"token":"secret"}\n')
    trace = str(tmp_path / "trace")
    done = world.run("--once", prefix=("strace", "-f", "-qq", "-e", "trace=open,openat", "-o", trace))
    assert done.returncode == 0
    with open(trace) as file:
        opened = file.read()
    assert [name for name in SECRETS if f'/{name}"' in opened] == []


def test_h13_the_index_holds_no_more_of_what_was_said_than_a_title(world):
    path = world.claude("the beginning " + "of a long first prompt " * 30 + "SECRETEND")
    world.append(
        path,
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "SECRETANSWER"}]}},
    )
    world.once()
    with open(world.index, "rb") as file:
        data = file.read()
    assert (b"the beginning" in data, b"SECRETEND" in data, b"SECRETANSWER" in data) == (True, False, False)


def test_h15_a_compressed_bomb_is_unpacked_no_further_than_its_head(world):
    zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    path = world.codex("before the bomb")
    with open(path, "rb") as file:
        head = file.read()
    compressor = zstd.ZstdCompressor()
    with open(path + ".zst", "wb") as file:
        file.write(compressor.compress(head))
        zeros = b'{"timestamp":"x","type":"event_msg","payload":{}}\n' * 20_000
        file.writelines(compressor.compress(zeros) for _ in range(300))
        file.write(compressor.flush())
    os.unlink(path)
    assert os.path.getsize(path + ".zst") < 1 << 20
    code = (
        "import sys; from sessiond.__main__ import main; code = main(['--once']);"
        " print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')));"
        " sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=world.env, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 60_000
    assert world.rows("SELECT id, title FROM sessions") == [(id_of(path), "before the bomb")]


def test_h16_two_thousand_sessions_are_rescanned_in_a_moment(world, daemon):
    path = world.claude("template")
    with open(path, "rb") as file:
        template = file.read()
    for number in range(2000):
        folder = os.path.join(world.projects, f"-project-{number % 100}")
        os.makedirs(folder, exist_ok=True)
        session_id = f"{number:08}-0000-4000-8000-000000000000"
        with open(os.path.join(folder, f"{session_id}.jsonl"), "wb") as file:
            file.write(template.replace(id_of(path).encode(), session_id.encode()))
    world.once()
    process = daemon(racy_ms=0)
    before_s = process.cpu_s()
    process.send(1)
    scanned = world.meta("last_full_scan_ms")
    until(lambda: world.meta("last_full_scan_ms") > scanned, "it is scanned again")
    assert process.cpu_s() - before_s < 0.5
    assert process.stat("VmHWM") < 60_000
    shutil.rmtree(world.projects)

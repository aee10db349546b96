"""Group F of docs/faults.md: what can be wrong with a session file. Each holds for a file that a daemon is watching."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import uuid

import pytest

from tests.kit.manifest import manifest
from tests.kit.oracle import equals_oracle
from tests.kit.privileges import need_strace, obedient
from tests.kit.world import claude_prompt, codex_records, id_of, until


def title(world, path):
    return world.titles().get(id_of(path))


def see(world, path, expected, within_s=5.0):
    until(lambda: title(world, path) == expected, f"{path} is listed as {expected!r}", within_s)


def line(**record):
    return json.dumps(record).encode() + b"\n"


def named(path, text):
    return line(type="custom-title", customTitle=text, sessionId=id_of(path))


def add(path, data):
    with open(path, "ab") as file:
        file.write(data)


# -- F1 to F3: lines that are not what they should be ----------------------------------------------------------------


def test_f1_a_record_written_in_two_halves_counts_when_it_is_whole(world, daemon):
    path = world.claude("prompt")
    daemon()
    record = named(path, "written in halves")
    add(path, record[:30])
    until(lambda: world.rows("SELECT bytes FROM sessions") == [(os.path.getsize(path),)], "the first half is seen")
    assert title(world, path) == "prompt"
    add(path, record[30:])
    see(world, path, "written in halves")
    equals_oracle(world)


@pytest.mark.parametrize("app", ["claude", "codex"])
def test_f1_a_first_record_written_in_pieces_counts_when_it_is_whole(world, daemon, app):
    daemon()
    path = getattr(world, app)("written in pieces")
    with open(path, "rb") as file:
        whole = file.read()
    os.truncate(path, 0)
    for start in range(0, len(whole), 97):
        add(path, whole[start : start + 97])
        time.sleep(0.03)
    see(world, path, "written in pieces")
    equals_oracle(world)


def test_f2_a_torn_record_costs_itself_and_not_the_next_one_on_its_line(world, daemon):
    path = world.claude("prompt")
    daemon()
    add(path, named(path, "torn")[:40] + named(path, "whole"))
    see(world, path, "whole")
    add(path, b'{"type":"assistant","mess' + named(path, "second"))
    see(world, path, "second")
    equals_oracle(world)


@pytest.mark.parametrize("where", ["middle", "end"])
def test_f3_a_run_of_nul_bytes_costs_only_itself(world, daemon, where):
    path = world.claude("prompt")
    daemon()
    add(path, b"\0" * 700 + (b"\n" if where == "middle" else b""))
    add(path, named(path, "after the zeros") if where == "middle" else b"\n" + named(path, "after the zeros"))
    see(world, path, "after the zeros")
    equals_oracle(world)


# -- F4 to F6: files that were rewritten -----------------------------------------------------------------------------


def test_f4_a_truncated_file_is_read_anew(world, daemon):
    path = world.claude("prompt")
    size = os.path.getsize(path)
    world.name(path, "will be cut off")
    daemon()
    assert title(world, path) == "will be cut off"
    os.truncate(path, size)
    see(world, path, "prompt")


def test_f4_a_file_copied_and_cut_to_nothing_starts_anew(world, daemon):
    path = world.claude("old prompt")
    daemon()
    os.truncate(path, 0)
    add(path, line(**claude_prompt(id_of(path), "new prompt")))
    see(world, path, "new prompt")
    equals_oracle(world)


def test_f5_an_atomic_replacement_of_equal_size_and_time_is_seen(world, daemon):
    path = world.claude("first title")
    daemon()
    status = os.stat(path)
    with open(path, "rb") as file:
        data = file.read().replace(b"first title", b"other title")
    with open(path + ".tmp", "wb") as file:
        file.write(data)
    os.utime(path + ".tmp", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(path + ".tmp", path)
    see(world, path, "other title")


@pytest.mark.parametrize("running", [True, False])
def test_f6_a_rewrite_of_equal_size_with_the_old_time_put_back_is_seen(world, daemon, running):
    path = world.claude("first title")
    world.once()
    if running:
        daemon()
    status = os.stat(path)
    with open(path, "r+b") as file:
        at = file.read().index(b"first title")
        file.seek(at)
        file.write(b"other title")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    if not running:
        world.once()
    see(world, path, "other title")


# -- F7, F8: files that go -------------------------------------------------------------------------------------------


def test_f7_files_deleted_while_they_are_read_raise_no_error(world, daemon):
    process = daemon()
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            path = world.claude("short life", project="-churn")
            time.sleep(0.002)
            os.unlink(path)

    threads = [threading.Thread(target=churn) for _ in range(2)]
    for thread in threads:
        thread.start()
    lasting = [world.claude(f"lasting {number}", project="-churn") for number in range(50)]
    time.sleep(1)
    stop.set()
    for thread in threads:
        thread.join()
    until(lambda: set(world.titles()) == {id_of(path) for path in lasting}, "what lasts is listed, and nothing else")
    assert "Traceback" not in process.log()


def test_f8_a_deleted_session_is_gone_within_four_seconds(world, daemon):
    path = world.claude("to be deleted")
    daemon()
    os.unlink(path)
    until(lambda: world.titles() == {}, "it left the default list", 1)
    until(lambda: world.rows("SELECT 1 FROM sessions WHERE gone_ms IS NOT NULL"), "it is gone", 4)


def test_f8_without_a_daemon_the_next_refresh_is_the_second_look(world):
    path = world.claude("to be deleted")
    world.once()
    os.unlink(path)
    world.once()
    assert world.rows("SELECT resumable, gone_ms FROM sessions") == [(0, None)]
    time.sleep(2.1)
    world.once()
    assert world.rows("SELECT count(*) FROM sessions WHERE gone_ms IS NOT NULL") == [(1,)]


def test_f8_a_root_renamed_away_and_back_loses_no_row(world, daemon):
    paths = [world.claude(f"prompt {number}") for number in range(5)]
    daemon(recheck_s=0.3)
    os.rename(world.projects, world.projects + "-away")
    until(lambda: world.root_health(world.projects).get("mode") == "unavailable", "the absence is reported")
    time.sleep(2.5)
    assert len(world.titles()) == 5
    os.rename(world.projects + "-away", world.projects)
    world.name(paths[0], "still watched")
    see(world, paths[0], "still watched")
    assert len(world.titles()) == 5


def test_f8_a_root_that_is_away_when_the_daemon_starts_is_unavailable_and_loses_no_row(world, daemon):
    path = world.claude("kept")
    world.once()
    os.rename(world.projects, world.projects + "-away")
    daemon()
    assert world.root_health(world.projects)["mode"] == "unavailable"
    time.sleep(2.3)
    assert world.titles() == {id_of(path): "kept"}


# -- F9, F10: files that cannot or must not be opened ----------------------------------------------------------------


@pytest.mark.parametrize("what", ["file", "folder"])
def test_f9_what_may_not_be_read_keeps_its_row_and_is_reported(world, daemon, what):
    prefix = obedient()
    world.configure(rescan_s=1)
    path = world.claude("readable once")
    daemon(prefix=prefix)
    closed = path if what == "file" else os.path.dirname(path)
    add(path, named(path, "written while closed"))
    see(world, path, "written while closed")
    os.chmod(closed, 0)
    try:
        if what == "file":
            add(path, named(path, "unseen"))
            problem = "SELECT problem FROM scan_problems"
        else:
            problem = "SELECT value FROM meta WHERE key = 'unreadable' AND value LIKE '%Permission denied%'"
        until(lambda: "Permission denied" in str(world.rows(problem)), "the problem is reported")
        time.sleep(2.5)
        assert title(world, path) == "written while closed"
    finally:
        os.chmod(closed, 0o700)
    add(path, named(path, "open again"))
    see(world, path, "open again")
    until(lambda: not world.rows("SELECT problem FROM scan_problems"), "the problem is gone")


def fifo(path):
    os.mkfifo(path)


def link_to_device(path):
    os.symlink("/dev/zero", path)


def link_to_file(path):
    os.symlink("/etc/passwd", path)


def folder(path):
    os.mkdir(path)


def unix_socket(path):
    os.chdir(os.path.dirname(path))
    with socket.socket(socket.AF_UNIX) as channel:
        channel.bind(os.path.basename(path))


@pytest.mark.parametrize("make", [fifo, link_to_device, link_to_file, folder, unix_socket])
def test_f10_what_is_no_regular_file_is_passed_over_at_once(world, daemon, make, monkeypatch):
    monkeypatch.chdir(world.folder)
    real = world.claude("real")
    for root, name in (
        (os.path.dirname(real), "{}.jsonl"),
        (world.codex_sessions, "rollout-2026-01-02T03-04-05-{}.jsonl"),
    ):
        make(os.path.join(root, name.format(uuid.uuid4())))
    daemon()
    make(os.path.join(os.path.dirname(real), f"{uuid.uuid4()}.jsonl"))
    world.name(real, "the daemon goes on")
    see(world, real, "the daemon goes on")
    assert len(world.titles()) == 1


# -- F11, F12: size --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("app", ["claude", "codex"])
def test_f11_two_gigabytes_cost_no_more_than_their_ends(world, daemon, app):
    path = getattr(world, app)("huge")
    process = daemon()
    rss_kb, cpu_s = process.stat("VmHWM"), process.cpu_s()
    os.truncate(path, 2 << 30)
    add(path, b"\n" + line(**claude_prompt(id_of(path), "at the end")))
    until(lambda: world.rows("SELECT bytes FROM sessions") == [(os.path.getsize(path),)], "the new size is seen")
    assert process.cpu_s() - cpu_s < 0.5
    assert process.stat("VmHWM") - rss_kb < 40_000


def test_f11_a_line_of_a_gigabyte_is_never_held_whole(world, daemon):
    process = daemon()
    rss_kb = process.stat("VmHWM")
    path = world.claude("before the long line")
    add(path, b'{"type":"user","message":{"role":"user","content":"')
    os.truncate(path, 1 << 30)
    add(path, b'"}}\n' + named(path, "after the long line"))
    see(world, path, "after the long line")
    assert process.stat("VmHWM") - rss_kb < 60_000


def filler(count):
    """`count` megabytes of ordinary records."""
    record = line(type="assistant", message={"role": "assistant", "content": [{"type": "text", "text": "x" * 4000}]})
    return record * (count * 256)


def test_f12_a_title_is_never_outrun_by_what_follows(world, daemon):
    path = world.claude("prompt")
    daemon()
    world.name(path, "named early")
    see(world, path, "named early")
    for _ in range(5):
        add(path, filler(2))
        until(lambda: world.rows("SELECT bytes FROM sessions") == [(os.path.getsize(path),)], "the append is seen")
    assert title(world, path) == "named early"


def test_f12_a_title_far_from_both_ends_is_found_by_the_gap_pass(world, daemon):
    path = world.claude("prompt")
    add(path, filler(3) + named(path, "in the middle") + filler(5))
    world.append(path, claude_prompt(id_of(path), "the end"))
    daemon(gap_idle_s=0.1)
    see(world, path, "in the middle")
    until(lambda: world.health()["gap_files"] == 0, "no gap is left")


# -- F13 to F16: content ---------------------------------------------------------------------------------------------

HOSTILE = [
    b"[" * 200_000 + b"\n",
    b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"\n",
    b'{"type":"custom-title","customTitle":' + b"9" * 100_000 + b"}\n",
    b'{"type":"custom-title","customTitle":NaN}\n',
    b'{"type":"custom-title","customTitle":["list"]}\n',
    b'{"type":"custom-title","customTitle":{"a":1}}\n',
    b'{"type":"custom-title","customTitle":"\\ud800 half"}\n',
    b'{"type":"user","message":"text","timestamp":"9999-99-99T99:99:99Z","cwd":7,"gitBranch":[1]}\n',
    b'{"type":"user","timestamp":1e999,"cwd":"\\u0000\\u0000"}\n',
    b'\xef\xbb\xbf{"type":"user"}\r\n',
    b"\xff\xfe\x00{\x00}\x00\n",
    b'null\n"text"\n17\n[]\n\n\r\n',
    b'{"type":{"type":"user"},"message":{"role":{},"content":[null,1,{"type":"text","text":null}]}}\n',
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
@pytest.mark.parametrize("app", ["claude", "codex"])
def test_f13_no_line_keeps_the_others_from_being_read(world, app, number):
    path = getattr(world, app)("prompt")
    add(path, HOSTILE[number])
    record = claude_prompt(id_of(path), "later") if app == "claude" else codex_records(id_of(path), "later")[1]
    world.append(path, record)
    beside = getattr(world, app)("beside it")
    done = world.once()
    assert "Traceback" not in done.stderr
    assert world.rows("SELECT count(*) FROM sessions WHERE id IN (?, ?)", id_of(path), id_of(beside)) == [(2,)]


def test_f14_folder_names_of_any_bytes_are_indexed_and_watched(world, daemon):
    session_id = str(uuid.uuid4())
    strange = os.path.join(os.fsencode(world.projects), b"-\xff\xfe-\n-")
    os.mkdir(strange)
    path = os.path.join(strange, f"{session_id}.jsonl".encode())
    process = daemon()
    world.append(path, claude_prompt(session_id, "in a strange place"))
    until(lambda: world.titles() == {session_id: "in a strange place"}, "it is listed", 5)
    (stored,) = world.rows("SELECT path FROM sessions")[0]
    assert os.fsencode(stored) == path
    os.unlink(path)
    until(lambda: world.titles() == {}, "its deletion is seen", 5)
    assert "Traceback" not in process.log()


@pytest.mark.parametrize(
    "first",
    [
        {"type": "summary", "summary": "of something else", "leafUuid": "x"},
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
        {"type": "queue-operation", "operation": "enqueue"},
        {"type": "progress", "data": {}},
        {"type": "pr-link", "prNumber": 1},
        {"type": "a kind of tomorrow", "payload": {}},
    ],
)
def test_f15_a_transcript_may_begin_with_any_record(world, daemon, first):
    daemon()
    session_id = str(uuid.uuid4())
    path = os.path.join(world.projects, "-p", f"{session_id}.jsonl")
    os.mkdir(os.path.dirname(path))
    world.append(path, first)
    world.append(path, claude_prompt(session_id, "the prompt"))
    see(world, path, "the prompt")


def test_f15_rollouts_from_before_the_envelope_are_listed(world, daemon):
    daemon()
    thread_id = str(uuid.uuid4())
    os.makedirs(os.path.join(world.codex_sessions, "2025/06/01"))
    path = os.path.join(world.codex_sessions, "2025/06/01", f"rollout-2025-06-01T10-00-00-{thread_id}.jsonl")
    content = [{"type": "input_text", "text": "an old prompt"}]
    world.append(path, {"id": thread_id, "timestamp": "2025-06-01T10:00:00.000Z", "instructions": None},
                 {"type": "message", "role": "user", "content": content})  # fmt: skip
    until(lambda: world.rows("SELECT id, resumable FROM sessions") == [(thread_id, 0)], "it is listed, not resumable")


def test_f16_a_title_inside_a_message_names_nothing(world, daemon):
    path = world.claude("prompt")
    daemon()
    inner = {"type": "custom-title", "customTitle": "not a name", "sessionId": id_of(path)}
    nested = claude_prompt(id_of(path), [{"type": "tool_result", "content": json.dumps(inner)}], toolUseResult=inner)
    world.append(path, nested)
    until(lambda: world.rows("SELECT bytes FROM sessions") == [(os.path.getsize(path),)], "the append is seen")
    assert title(world, path) == "prompt"


# -- F17, F18: times and copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stamp_s", [0, 4_070_908_800])
def test_f17_a_modification_time_of_any_year_is_indexed_once(world, daemon, stamp_s):
    path = world.claude("out of time")
    os.utime(path, (stamp_s, stamp_s))
    world.configure(rescan_s=1)
    process = daemon(racy_ms=300)
    assert title(world, path) == "out of time"
    until(lambda: world.rows("SELECT racy FROM sources WHERE kind = 'transcript'") == [(0,)], "it is settled", 5)
    assert process.is_alive()


def test_f18_two_copies_are_one_session_that_lives_where_it_was_used_last(world, daemon):
    first = world.claude("copied", project="-first")
    daemon()
    second = os.path.join(world.projects, "-second", os.path.basename(first))
    os.mkdir(os.path.dirname(second))
    shutil.copy(first, second)
    world.name(second, "used here")
    see(world, second, "used here")
    until(lambda: world.rows("SELECT path FROM sessions") == [(second,)], "the newer copy names the place")
    assert world.rows("SELECT count(*) FROM observations") == [(2,)]
    os.unlink(second)
    until(lambda: world.rows("SELECT path, resumable FROM sessions") == [(first, 1)], "the other copy is left")
    equals_oracle(world)


# -- F19 to F22 ------------------------------------------------------------------------------------------------------


def states(world, stop):
    """Every (resumable, gone) that a reader sees until told to stop."""
    seen = set()
    while not stop.is_set():
        seen.update(world.try_rows("SELECT resumable, gone_ms IS NOT NULL FROM sessions"))
        time.sleep(0.001)
    return seen


def watch_states(world):
    stop = threading.Event()
    seen = set()
    thread = threading.Thread(target=lambda: seen.update(states(world, stop)))
    thread.start()

    def finish():
        stop.set()
        thread.join()
        return seen

    return finish


def test_f19_a_rollout_that_is_compressed_never_looks_gone(world, daemon):
    zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    path = world.codex("compressed later")
    daemon()
    finish = watch_states(world)
    with open(path, "rb") as file, open(path + ".zst.tmp", "wb") as packed:
        packed.write(zstd.compress(file.read()))
    os.link(path + ".zst.tmp", path + ".zst")
    os.unlink(path + ".zst.tmp")
    os.unlink(path)
    until(lambda: world.rows("SELECT path FROM sessions") == [(path + ".zst",)], "the compressed form is indexed")
    time.sleep(0.3)
    assert finish() == {(1, 0)}
    assert world.titles() == {id_of(path): "compressed later"}


def test_f20_a_thread_moved_to_the_archive_is_the_same_row(world, daemon):
    path = world.codex("archived")
    daemon()
    number = world.rows("SELECT session_no FROM sessions")
    archive = os.path.join(world.codex_home, "archived_sessions")
    os.mkdir(archive)
    os.rename(path, os.path.join(archive, os.path.basename(path)))
    until(lambda: world.rows("SELECT archived, gone_ms FROM sessions") == [(1, None)], "it is archived")
    os.rename(os.path.join(archive, os.path.basename(path)), path)
    until(lambda: world.rows("SELECT archived, resumable FROM sessions") == [(0, 1)], "it is back")
    assert world.rows("SELECT session_no FROM sessions") == number


def test_f21_files_of_sub_agents_are_never_opened(world, tmp_path):
    need_strace()
    path = world.claude("with helpers")
    beside = os.path.join(path.removesuffix(".jsonl"), "subagents")
    os.makedirs(beside)
    for place in (os.path.join(beside, "agent-a1.jsonl"), os.path.join(os.path.dirname(path), "agent-a2.jsonl")):
        world.append(place, claude_prompt(id_of(path), "a helper's work", isSidechain=True))
    trace = str(tmp_path / "trace")
    done = world.run("--once", prefix=("strace", "-f", "-qq", "-e", "trace=open,openat", "-o", trace))
    assert done.returncode == 0
    with open(trace) as file:
        opened = file.read()
    assert (os.path.basename(path) in opened, "agent-" in opened) == (True, False)
    assert world.titles() == {id_of(path): "with helpers"}


FAILING_DISK = """
import os
from sessiond.reading import opened
real = opened.io.FileIO
class Failing(real):
    def read(self, *size):
        if os.path.exists(os.environ["BAD_DISK"]):
            raise OSError(5, "Input/output error")
        return super().read(*size)
    def readinto(self, buffer):
        if os.path.exists(os.environ["BAD_DISK"]):
            raise OSError(5, "Input/output error")
        return super().readinto(buffer)
opened.io = type("io", (), {"FileIO": Failing})
"""


def test_f22_a_read_error_keeps_the_row_and_is_tried_again(world, daemon, tmp_path):
    world.configure(rescan_s=1)
    bad_disk = tmp_path / "bad"
    path = world.claude("before the error")
    daemon(code=FAILING_DISK, env={"BAD_DISK": str(bad_disk)})
    bad_disk.touch()
    world.name(path, "unreadable")
    until(lambda: world.rows("SELECT problem FROM scan_problems") == [(os.strerror(errno.EIO),)], "it is reported")
    assert title(world, path) == "before the error"
    bad_disk.unlink()
    see(world, path, "unreadable")


# -- the first promise -----------------------------------------------------------------------------------------------


def test_no_source_is_touched_by_a_daemon(world, daemon):
    world.claude("one")
    world.codex("two")
    before = manifest(world.claude_home, world.codex_home)
    process = daemon()
    until(lambda: len(world.titles()) == 2, "both are listed")
    process.stop()
    assert manifest(world.claude_home, world.codex_home) == before


def test_sources_on_a_read_only_mount_are_indexed(world):
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("mount namespaces cannot be made here")
    path = world.claude("read only")
    script = f"mount --bind {world.claude_home} {world.claude_home} && mount -o remount,bind,ro {world.claude_home}"
    done = world.run("--once", prefix=("unshare", "-m", "sh", "-c", f'{script} && exec "$@"', "sh"))
    assert done.returncode == 0, done.stderr
    assert world.titles() == {id_of(path): "read only"}

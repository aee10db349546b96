"""Counts that do not depend on the machine: what a scan opens, reads and asks of SQLite."""

from __future__ import annotations

import contextlib
import glob
import io
import json
import os
import sys

import pytest

from sessiond import config
from sessiond.model import Previous
from sessiond.provider import load_all

SLACK_BYTES = 4096
_listeners: list[list[str]] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _listeners and not isinstance(arguments[0], int):
        _listeners[-1].append(str(arguments[0]))


sys.addaudithook(_hook)


@contextlib.contextmanager
def opened_files():
    """The paths that Python opens meanwhile."""
    _listeners.append([])
    try:
        yield _listeners[-1]
    finally:
        _listeners.pop()


@contextlib.contextmanager
def statements(writer):
    """The SQL statements that a writer carries out meanwhile."""
    found: list[str] = []
    writer._connection.set_trace_callback(found.append)
    try:
        yield found
    finally:
        writer._connection.set_trace_callback(None)


class CountingFile(io.FileIO):
    bytes_read = 0

    def read(self, size=-1, /):
        data = super().read(size)
        self.bytes_read += len(data or b"")
        return data


def a_transcript(home):
    return max(glob.glob(f"{home}/.claude/projects/*/*.jsonl"), key=os.path.getsize)


def a_rollout(home):
    return max(glob.glob(f"{home}/.codex/sessions/*/*/*/*.jsonl"), key=os.path.getsize)


def last_record(path):
    """The last line of a file that has a time: appended again it is one more record."""
    with open(path, "rb") as file:
        return [line for line in file.read().splitlines() if b'"timestamp"' in line][-1] + b"\n"


def append(path, data):
    with open(path, "ab") as file:
        file.write(data)


def test_rescan_of_an_unchanged_home_opens_no_session_file(scanner):
    with opened_files() as found:
        outcome = scanner.full()
    assert outcome.read == 0
    assert found == []


def test_rescan_of_an_unchanged_home_writes_nothing(scanner):
    with statements(scanner.writer) as found:
        scanner.full()
    assert [s for s in found if not s.startswith("SELECT")] == []


def test_rescan_after_one_append_opens_that_file_alone(scanner, corpus):
    path = a_transcript(corpus)
    append(path, last_record(path))
    with opened_files() as found:
        outcome = scanner.full()
    assert outcome.read == 1
    assert found == [path]


@pytest.mark.parametrize("pick", [a_transcript, a_rollout], ids=["claude-code", "codex"])
@pytest.mark.parametrize("filler_mb", [0, 3], ids=["small", "with a gap"])
def test_one_append_reads_what_was_appended_and_at_most_four_kilobytes(corpus, pick, filler_mb):
    path = pick(corpus)
    record = last_record(path)
    append(path, record * (filler_mb * 1_000_000 // len(record)))
    settings = config.load(os.environ)
    for provider in load_all(config.homes(settings, os.environ)):
        source = provider.claim(path)
        if source is not None:
            break
    with CountingFile(path) as file:
        before = provider.observe(source, file, os.path.getsize(path), None)
    append(path, record)
    previous = Previous(before.state, json.loads(json.dumps(before.facts)))
    with CountingFile(path) as file:
        provider.observe(source, file, os.path.getsize(path), previous)
        assert file.bytes_read <= len(record) + SLACK_BYTES


def test_an_append_that_changes_no_search_text_takes_eleven_statements(scanner, corpus):
    path = a_transcript(corpus)
    append(path, last_record(path))
    with statements(scanner.writer) as found:
        scanner.changed([path])
    assert not any("_fts" in s or "INTO search_text" in s for s in found)
    assert len(found) <= 11, "\n".join(x[:70] for x in found)


def test_a_new_session_takes_ten_statements(scanner, corpus):
    path = a_transcript(corpus)
    copy = os.path.join(os.path.dirname(path), "0b9c41de-61f5-4a3e-9a11-5a0e7d6b1c22.jsonl")
    with open(path, "rb") as file:
        data = file.read()
    append(copy, data)
    with statements(scanner.writer) as found:
        scanner.changed([copy])
    own = [s for s in found if "data_version" not in s and "_fts_" not in s]
    assert len(own) <= 10, "\n".join(x[:70] for x in own)

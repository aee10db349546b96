"""Whole logs of Claude Code, as the history library and `sessions log` read them."""

import io
import json
import os
from datetime import datetime

import pytest

from sessiond.providers.claude_code import ClaudeCode, log

IDS = [f"{n:08x}-1111-4222-8333-000000000000" for n in range(3)]


@pytest.fixture
def provider(tmp_path):
    """Three sessions, last written on the 1st, 2nd and 3rd of October by local time."""
    folder = tmp_path / "projects" / "-home-sam-app"
    folder.mkdir(parents=True)
    for day, session_id in enumerate(IDS, 1):
        path = folder / f"{session_id}.jsonl"
        path.write_text('{"type":"user"}\n')
        moment = datetime(2026, 10, day, 12).astimezone().timestamp()
        os.utime(path, (moment, moment))
        (folder / session_id).mkdir()
        (folder / session_id / "custom-title.json").write_text("{}")
    return ClaudeCode([str(tmp_path)])


def test_logs_are_listed_newest_first_with_their_local_date(provider):
    assert [(log.id, log.date) for log in provider.logs(None, None)] == [
        (IDS[2], "2026-10-03"),
        (IDS[1], "2026-10-02"),
        (IDS[0], "2026-10-01"),
    ]


def test_the_first_date_counts_and_the_last_does_not(provider):
    assert [log.id for log in provider.logs("2026-10-02", "2026-10-03")] == [IDS[1]]


def test_entries_are_every_record_in_order():
    lines = [{"type": "user", "n": 1}, {"type": "assistant", "n": 2}, {"type": "custom-title", "n": 3}]
    data = b"\n".join(json.dumps(line).encode() for line in lines)
    assert list(log.records(io.BytesIO(data))) == lines


def test_damage_costs_one_entry():
    data = b'{"n":1}\nnonsense\n{"n":2}{"n":3}\n{"type":"user","message":{"ro{"type":"user","n":4}\n\0\0{"n":5}'
    assert [entry["n"] for entry in log.records(io.BytesIO(data))] == [1, 2, 3, 4, 5]


def test_a_line_of_a_megabyte_is_an_entry_like_any_other():
    data = json.dumps({"text": "x" * (1 << 20)}).encode() + b"\n"
    (entry,) = log.records(io.BytesIO(data))
    assert len(entry["text"]) == 1 << 20

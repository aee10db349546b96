"""The log cannot grow without end (D13 of docs/faults.md)."""

from __future__ import annotations

import logging
import os

import pytest

from sessiond import logs
from sessiond.errors import ConfigurationError


def record(message, *arguments):
    return logging.LogRecord("x", logging.INFO, __file__, 1, message, arguments, None)


def test_a_message_of_one_kind_passes_ten_times_a_minute():
    limit = logs.RateLimit()
    assert sum(limit.filter(record("cannot read %s", n)) for n in range(1_000)) == 10


def test_messages_of_other_kinds_are_not_held_up():
    limit = logs.RateLimit()
    for number in range(1_000):
        limit.filter(record("cannot read %s", number))
    assert limit.filter(record("something else"))


def test_after_a_minute_the_number_of_those_left_out_is_told(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    limit = logs.RateLimit()
    for number in range(25):
        limit.filter(record("cannot read %s", number))
    now[0] = 61.0
    late = record("cannot read %s", "z")
    assert (limit.filter(late), late.getMessage()) == (True, "cannot read z (15 more like this were left out)")


def test_the_kinds_remembered_are_bounded():
    limit = logs.RateLimit()
    for number in range(5_000):
        limit.filter(record(f"kind {number}"))
    assert len(limit._seen) <= 1_001


@pytest.fixture
def file(tmp_path):
    handler = logs.RotatingFile(str(tmp_path / "sessiond.log"))
    yield handler
    handler.close()


def test_the_files_of_a_million_messages_are_three_of_a_megabyte(file, tmp_path):
    for number in range(45_000):
        file.emit(record("x" * 90 + " %d", number))
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sorted(sizes) == ["sessiond.log", "sessiond.log.1", "sessiond.log.2"]
    assert max(sizes.values()) < 1_000_200


def test_the_newest_messages_are_in_the_file_of_that_name(file, tmp_path):
    for number in range(15_000):
        file.emit(record("x" * 90 + " %d", number))
    assert (tmp_path / "sessiond.log").read_text().endswith(" 14999\n")


def test_the_log_is_readable_by_its_owner_alone(file, tmp_path):
    file.emit(record("private"))
    assert os.stat(tmp_path / "sessiond.log").st_mode & 0o077 == 0


def test_a_name_of_any_bytes_can_be_logged(file, tmp_path):
    file.emit(record("cannot read %s", os.fsdecode(b"\xff.jsonl")))
    assert (tmp_path / "sessiond.log").read_text() == "cannot read \\udcff.jsonl\n"


def test_a_log_that_cannot_be_written_is_an_error_of_configuration(tmp_path, monkeypatch):
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    (tmp_path / "sessiond.log").mkdir()
    with pytest.raises(ConfigurationError, match=r"sessiond\.log"):
        logs.set_up(str(tmp_path))

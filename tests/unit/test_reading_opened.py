"""Opening what bears the name of a session (F10 and F7 of docs/faults.md)."""

from __future__ import annotations

import os

import pytest

from sessiond.model import DATABASE, Fingerprint, Reading, Source
from sessiond.reading.opened import read_safely

OLD = Fingerprint(1, 2, 3, 4, 5)


def opened(path, use=lambda _file, size: Reading({"id": {"size": size}}), kind="transcript"):
    return read_safely(Source("app", "/home", str(path), kind), OLD, use)


def test_a_regular_file_is_read_with_the_size_and_fingerprint_it_has_now(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    status = path.stat()
    result = opened(path)
    assert result.reading == Reading({"id": {"size": 5}})
    assert result.fingerprint == (status.st_dev, status.st_ino, 5, status.st_mtime_ns, status.st_ctime_ns)


def test_a_database_keeps_the_fingerprint_it_was_found_with(tmp_path):
    (tmp_path / "x").write_bytes(b"12345")
    assert opened(tmp_path / "x", kind=DATABASE).fingerprint == OLD


def test_a_pipe_that_nobody_writes_to_is_left_at_once(tmp_path):
    os.mkfifo(tmp_path / "x")
    assert opened(tmp_path / "x").problem == "not a regular file"


@pytest.mark.parametrize("path", ["/dev/null", "/"])
def test_devices_and_folders_are_no_sources(path):
    assert opened(path).problem == "not a regular file"


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "real").write_bytes(b"secret")
    os.symlink(tmp_path / "real", tmp_path / "x")
    assert opened(tmp_path / "x").reading is None


def test_a_missing_file_is_told_from_an_unreadable_one(tmp_path):
    (tmp_path / "file").touch()
    results = [opened(tmp_path / "x"), opened(tmp_path / "file" / "x"), opened("/dev/null")]
    assert [result.is_gone for result in results] == [True, True, False]


def test_an_error_while_reading_is_told_in_the_systems_words(tmp_path):
    (tmp_path / "x").touch()

    def fail(_file, _size):
        raise OSError(5, "Input/output error")

    assert opened(tmp_path / "x", fail).problem == "Input/output error"


def test_a_bug_costs_one_file_and_is_in_the_log(tmp_path, caplog):
    (tmp_path / "x").touch()

    def fail(_file, _size):
        raise RuntimeError("bug")

    assert opened(tmp_path / "x", fail).problem == "internal error, see the log"
    assert "RuntimeError: bug" in caplog.text


def test_no_descriptor_is_left_open(tmp_path):
    os.mkfifo(tmp_path / "x")
    before = len(os.listdir("/dev/fd"))
    for _ in range(20):
        opened(tmp_path / "x")
    assert len(os.listdir("/dev/fd")) == before

"""Compressed rollouts: with a decoder, without one, damaged, and made to do harm."""

from __future__ import annotations

import io
import json
import os
import sys
import tracemalloc

import pytest

from sessiond.errors import UnreadableLogError
from sessiond.model import Excluded
from sessiond.providers.codex import compressed, log
from tests.kit import codex_databases
from tests.kit.codex_home import CodexHome, answer, conversation, lines, meta, record, turn, uid, user

A = uid(1)
DECODER = "backports.zstd" if sys.version_info < (3, 14) else "compression.zstd"


@pytest.fixture
def codex(tmp_path):
    return CodexHome(tmp_path / "codex")


@pytest.fixture
def without_decoder(monkeypatch):
    monkeypatch.setattr(compressed, "_MODULES", ("no_such_module",))


@pytest.fixture
def zstd():
    return pytest.importorskip(DECODER)


def packed(codex, data):
    return codex.rollout(A, data, ending=".jsonl.zst")


def test_a_compressed_rollout_tells_what_the_plain_one_would(codex, zstd):
    content = lines([meta(A, git={"branch": "main"}), turn(), user("Hi"), turn(model="last"), answer()])
    packed(codex, zstd.compress(content))
    session = codex.session(A)
    assert (session.title, session.branch, session.model, session.resumable) == ("Hi", "main", "last", True)


def test_several_blocks_are_read_in_order(codex, zstd):
    noise = lines([record("response_item", {"type": "x", "output": os.urandom(500_000).hex()}) for _ in range(5)])
    packed(codex, zstd.compress(lines([meta(A), turn()]) + noise + lines([user("Hi"), turn(model="last"), answer()])))
    session = codex.session(A)
    assert (session.title, session.model) == ("Hi", "last")


def test_without_a_decoder_the_name_gives_a_session(codex, without_decoder):
    path = packed(codex, b"\x28\xb5\x2f\xfd and more")
    session = codex.session(A)
    assert (session.id, session.path, session.resumable, session.title) == (A, str(path), True, None)
    assert session.created_ms == 1_788_264_000_000


def test_without_a_decoder_the_row_tells_the_rest(codex, without_decoder):
    packed(codex, b"\x28\xb5\x2f\xfd and more")
    codex_databases.make(codex.path / "state_5.sqlite", {A: {"first_user_message": "Hi", "model": "gpt-5"}})
    session = codex.session(A)
    assert (session.title, session.model, session.cwd) == ("Hi", "gpt-5", "/Users/alex/code/shop-api")


@pytest.mark.parametrize(
    "damage", [lambda d: d[: len(d) // 2], lambda d: b"no zstd at all", lambda d: d[:20] + b"x" * 50]
)
def test_a_damaged_file_still_gives_a_session_and_a_problem(codex, zstd, damage):
    path = packed(codex, damage(zstd.compress(lines(conversation(A)))))
    source = codex.provider.claim(str(path))
    reading = codex.provider.observe(source, io.BytesIO(path.read_bytes()), path.stat().st_size, None)
    assert list(reading.facts) == [A]
    assert reading.problem.startswith("damaged: ")
    assert not isinstance(codex.session(A), Excluded)


@pytest.mark.parametrize("filling", [b"\0", b"\n", b"x"])
def test_a_bomb_is_unpacked_to_a_bound_and_in_little_memory(codex, zstd, filling):
    behind_the_bound = lines([turn(model="never reached")])
    bomb = zstd.compress(lines(conversation(A)) + filling * (100 << 20) + b"\n" + behind_the_bound)
    source = codex.provider.claim(str(codex.path / "sessions" / f"rollout-2026-09-01T12-00-00-{A}.jsonl.zst"))
    tracemalloc.start()
    try:
        reading = codex.provider.observe(source, io.BytesIO(bomb), len(bomb), None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (reading.facts[A]["prompt"], reading.facts[A]["model"]) == ("Fix the build", "gpt-5")
    assert peak < 40 << 20


def test_a_file_that_asks_for_much_memory_is_damaged(codex, zstd):
    options = {zstd.CompressionParameter.window_log: 27}
    stream = zstd.ZstdCompressor(options=options)
    data = stream.compress(lines(conversation(A))) + stream.flush()
    source = codex.provider.claim(str(codex.path / "sessions" / f"rollout-2026-09-01T12-00-00-{A}.jsonl.zst"))
    reading = codex.provider.observe(source, io.BytesIO(data), len(data), None)
    assert reading.problem.startswith("damaged: ")


def test_the_log_of_a_compressed_rollout_is_read(zstd):
    content = lines(conversation(A))
    file = io.BytesIO(zstd.compress(content))
    assert list(log.records(file)) == [json.loads(line) for line in content.splitlines()]


def test_the_log_of_a_damaged_rollout_gives_what_is_whole_and_then_says_so(zstd):
    noise = lines([record("response_item", {"output": os.urandom(300_000).hex()}) for _ in range(10)])
    data = zstd.compress(lines(conversation(A)) + noise)
    records = log.records(io.BytesIO(data[: len(data) // 2]))
    assert next(records)["type"] == "session_meta"
    with pytest.raises(UnreadableLogError, match="damaged"):
        list(records)


def test_without_a_decoder_the_log_says_what_to_install(without_decoder):
    with pytest.raises(UnreadableLogError, match=r"sessiond\[zstd\]"):
        list(log.records(io.BytesIO(b"\x28\xb5\x2f\xfd and more")))

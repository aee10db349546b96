"""The library for whole logs: listing by date without opening a file, reading any generation as a stream."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
from datetime import date

import pytest

from sessiond import history
from sessiond.errors import UnreadableLogError
from tests.kit.codex_home import CodexHome, answer, conversation, lines, meta, record, turn, uid, user

A, B, C, D = (uid(n) for n in range(1, 5))
DECODER = "backports.zstd" if sys.version_info < (3, 14) else "compression.zstd"


@pytest.fixture
def codex(tmp_path):
    return CodexHome(tmp_path / "codex")


def write(codex, place, data=b""):
    path = codex.path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else lines(data))
    return str(path)


def dated(codex):
    write(codex, f"sessions/2026/08/31/rollout-2026-08-31T23-59-59-{A}.jsonl")
    write(codex, f"sessions/2026/09/01/rollout-2026-09-01T00-00-00-{B}.jsonl")
    write(codex, f"archived_sessions/rollout-2026-09-02T10-00-00-{C}.jsonl.zst")
    write(codex, f"sessions/rollout-2025-05-10-{D}.jsonl")


def ids(codex, **days):
    return [log.id for log in history.sessions("codex", str(codex.path), **days)]


# -- listing -----------------------------------------------------------------------------------------------------------


def test_logs_come_newest_first_from_every_place(codex):
    dated(codex)
    assert ids(codex) == [C, B, A, D]


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ({"after": "2026-09-01"}, [C, B]),
        ({"before": "2026-09-01"}, [A, D]),
        ({"after": "2026-08-31", "before": "2026-09-01"}, [A]),
        ({"after": date(2026, 9, 2)}, [C]),
        ({"before": date(2025, 5, 10)}, []),
        ({"before": date(2025, 5, 11)}, [D]),
        ({"after": "2026-12-31"}, []),
    ],
)
def test_after_is_inclusive_and_before_exclusive(codex, days, expected):
    dated(codex)
    assert ids(codex, **days) == expected


def test_a_log_is_known_by_its_place_date_and_id(codex):
    path = write(codex, f"sessions/2026/09/01/rollout-2026-09-01T00-00-00-{B}.jsonl")
    assert list(history.sessions("codex", str(codex.path))) == [history.LogFile("codex", path, B, "2026-09-01")]


def test_listing_opens_no_file_and_enters_no_unwanted_date(codex, monkeypatch):
    dated(codex)
    entered = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: entered.append(str(folder)) or scandir(folder))
    opened = []
    open_file = os.open
    monkeypatch.setattr(os, "open", lambda path, *more: opened.append(os.path.basename(path)) or open_file(path, *more))
    assert ids(codex, after="2026-09-01") == [C, B]
    assert [name for name in opened if name != "config.toml"] == []
    assert not [folder for folder in entered if folder.endswith(("08", "31"))]


def test_a_misfiled_log_is_dated_by_its_name(codex):
    write(codex, f"sessions/from another machine/rollout-2026-09-01T00-00-00-{B}.jsonl")
    write(codex, f"sessions/2026/1/2/rollout-2026-09-02T00-00-00-{C}.jsonl")
    assert [log.date for log in history.sessions("codex", str(codex.path))] == ["2026-09-02", "2026-09-01"]


def test_without_a_home_the_environment_names_it(codex, monkeypatch):
    dated(codex)
    monkeypatch.setenv("CODEX_HOME", str(codex.path))
    assert [log.id for log in history.sessions("codex")] == [C, B, A, D]


def test_a_day_that_is_none_is_refused(codex):
    with pytest.raises(ValueError):
        history.sessions("codex", str(codex.path), after="yesterday")


# -- opening -----------------------------------------------------------------------------------------------------------


def test_the_opening_names_what_it_knows_and_keeps_the_rest(codex):
    git = {"commit_hash": "abc", "branch": "main", "repository_url": "https://alex:secret@host/shop.git"}
    first = meta(A, git=git, forked_from_id=B, memory_mode="enabled", base_instructions={"text": "x"})
    opening = history.read(str(codex.rollout(A, [first, user("Hi")]))).meta
    assert opening == history.Metadata(
        id=A,
        timestamp="2026-09-01T10:00:00.000Z",
        cwd="/Users/alex/code/shop-api",
        originator="codex-tui",
        cli_version="0.151.0",
        source="cli",
        model_provider="openai",
        forked_from=B,
        git=history.Git("abc", "main", "https://host/shop.git"),
        raw={"memory_mode": "enabled", "base_instructions": {"text": "x"}},
    )


OLD = {"id": A, "timestamp": "2025-08-20T10:00:00.000Z", "instructions": "be brief"}
ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}


def test_an_old_opening_leaves_out_what_it_did_not_record(codex):
    opening = history.read(str(codex.rollout(A, [OLD, ITEM]))).meta
    assert opening == history.Metadata(id=A, timestamp=OLD["timestamp"], raw={"instructions": "be brief"})


def test_a_log_that_says_nothing_of_itself_has_no_opening(codex):
    assert history.read(str(codex.rollout(A, [user("Hi")]))).meta is None


def claude(path):
    base = {"sessionId": B, "cwd": "/a", "version": "2.1.0", "gitBranch": "main", "entrypoint": "cli"}
    records = [
        {"type": "mode", "mode": "normal", "sessionId": B},
        {**base, "type": "user", "timestamp": "t1", "uuid": "u1", "message": {"role": "user", "content": "Hi"}},
        {**base, "type": "assistant", "timestamp": "t2",
         "message": {"role": "assistant", "content": [{"type": "thinking"}, {"type": "text", "text": "Hello"}]}},
        {**base, "type": "user", "timestamp": "t3", "isMeta": True, "message": {"role": "user", "content": "caveat"}},
        {**base, "type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": "x"}]}},
    ]  # fmt: skip
    path.write_bytes(lines(records))
    return str(path)


def test_a_claude_code_log_opens_with_its_first_record_that_has_a_folder(tmp_path):
    log = history.read(claude(tmp_path / f"{B}.jsonl"))
    assert log.app == "claude-code"
    assert log.meta == history.Metadata(
        id=B, timestamp="t1", cwd="/a", originator="cli", cli_version="2.1.0", git=history.Git(branch="main"),
        raw={"type": "user", "uuid": "u1"},
    )  # fmt: skip


# -- entries -----------------------------------------------------------------------------------------------------------


def test_an_enveloped_entry_is_its_payload(codex):
    entries = list(history.read(str(codex.rollout(A, conversation(A)))).entries)
    assert [entry.kind for entry in entries] == ["session_meta", "turn_context", "event_msg", "event_msg"]
    assert entries[2].payload == {"type": "user_message", "message": "Fix the build"}
    assert entries[2].timestamp == "2026-09-01T10:00:00.000Z"


def test_before_the_envelope_an_entry_is_the_whole_line_and_has_no_kind(codex):
    entries = list(history.read(str(codex.rollout(A, [OLD, ITEM, {"record_type": "state"}]))).entries)
    assert [(entry.kind, entry.payload) for entry in entries] == [
        (None, OLD),
        (None, ITEM),
        (None, {"record_type": "state"}),
    ]


def test_a_document_is_read_item_by_item(codex):
    document = {"session": OLD, "items": [ITEM, {"type": "reasoning", "text": "é" * 300_000}, ITEM]}
    path = write(
        codex, f"sessions/rollout-2025-04-20-{A}.json", json.dumps(document, indent=2, ensure_ascii=False).encode()
    )
    log = history.read(path)
    assert log.meta.id == A
    assert [entry.payload for entry in log.entries] == [OLD, *document["items"]]


def test_a_compressed_log_reads_as_the_plain_one(codex):
    zstd = pytest.importorskip(DECODER)
    plain = history.read(str(codex.rollout(A, conversation(A))))
    packed = history.read(str(codex.rollout(A, zstd.compress(lines(conversation(A))), ending=".jsonl.zst")))
    assert list(packed.entries) == list(plain.entries)
    assert packed.meta == plain.meta


def test_a_claude_code_entry_is_the_whole_record(tmp_path):
    entries = list(history.read(claude(tmp_path / "x.jsonl")).entries)
    assert [entry.kind for entry in entries] == ["mode", "user", "assistant", "user", "user"]
    assert entries[1].payload["message"]["content"] == "Hi"


def test_broken_lines_are_passed_over(codex):
    path = codex.rollout(A, lines([meta(A), b"not json", b"\0" * 99, b"[1]", user("Hi")]) + b'{"torn": ')
    assert [entry.kind for entry in history.read(str(path)).entries] == ["session_meta", "event_msg"]


def test_the_entries_can_be_gone_through_more_than_once(codex):
    log = history.read(str(codex.rollout(A, conversation(A))))
    assert list(log.entries) == list(log.entries)


def test_a_log_is_read_in_constant_memory(codex):
    path = codex.rollout(A, [meta(A), turn()])
    one = lines([record("response_item", {"output": "y" * 200_000})])
    with open(path, "ab") as file:
        file.writelines(one for _ in range(300))
    tracemalloc.start()
    try:
        count = sum(1 for _ in history.read(str(path)).entries)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 302
    assert peak < 8 << 20


def test_a_file_that_cannot_be_opened_is_an_error_in_words(tmp_path):
    with pytest.raises(UnreadableLogError, match="No such file"):
        history.read(str(tmp_path / "rollout-gone.jsonl"))


def test_a_pipe_is_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "rollout-x.jsonl")
    with pytest.raises(UnreadableLogError, match="not a regular file"):
        history.read(str(tmp_path / "rollout-x.jsonl"))


# -- what was said -----------------------------------------------------------------------------------------------------


def said(path):
    return [(s.role, s.text) for s in history.read(str(path)).said]


def test_what_was_said_comes_once_though_it_is_recorded_as_item_and_event(codex):
    def message(role, text):
        return record("response_item", {"type": "message", "role": role, "content": [{"type": "text", "text": text}]})

    path = codex.rollout(
        A,
        [meta(A), message("developer", "<permissions>"), message("user", "<environment_context>x"),
         message("user", "Hi"), user("Hi"), record("response_item", {"type": "reasoning"}), answer("Hello"),
         message("assistant", "Hello"), user("Bye")],
    )  # fmt: skip
    assert said(path) == [("user", "Hi"), ("assistant", "Hello"), ("user", "Bye")]


def test_what_was_said_in_paginated_history_is_found(codex):
    def completed(kind, text):
        item = {"type": kind, "content": [{"type": "text", "text": text}]}
        return record("event_msg", {"type": "item_completed", "item": item})

    assert said(codex.rollout(A, [meta(A), completed("UserMessage", "Hi"), completed("AgentMessage", "Hello")])) == [
        ("user", "Hi"),
        ("assistant", "Hello"),
    ]


def test_what_was_said_before_the_envelope_is_found(codex):
    assert said(codex.rollout(A, [OLD, ITEM])) == [("user", "Hi")]


def test_what_was_said_to_claude_code_leaves_out_tools_thoughts_and_what_nobody_typed(tmp_path):
    assert said(claude(tmp_path / "x.jsonl")) == [("user", "Hi"), ("assistant", "Hello")]

"""What rows, rollouts and names of one thread amount to together."""

from __future__ import annotations

import os

import pytest

from sessiond.model import Excluded, Reason
from tests.kit import codex_databases
from tests.kit.codex_home import (
    CREATED_MS,
    ENDED_MS,
    CodexHome,
    answer,
    conversation,
    lines,
    meta,
    touch,
    turn,
    uid,
    user,
)

A, B = uid(1), uid(2)
ROW = {"title": "Fix the build", "first_user_message": "Fix the build", "preview": "Fix the build"}


@pytest.fixture
def codex(tmp_path):
    return CodexHome(tmp_path / "codex")


def row(codex, thread_id=A, generation=50, **values):
    codex_databases.make(codex.path / "state_5.sqlite", {thread_id: ROW | values}, generation)


def names(codex, *renames):
    (codex.path / "session_index.jsonl").write_bytes(
        lines(
            [
                {"id": thread_id, "thread_name": name, "updated_at": "2026-09-01T11:00:00Z"}
                for thread_id, name in renames
            ]
        )
    )


# -- union -------------------------------------------------------------------------------------------------------------


def test_a_file_without_a_row_and_a_row_without_a_file_are_both_sessions(codex):
    codex.rollout(A, conversation(A))
    row(codex, B)
    assert set(codex.sessions()) == {A, B}


def test_a_row_without_a_file_has_no_path_and_cannot_be_resumed(codex):
    row(codex, rollout_path=str(codex.path / "sessions/rollout-gone.jsonl"))
    session = codex.session(A)
    assert (session.path, session.bytes, session.resumable, session.gone_ms) == (None, None, False, None)


def test_a_name_alone_is_no_session(codex):
    names(codex, (A, "Only a name"))
    assert codex.session(A) == Excluded(Reason.MISSING)


def test_a_header_alone_is_no_session_row_or_not(codex):
    codex.rollout(A, [meta(A)])
    row(codex, title="", first_user_message="", preview="")
    assert codex.session(A) == Excluded(Reason.NO_CONVERSATION)


def test_a_row_with_a_prompt_makes_a_session_of_a_file_whose_prompt_was_not_found(codex):
    codex.rollout(A, [meta(A), turn()])
    row(codex)
    session = codex.session(A)
    assert session.title == "Fix the build"
    assert session.resumable


def test_a_goal_does_not_stand_in_for_a_prompt_that_only_the_row_knows(codex):
    goal = {"type": "event_msg", "payload": {"type": "thread_goal_updated", "goal": {"objective": "Ship it"}}}
    codex.rollout(A, [meta(A), goal, turn()])
    assert codex.session(A).first_prompt == "Ship it"
    row(codex, preview="Ship it")
    session = codex.session(A)
    assert (session.first_prompt, session.title) == ("Fix the build", "Ship it")


def test_an_empty_file_with_a_row_is_listed_but_cannot_be_resumed(codex):
    codex.rollout(A, b"")
    row(codex)
    assert not codex.session(A).resumable


# -- names -------------------------------------------------------------------------------------------------------------

LEGACY = {"history_mode": "legacy"}
PAGINATED = {"history_mode": "paginated"}


@pytest.mark.parametrize(
    ("values", "renamed", "title", "title_from"),
    [
        (LEGACY | {"title": "Build fixes"}, "From the index", "Build fixes", "custom"),
        (LEGACY | {"title": "  Fix the build\n"}, "From the index", "From the index", "custom"),
        (LEGACY, "From the index", "From the index", "custom"),
        (LEGACY, "", "An older name", "custom"),
        (LEGACY, None, "Fix the build", "prompt"),
        (LEGACY | {"preview": "The goal", "title": "Fix the build"}, None, "The goal", "preview"),
        (LEGACY | {"title": "", "preview": ""}, None, "Fix the build", "prompt"),
        (PAGINATED | {"name": " Build fixes "}, "From the index", "Build fixes", "custom"),
        (PAGINATED | {"name": "", "title": "Any title"}, "From the index", "Fix the build", "prompt"),
        (PAGINATED | {"name": None, "preview": "The goal"}, None, "The goal", "preview"),
    ],
)
def test_the_name_shown_is_the_one_codex_shows(codex, values, renamed, title, title_from):
    codex.rollout(A, conversation(A))
    row(codex, **values)
    if renamed is not None:
        names(codex, (A, "An older name"), (A, renamed))
    session = codex.session(A)
    assert (session.title, session.title_from) == (title, title_from)


@pytest.mark.parametrize(
    ("with_file", "title", "expected"),
    [
        (True, "Build fixes", ("Build fixes", "custom")),
        (True, "Fix the build", ("Fix the build", "prompt")),
        (False, "Build fixes", ("Build fixes", "preview")),
    ],
)
def test_before_the_column_of_the_first_prompt_a_title_is_compared_with_the_rollout(codex, with_file, title, expected):
    if with_file:
        codex.rollout(A, conversation(A))
    row(codex, generation=5, title=title)
    session = codex.session(A)
    assert (session.title, session.title_from) == expected


def test_before_names_were_a_column_paginated_threads_take_them_from_the_index(codex):
    row(codex, generation=40, **PAGINATED)
    names(codex, (A, "From the index"))
    assert codex.session(A).title == "From the index"


def test_a_name_needs_no_database(codex):
    codex.rollout(A, conversation(A))
    names(codex, (A, "First"), (B, "Another thread's"), (A, "Last"))
    assert (codex.session(A).title, codex.session(A).first_prompt) == ("Last", "Fix the build")


# -- whose fact counts -------------------------------------------------------------------------------------------------


def test_the_row_gives_branch_model_effort_approval_and_sandbox(codex):
    codex.rollout(A, conversation(A, git={"branch": "at-the-start"}))
    row(
        codex,
        git_branch="of-the-row",
        model="gpt-5.5",
        reasoning_effort="high",
        approval_mode="never",
        sandbox_policy='{"type":"disabled"}',
        model_provider="azure",
    )
    s = codex.session(A)
    assert (s.branch, s.model, s.effort, s.approval, s.sandbox, s.model_provider) == (
        "of-the-row", "gpt-5.5", "high", "never", '{"type":"disabled"}', "azure",
    )  # fmt: skip


def test_what_the_row_does_not_know_the_rollout_tells(codex):
    codex.rollout(A, conversation(A, git={"branch": "at-the-start"}))
    row(codex, generation=1)
    s = codex.session(A)
    assert (s.branch, s.model, s.effort, s.version) == ("at-the-start", "gpt-5", "low", "0.151.0")


def test_effort_goes_with_the_model_it_was_recorded_with(codex):
    codex.rollout(A, conversation(A))
    row(codex, model="gpt-5.5", reasoning_effort=None)
    assert codex.session(A).effort is None


def test_a_rollout_written_long_after_its_row_tells_the_settings(codex):
    codex.rollout(A, [meta(A), turn(model="new"), user("Fix the build"), answer(timestamp="2026-09-02T00:00:00.000Z")])
    row(codex, model="old", updated_at_ms=ENDED_MS)
    assert codex.session(A).model == "new"


def test_the_folder_is_the_last_recorded_one_and_raw(codex):
    codex.rollout(A, [meta(A, cwd="/link/start"), turn(cwd="/link/now"), user("Fix the build"), answer()])
    row(codex, cwd="/real/start")
    assert codex.session(A).cwd == "/link/now"


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [("\\\\?\\C:\\code\\shop", "C:\\code\\shop"), ("\\\\?\\UNC\\host\\share", "\\\\host\\share")],
)
def test_a_row_without_a_file_tells_the_folder_without_the_prefix_of_windows(codex, recorded, shown):
    row(codex, cwd=recorded)
    assert codex.session(A).cwd == shown


@pytest.mark.parametrize(("row_ms", "expected_ms"), [(ENDED_MS + 500, ENDED_MS + 500), (ENDED_MS - 500, ENDED_MS)])
def test_updated_is_the_later_of_row_and_last_record(codex, row_ms, expected_ms):
    codex.rollout(A, conversation(A))
    row(codex, updated_at_ms=row_ms)
    assert codex.session(A).updated_ms == expected_ms


def test_created_is_the_time_in_the_header(codex):
    codex.rollout(A, conversation(A))
    row(codex, created_at_ms=CREATED_MS + 99)
    assert codex.session(A).created_ms == CREATED_MS


def test_a_file_that_tells_no_time_was_updated_when_it_was_written(codex):
    touch(
        codex.rollout(A, b'{"type":"event_msg","payload":{"type":"user_message","message":"Hi"}}\n'), 1_788_000_000_000
    )
    assert codex.session(A).updated_ms == 1_788_000_000_000


@pytest.mark.parametrize(("tree", "archived"), [("sessions", False), ("archived_sessions", True)])
@pytest.mark.parametrize("in_the_row", [0, 1])
def test_where_the_file_lies_decides_whether_a_thread_is_archived(codex, tree, archived, in_the_row):
    codex.rollout(A, conversation(A), tree=tree)
    row(codex, archived=in_the_row)
    session = codex.session(A)
    assert (session.archived, session.resumable) == (archived, not archived)


def test_an_archived_row_without_a_file_is_archived(codex):
    row(codex, archived=1)
    assert codex.session(A).archived


def test_a_row_hides_a_helper_thread_whose_file_does_not_say_so(codex):
    codex.rollout(A, conversation(A))
    row(codex, thread_source="subagent")
    assert codex.session(A) == Excluded(Reason.SIDECHAIN)


# -- several files -----------------------------------------------------------------------------------------------------


def second_file(codex, thread_id=A, **fields):
    path = codex.path / "sessions/2026/09/01" / f"rollout-2026-09-01T12-30-00-{thread_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        lines([meta(thread_id, timestamp="2026-09-01T10:30:00.000Z", **fields), turn(), user("Edited"), answer()])
    )
    return path


def test_of_several_files_the_one_begun_last_is_the_session(codex):
    codex.rollout(A, conversation(A, "First"))
    newest = second_file(codex)
    session = codex.session(A)
    assert (session.path, session.first_prompt) == (str(newest), "First")


@pytest.mark.parametrize("tree", ["sessions", "archived_sessions"])
def test_of_two_copies_of_a_file_the_one_with_the_newest_activity_is_the_session(codex, tree):
    codex.rollout(A, [meta(A), user("Fix the build")], tree="sessions")
    codex.rollout(A, [meta(A), user("Fix the build")], tree="archived_sessions")
    newest = codex.rollout(A, conversation(A), tree=tree)
    assert codex.session(A).path == str(newest)


def test_of_several_files_the_one_the_row_names_is_the_session(codex):
    oldest = codex.rollout(A, conversation(A, "First"))
    second_file(codex)
    row(codex, rollout_path=str(oldest))
    assert codex.session(A).path == str(oldest)


def test_a_row_that_names_the_place_before_archiving_still_names_the_file(codex):
    archived = codex.rollout(A, conversation(A, "First"), tree="archived_sessions")
    second_file(codex)
    row(codex, rollout_path=str(codex.path / "sessions/2026/09/01" / archived.name))
    assert codex.session(A).path == str(archived)


def test_a_row_names_the_plain_file_also_when_only_the_compressed_one_is_left(codex):
    zstd = pytest.importorskip("backports.zstd" if os.sys.version_info < (3, 14) else "compression.zstd")
    plain = codex.rollout(A, conversation(A, "First"))
    packed = plain.with_name(plain.name + ".zst")
    packed.write_bytes(zstd.compress(plain.read_bytes()))
    plain.unlink()
    second_file(codex)
    row(codex, rollout_path=str(plain))
    assert codex.session(A).path == str(packed)


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_observations_changes_nothing(codex, order):
    codex.rollout(A, conversation(A, "First"))
    newest = second_file(codex)
    names(codex, (A, "Named"))
    row(codex)
    session = codex.provider.merge(codex.observations()[A][::order])
    assert (session.path, session.title, session.first_prompt) == (str(newest), "Named", "First")

"""`find` and `list`: what is asked for, and the exit code."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time

import pytest

from sessiond import paths
from sessiond.model import Session

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
NOW_MS = 1_796_000_000_000
A, B, C = "aaaaaaaa-1111-4111-8111-111111111111", "bbbbbbbb-2222-4222-8222-222222222222", "cccccccc-3333-4333"


def session(session_id=A, app="claude-code", **facts):
    facts.setdefault("updated_ms", NOW_MS - HOUR_MS)
    return Session(app, session_id, "/home/alex/.claude", **facts)


# -- words and commands ------------------------------------------------------------------------------------------------


def test_without_a_command_words_are_found(client):
    client.fill(session(A, title="Fix the checkout"), session(B, title="Other"))
    assert client("checkout").ids == [A]


def test_without_anything_the_list_comes_newest_first(client):
    client.fill(session(A, updated_ms=1), session(B, updated_ms=3), session(C, updated_ms=2))
    assert client().ids == [B, C, A]


def test_options_alone_list_too(client):
    client.fill(session(A), session(B, app="codex"))
    assert client("--app", "codex").ids == [B]


def test_a_command_can_be_a_word_behind_two_dashes(client):
    client.fill(session(A, title="resume"), session(B, title="other"))
    assert client("find", "--", "resume").ids == [A]


def test_list_takes_no_words(client):
    client.fill(session(A))
    assert client("list", "words").code == 2


# -- filters -----------------------------------------------------------------------------------------------------------


def test_app(client):
    client.fill(session(A), session(B, app="codex"))
    assert client("list", "--app=claude-code").ids == [A]


def test_an_unknown_app_is_a_usage_error(client):
    client.fill(session(A))
    assert client("list", "--app", "emacs").code == 2


def test_branch_is_exact(client):
    client.fill(session(A, branch="fix"), session(B, branch="fix/it"))
    assert client("list", "--branch", "fix").ids == [A]


def test_cwd_is_the_folder_and_below(client):
    client.fill(session(A, cwd="/code/shop"), session(B, cwd="/code/shop/api"), session(C, cwd="/code/shopping"))
    assert sorted(client("list", "--cwd", "/code/shop/").ids) == [A, B]


def test_here_is_the_present_folder(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    client.fill(session(A, cwd=str(tmp_path)), session(B, cwd="/elsewhere"))
    assert client("list", "--here").ids == [A]
    assert client("list", "--cwd", ".").ids == [A]


def test_here_knows_a_folder_entered_through_a_link_by_both_names(client, tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / "link")
    monkeypatch.setenv("PWD", str(tmp_path / "link"))
    client.fill(session(A, cwd=str(tmp_path / "link")), session(B, cwd=str(tmp_path / "real" / "below")))
    assert sorted(client("list", "--here").ids) == [A, B]


def test_here_and_cwd_exclude_each_other(client):
    client.fill(session(A))
    assert client("list", "--here", "--cwd", "/").code == 2


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a second worktree; the present folder is below the main one."""

    def git(*arguments):
        subprocess.run(["git", "-C", tmp_path / "main", *arguments], check=True, capture_output=True)

    (tmp_path / "main" / "sub").mkdir(parents=True)
    git("init", "-q")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
    git("worktree", "add", "-q", str(tmp_path / "second"))
    monkeypatch.chdir(tmp_path / "main" / "sub")
    return tmp_path


def test_repo_is_the_repository_with_all_its_worktrees_also_deleted_ones(client, repository):
    client.fill(
        session(A, cwd=str(repository / "main")),
        session(B, cwd=str(repository / "second" / "below")),
        session(C, cwd="/deleted/tree", repo=str(repository / "main")),
        session("dddddddd", cwd=str(repository)),
    )
    assert sorted(client("list", "--repo").ids) == [A, B, C]


def test_repo_outside_of_a_repository_is_refused(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    client.fill(session(A))
    assert client("list", "--repo").code == 10


def test_since_is_inclusive_and_until_exclusive(client):
    client.fill(*[session(i, updated_ms=NOW_MS - n * DAY_MS) for i, n in ((A, 1), (B, 2), (C, 3))])
    assert client("list", "--since", "2d").ids == [A, B]
    assert client("list", "--until", "2d").ids == [C]
    assert client("list", "--since", "2026-11-28T00:53:20Z", "--until", "2026-11-29T00:53:20Z").ids == [B]


def test_since_takes_a_local_date(client, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        midnight_in_tokyo_ms = 1_795_878_000_000  # 2026-11-28T15:00:00Z
        client.fill(session(A, updated_ms=midnight_in_tokyo_ms), session(B, updated_ms=midnight_in_tokyo_ms - 1))
        assert client("list", "--since", "2026-11-29").ids == [A]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "when", ["yesterday", "3", "3x", "2026-13-01", "2026-02-30", "-3d", "", "2026-11-28T25:00:00Z"]
)
def test_a_time_that_is_none_is_a_usage_error(client, when):
    client.fill(session(A))
    assert client("list", "--since", when).code == 2


def test_expiring_lists_claude_sessions_within_that_time_of_their_clean_up(client):
    client.fill(
        session(A, updated_ms=NOW_MS - 28 * DAY_MS),
        session(B, updated_ms=NOW_MS - 27 * DAY_MS + 1),
        session(C, app="codex", updated_ms=NOW_MS - 29 * DAY_MS),
    )
    assert client("list", "--expiring", "3d").ids == [A]
    assert client("list", "--expiring", "3d", "--app", "codex").code == 1


def test_expiring_goes_by_the_configured_retention(client):
    client.fill(session(A, updated_ms=NOW_MS - 5 * DAY_MS), retention_days="claude-code\t6")
    assert client("list", "--expiring", "1d").ids == [A]


@pytest.mark.parametrize(
    ("option", "expected"),
    [((), "1"), (("--archived",), "2"), (("--gone",), "3"), (("--all",), "1234")],
)
def test_scope(client, option, expected):
    rows = {
        "1": {},
        "2": {"archived": True, "resumable": False},
        "3": {"gone_ms": 1, "resumable": False},
        "4": {"interactive": False},
    }
    client.fill(*[session(n * 8, **facts) for n, facts in rows.items()])
    assert sorted(i[0] for i in client("list", *option).ids) == list(expected)


@pytest.mark.parametrize(("order", "expected"), [("updated", "abc"), ("created", "bca"), ("size", "cab")])
def test_sort(client, order, expected):
    client.fill(
        session("a" * 8, updated_ms=3, created_ms=1, bytes=2),
        session("b" * 8, updated_ms=2, created_ms=3, bytes=1),
        session("c" * 8, updated_ms=1, created_ms=2, bytes=3),
    )
    assert [i[0] for i in client("list", "--sort", order).ids] == list(expected)


def test_a_pipe_has_no_limit(client):
    client.fill(*[session(f"{n:08}") for n in range(120)])
    assert len(client("list").ids) == 120


def test_limit_and_no_limit(client):
    client.fill(*[session(f"{n:08}") for n in range(120)])
    assert len(client("list", "--limit", "7").ids) == 7
    assert len(client("list", "--limit", "0").ids) == 120


@pytest.mark.parametrize("limit", ["-1", "x", "1.5", "", "9999999999"])
def test_a_limit_that_is_none_is_a_usage_error(client, limit):
    client.fill(session(A))
    assert client("list", "--limit", limit).code == 2


# -- hints and exit codes ----------------------------------------------------------------------------------------------


def test_hidden_matches_are_counted_on_stderr(client):
    client.fill(session(A, title="word"), *[session(f"{n:08}", title="word", archived=True) for n in range(12)])
    assert client("word").err == "sessions: 12 more with --all\n"


def test_nothing_is_said_when_nothing_is_hidden(client):
    client.fill(session(A, title="word"), session(B, title="other", archived=True))
    assert client("word").err == ""


def test_more_than_the_limit_is_told(client):
    client.fill(session(A), session(B))
    assert "--limit 0" in client("list", "--limit", "1").err


def test_exactly_the_limit_is_not_more_than_it(client):
    client.fill(session(A), session(B))
    assert client("list", "--limit", "2").err == ""


def test_found_is_0_and_nothing_found_is_1(client):
    client.fill(session(A, title="word"))
    assert client("word").code == 0
    assert client("nothing").code == 1


def test_an_empty_list_says_whether_there_is_anything_at_all(client):
    client.fill()
    assert client().err == "sessions: there are no sessions; see: sessions doctor\n"
    client.fill(session(A, title="Fix"))
    assert client("words").err == "sessions: nothing found\n"


def test_no_index_is_3(lone_client):
    assert lone_client("list", "--no-refresh").code == 3


@pytest.mark.parametrize("version", [999, 0])
def test_another_schema_is_4_and_an_index_not_yet_made_is_3(lone_client, version):
    lone_client.fill(session(A))
    with sqlite3.connect(paths.index_file(lone_client.state)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    answer = lone_client("list", "--no-refresh")
    assert answer.code == (4 if version else 3)
    assert ("upgrade" in answer.err) == bool(version)


def test_a_database_of_another_program_is_4(lone_client):
    lone_client.fill(session(A))
    with sqlite3.connect(paths.index_file(lone_client.state)) as connection:
        connection.execute("PRAGMA application_id = 7")
    connection.close()
    assert lone_client("list", "--no-refresh").code == 4


def test_a_damaged_index_is_9_and_names_the_command(lone_client):
    lone_client.fill(session(A))
    with open(paths.index_file(lone_client.state), "r+b") as file:
        file.write(b"\xff" * 4096)
    answer = lone_client("list", "--no-refresh")
    assert answer.code == 9
    assert "sessiond --once" in answer.err


# -- forms -------------------------------------------------------------------------------------------------------------


def test_a_line_for_a_pipe_is_app_id_updated_branch_folder_title(client):
    client.fill(session(A, title="Fix it", branch="main", cwd="/code", updated_ms=1_700_000_000_123))
    assert client("list").out == f"claude-code\t{A}\t2023-11-14T22:13:20.123Z\tmain\t/code\tFix it\n"


def test_null_is_empty(client):
    client.fill(session(A, updated_ms=None))
    assert client("list").out == f"claude-code\t{A}\t\t\t\t\n"


def test_json_has_every_public_column_and_readable_times(client):
    client.fill(session(A, title="Fix it", updated_ms=1_700_000_000_123, archived=False, path="/x/a.jsonl", bytes=3))
    (found,) = json.loads(client("list", "--json").out)
    assert found == {
        "app": "claude-code", "id": A, "home": "/home/alex/.claude", "path": "/x/a.jsonl", "cwd": None, "repo": None,
        "branch": None, "title": "Fix it", "title_from": None, "first_prompt": None, "model": None,
        "model_provider": None, "effort": None, "approval": None, "sandbox": None, "version": None, "origin": None,
        "created_ms": None, "updated_ms": 1_700_000_000_123, "bytes": 3, "archived": False, "interactive": True,
        "resumable": True, "gone_ms": None, "forked_from": None, "updated": "2023-11-14T22:13:20.123Z",
        "created": None,
    }  # fmt: skip


def test_an_empty_answer_in_json_is_an_empty_array(client):
    client.fill()
    answer = client("list", "--json")
    assert (answer.code, answer.out) == (1, "[]\n")


def test_a_path_that_is_no_utf8_comes_back_from_json_byte_for_byte(client):
    client.fill(session(A, path=os.fsdecode(b"/x/\xff.jsonl")))
    (found,) = json.loads(client("list", "--json").out)
    assert os.fsencode(found["path"]) == b"/x/\xff.jsonl"


def test_color_always_marks_words_in_a_pipe_too_and_auto_does_not(client):
    client.fill(session(A, title="Fix the checkout"))
    assert "\x1b[" in client("checkout", "--color", "always").out
    assert "\x1b[" not in client("checkout").out


def test_path_prints_where_the_index_is_and_touches_nothing(lone_client):
    assert lone_client("path").code == 3
    assert not os.path.exists(lone_client.state)
    lone_client.fill(session(A))
    before = sorted(os.listdir(lone_client.state))
    assert lone_client("path").out == paths.index_file(lone_client.state) + "\n"
    assert sorted(os.listdir(lone_client.state)) == before

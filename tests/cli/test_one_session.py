"""`show` and `why`: one session, by whatever names it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sessiond import apps, paths
from sessiond.config import Homes
from sessiond.model import Reason, Session
from sessiond.provider import load

FIXTURES = Path(__file__).parents[2] / "fixtures"
A = "c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58"
B = "019a2f1c-7d0e-7b31-9c4e-5a1f0e2d8b63"
C = "019a2f1c-7d0e-7b31-9c4e-5a1f0e2d8b64"


def session(session_id=A, app="claude-code", **facts):
    return Session(app, session_id, "/h", **{"updated_ms": 1, **facts})


# -- which one is meant ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [A, "c5e1", "c5e1a7b2-9d40", "9d4f58", "4f3e-8b16-2a7c0e9d4f58", "C5E1A7B2", "@2"])
def test_a_session_is_named_by_its_id_a_beginning_an_end_or_its_place(client, text):
    client.fill(session(A, updated_ms=1), session(B, updated_ms=2))
    assert json.loads(client("show", text, "--json").out)["id"] == A


@pytest.mark.parametrize(
    "text", ["c5e", "d4f58", "zzzz", "@3", "@0", "@", "@x", "", "%", "____", "\udcff" * 4, "c5e\U0010ffff"]
)
def test_what_names_no_session_is_5(client, text):
    client.fill(session(A, updated_ms=1), session(B, updated_ms=2))
    assert client("show", text).code == 5


def test_an_ambiguous_beginning_is_6_and_names_the_candidates(client):
    client.fill(session(B, title="First"), session(C, title="Second"))
    answer = client("show", "019a2f1c")
    assert answer.code == 6
    assert all(text in answer.err for text in (B, C, "First", "Second"))


def test_an_ambiguous_end_is_6(client):
    client.fill(session("11111111-abcdef"), session("22222222-abcdef"))
    assert client("show", "abcdef").code == 6


def test_a_whole_id_is_meant_even_if_another_one_begins_with_it(client):
    client.fill(session("aaaaaaaa"), session("aaaaaaaab"))
    assert json.loads(client("show", "aaaaaaaa", "--json").out)["id"] == "aaaaaaaa"


def test_one_id_in_two_apps_is_6(client):
    client.fill(session(A), session(A, app="codex"))
    assert client("show", A).code == 6


def test_what_a_place_in_the_list_means_is_said_first(client):
    client.fill(session(A, title="Fix it"))
    assert client("show", "@1").err == f"sessions: @1 is {A} Fix it\n"


def test_places_count_in_the_default_list(client):
    client.fill(session(A, updated_ms=1), session(B, updated_ms=2, archived=True))
    assert json.loads(client("show", "@1", "--json").out)["id"] == A


# -- show --------------------------------------------------------------------------------------------------------------


def test_show_says_every_fact_and_no_control_character(client):
    client.fill(session(A, title="a\x1b[31m\u202eb", model="opus", bytes=1_400_000))
    lines = dict(line.split(None, 1) for line in client("show", A).out.splitlines())
    assert lines["title"] == "a^[[31m\\u{202e}b"
    assert lines["model"] == "opus"
    assert lines["bytes"] == "1400000 (1.4 MB)"
    assert lines["archived"] == "no"


def test_show_json_has_the_same_keys_as_the_list(client):
    client.fill(session(A))
    (listed,) = json.loads(client("list", "--json").out)
    assert json.loads(client("show", A, "--json").out) == listed


@pytest.fixture
def own(home):
    """Fixture homes as the user's own: name -> copied."""

    def copy(app, case):
        shutil.copytree(FIXTURES / app / case / "home", paths.usual_home(apps.named(app), str(home)))

    return copy


def test_sources_are_laid_side_by_side(own, lone_client):
    own("claude-code", "sample")
    out = lone_client("show", "a6b3d1f9", "--sources").out
    assert "transcript: " in out
    assert "title: " in out or "name: " in out or "custom-title.json" in out
    told = json.loads(lone_client("show", "a6b3d1f9", "--sources", "--json").out)["sources"]
    assert len(told) == 2
    assert all(source["facts"] for source in told)


# -- why ---------------------------------------------------------------------------------------------------------------

EXCLUDED = [
    (expected.parts[-3], expected.parts[-2], session_id, reason)
    for expected in sorted(FIXTURES.glob("*/*/expected.json"))
    for session_id, reason in json.loads(expected.read_text()).get("excluded", {}).items()
]


def test_there_is_a_fixture_for_every_reason():
    assert {reason for *_, reason in EXCLUDED} == set(Reason.__members__)


@pytest.mark.parametrize(
    "excluded",
    {(app, reason): (app, case, session_id, reason) for app, case, session_id, reason in EXCLUDED}.values(),
)
def test_why_gives_the_reason(own, lone_client, excluded):
    app, case, session_id, reason = excluded
    own(app, case)
    answer = lone_client("why", session_id)
    assert answer.code == 0
    assert f"{session_id}: not listed: {load(Homes(), app).says(Reason[reason])}" in answer.out.splitlines()


def test_why_of_a_listed_session(own, lone_client):
    own("claude-code", "sample")
    assert lone_client("why", "c5e1").out.splitlines()[-1] == "listed"


@pytest.mark.parametrize(("text", "why"), [("0199c5d8", "it is archived"), ("4d80c2e7", "it was run by a script")])
def test_why_of_a_hidden_session(own, lone_client, text, why):
    own("claude-code", "sample")
    own("codex", "sample")
    assert why in lone_client("why", text).out.splitlines()[-1]


def test_why_of_a_deleted_session(own, home, lone_client):
    own("claude-code", "sample")
    lone_client("list")
    next(home.glob(f".claude/projects/*/{A}.jsonl")).unlink()
    out = lone_client("why", A).out
    assert str(Reason.MISSING) in out
    assert "not in the default list" in out


def test_why_of_a_path_reads_that_file(own, home, lone_client):
    own("claude-code", "sample")
    path = next(home.glob(f".claude/projects/*/{A}.jsonl"))
    out = lone_client("why", str(path)).out
    assert out.startswith(f"transcript: {path}\n")
    assert out.splitlines()[-1] == "listed"


def test_why_of_a_sub_agents_file(own, home, lone_client):
    own("claude-code", "sample")
    path = next(home.glob(".claude/projects/*/*/subagents/*.jsonl"))
    assert str(Reason.SIDECHAIN) in lone_client("why", str(path)).out


def test_why_of_another_file_in_a_home_names_where_sessions_are_kept(own, home, lone_client):
    own("claude-code", "sample")
    (home / ".claude" / "notes.txt").write_text("x")
    assert f"{home}/.claude/projects" in lone_client("why", str(home / ".claude" / "notes.txt")).out


def test_why_of_a_file_outside_names_the_homes(own, home, lone_client, tmp_path):
    own("claude-code", "sample")
    (tmp_path / "x.jsonl").write_text("{}")
    out = lone_client("why", str(tmp_path / "x.jsonl")).out
    assert out.startswith("not listed: outside of every home")
    assert f"{home}/.claude" in out


@pytest.mark.parametrize("what", ["/no/such/file.jsonl", "deadbeef", "x", "dead\U0010ffff"])
def test_why_of_what_is_not_there_is_5(lone_client, what):
    lone_client.fill()
    assert lone_client("why", what).code == 5

"""Rows of Codex's state databases: every generation, every spelling, and nothing that must not be known."""

from __future__ import annotations

import json
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessiond.model import Excluded, Previous, Reason, Session, Walk
from sessiond.providers.codex import Codex, threads
from sessiond.providers.codex.layout import sqlite_home_in
from tests.kit import codex_databases
from tests.kit.codex_home import CREATED_MS, CodexHome, conversation, uid

A, B = uid(1), uid(2)


@pytest.fixture
def codex(tmp_path):
    return CodexHome(tmp_path / "codex")


def facts_of(row, generation=50, extra=""):
    connection = sqlite3.connect(":memory:")
    try:
        codex_databases.create(connection, generation, extra)
        codex_databases.insert(connection, A, generation, **row)
        return threads.read_threads(connection).facts[A]
    finally:
        connection.close()


def database(codex, rows, generation=50, name="state_5.sqlite", **more):
    codex_databases.make(codex.path / name, rows, generation, **more)


# -- generations -------------------------------------------------------------------------------------------------------

WHOLE = {
    "title": "Add a cart test",
    "first_user_message": "Add a cart test",
    "preview": "Add a cart test",
    "cli_version": "0.150.0",
    "model": "gpt-5.4",
    "reasoning_effort": "high",
    "git_branch": "main",
    "created_at_ms": 1_788_256_800_123,
    "updated_at_ms": 1_788_257_400_456,
    "history_mode": "paginated",
    "name": "Cart tests",
}


@pytest.mark.parametrize("generation", codex_databases.GENERATIONS)
def test_a_row_of_every_generation_gives_what_its_columns_hold(codex, generation):
    database(codex, {A: WHOLE}, generation)
    session = codex.session(A)
    assert session == Session(
        app="codex",
        id=A,
        home=str(codex.path),
        cwd="/Users/alex/code/shop-api",
        branch="main",
        title="Cart tests" if generation >= 41 else "Add a cart test",
        title_from="custom" if generation >= 41 else "prompt" if generation >= 7 else "preview",
        first_prompt="Add a cart test" if generation >= 7 else None,
        model="gpt-5.4" if generation >= 20 else None,
        model_provider="openai",
        effort="high" if generation >= 20 else None,
        approval="on-request",
        sandbox='{"type":"read-only"}',
        version="0.150.0" if generation >= 5 else None,
        created_ms=1_788_256_800_123 if generation >= 25 else 1_788_256_800_000,
        updated_ms=1_788_257_400_456 if generation >= 25 else 1_788_257_400_000,
        resumable=False,
    )


def test_columns_nobody_knows_yet_change_nothing(codex):
    database(codex, {A: WHOLE}, extra="weather TEXT DEFAULT 'fine', mood BLOB")
    assert codex.session(A).title == "Cart tests"


def test_a_table_with_an_id_alone_is_read():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE threads (id TEXT)")
    connection.execute("INSERT INTO threads VALUES (?)", (A,))
    assert list(threads.read_threads(connection).facts) == [A]
    connection.close()


def test_the_branch_comes_but_a_credential_in_the_origin_url_does_not(codex):
    url = "https://alex:ghp_secret@git.example.com/shop.git"
    database(codex, {A: WHOLE | {"git_origin_url": url}})
    facts = codex.observations()[A][0].facts
    assert facts["branch"] == "main"
    assert "secret" not in json.dumps(facts)
    assert "example.com" not in json.dumps(facts)


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "expected_ms"),
    [
        ({"created_at": 1_788_256_800}, 1_788_256_800_000),
        ({"created_at": 1_788_256_800_123}, 1_788_256_800_123),
        ({"created_at": 5, "created_at_ms": 1_788_256_800_777}, 1_788_256_800_777),
        ({"created_at": 1_788_256_800, "created_at_ms": None}, 1_788_256_800_000),
        ({"created_at": 1_788_256_800, "created_at_ms": 1_788_256_801}, 1_788_256_801_000),
        ({"created_at": 1_577_836_800_000}, 1_577_836_800_000),
        ({"created_at": 1_577_836_799}, 1_577_836_799_000),
    ],
)
def test_a_time_is_told_by_its_size_and_not_by_its_column(row, expected_ms):
    assert facts_of(row)["created_ms"] == expected_ms


@pytest.mark.parametrize(
    ("source", "thread_source", "hidden"),
    [
        ("cli", None, None),
        ("vscode", "user", None),
        ('{"custom":"atlas"}', None, None),
        ('{"custom":"subagent"}', None, None),
        ('{"subagent":"review"}', None, "subagent"),
        ('{"subagent":{"thread_spawn":{"parent_thread_id":"x","depth":1}}}', None, "subagent"),
        ('{"subagent":{"other":"guardian"}}', None, "subagent"),
        ('{"internal":"memory_consolidation"}', None, "internal"),
        ('{"subagent":{"thread_spawn":{"agent_path":"' + "/a" * 4000 + '"}}}', None, "subagent"),
        ("cli", "subagent", "subagent"),
        ("cli", "memory_consolidation", "internal"),
        ("cli", "guardian_review", "internal"),
        ("{broken", None, None),
    ],
)
def test_helper_threads_are_told_by_their_source(source, thread_source, hidden):
    assert facts_of({"source": source, "thread_source": thread_source}).get("hidden") == hidden


def test_a_helper_thread_without_a_file_is_excluded(codex):
    database(codex, {A: WHOLE | {"source": '{"subagent":"review"}'}, B: WHOLE | {"thread_source": "guardian_review"}})
    assert codex.sessions() == {A: Excluded(Reason.SIDECHAIN), B: Excluded(Reason.INTERNAL)}


@pytest.mark.parametrize("approval", ["untrusted", "on-failure", '{"granular":{"rules":true}}', '{"reject":{}}'])
@pytest.mark.parametrize(
    "sandbox", ["workspace-write", '{"type":"disabled"}', '{"type":"managed","network":"enabled"}']
)
def test_approval_and_sandbox_are_kept_as_they_were_recorded(approval, sandbox):
    facts = facts_of({"approval_mode": approval, "sandbox_policy": sandbox})
    assert (facts["approval"], facts["sandbox"]) == (approval, sandbox)


def test_an_enormous_sandbox_setting_is_left_out_rather_than_cut():
    assert "sandbox" not in facts_of({"sandbox_policy": '{"type":"managed","x":"' + "y" * 5000 + '"}'})


def test_texts_are_one_line_and_cut():
    facts = facts_of({"first_user_message": "line one\n\n\tline   two " + "x" * 100_000})
    assert facts["prompt"].startswith("line one line two xxx")
    assert len(facts["prompt"]) == 200


def test_a_preview_or_title_equal_to_the_prompt_is_not_stored_twice():
    facts = facts_of({"first_user_message": "Hi", "preview": "Hi", "title": "Hi"})
    assert facts["prompt"] == "Hi"
    assert not facts.keys() & {"preview", "title", "titled"}


def test_a_title_that_differs_only_beyond_the_cut_is_no_shorter_prompt():
    long = "x" * 3000
    assert facts_of({"first_user_message": long + "a", "title": long + "b"})["titled"] == 1


values = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=40),
    st.binary(max_size=40),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(sorted(threads._COLUMNS)), values))
def test_no_value_of_any_type_makes_reading_or_merging_fail(row):
    connection = sqlite3.connect(":memory:")
    try:
        columns = ", ".join(["id", *threads._COLUMNS])
        connection.execute(f"CREATE TABLE threads ({columns})")
        connection.execute(
            f"INSERT INTO threads (id{''.join(', ' + name for name in row)}) VALUES (?{', ?' * len(row)})",
            [A, *row.values()],
        )
        facts = threads.read_threads(connection).facts[A]
    finally:
        connection.close()
    json.dumps(facts, ensure_ascii=False).encode()


def test_ids_that_are_none_are_passed_over(codex):
    database(codex, {"not an id": WHOLE, "--help": WHOLE, A: WHOLE})
    assert list(codex.sessions()) == [A]


# -- which database ----------------------------------------------------------------------------------------------------


def databases_found(provider):
    return sorted(path for path, _ in provider.discover(Walk()) if provider.claim(path).kind == "database")


def test_the_highest_number_counts_as_a_number(codex):
    for number in (2, 9, 10):
        database(codex, {A: WHOLE | {"name": f"from {number}"}}, name=f"state_{number}.sqlite")
    assert databases_found(codex.provider) == [str(codex.path / "state_10.sqlite")]
    assert codex.session(A).title == "from 10"


def test_a_lower_number_is_read_when_the_highest_has_no_threads(codex):
    database(codex, {A: WHOLE}, name="state_4.sqlite")
    connection = sqlite3.connect(codex.path / "state_5.sqlite")
    connection.execute("CREATE TABLE other (x)")
    connection.close()
    assert codex.session(A).title == "Cart tests"


def test_a_lower_number_is_read_when_the_highest_is_no_database(codex):
    database(codex, {A: WHOLE}, name="state.sqlite")
    (codex.path / "state_5.sqlite").write_bytes(b"not a database" * 100)
    assert codex.session(A).title == "Cart tests"


@pytest.mark.parametrize(
    "name",
    ["state_x.sqlite", "state_5.sqlite.bak", "state_5.sqlite.recovered", "logs_2.sqlite", "xstate_5.sqlite",
     "state_5.sqlite-shm", "state_.sqlite", "state_5.sqlite\n", "state_\u0665.sqlite"],
)  # fmt: skip
def test_a_decoy_is_no_state_database(codex, name):
    database(codex, {A: WHOLE}, name="decoy")
    (codex.path / "decoy").rename(codex.path / name)
    assert databases_found(codex.provider) == []
    assert codex.provider.claim(str(codex.path / name)) is None


@pytest.mark.parametrize("suffix", ["", "-wal", "-journal"])
def test_a_change_beside_a_database_is_a_change_of_it(codex, suffix):
    source = codex.provider.claim(str(codex.path / f"state_5.sqlite{suffix}"))
    assert (source.kind, source.path) == ("database", str(codex.path / "state_5.sqlite"))


def test_a_row_in_the_wal_changes_the_fingerprint(codex):
    database(codex, {})
    source = codex.provider.claim(str(codex.path / "state_5.sqlite"))
    before = codex.provider.fingerprint(source)
    connection = sqlite3.connect(codex.path / "state_5.sqlite", isolation_level=None)
    codex_databases.insert(connection, A)
    assert codex.provider.fingerprint(source) != before
    connection.close()


def test_an_older_generation_beside_a_newer_one_is_no_source(codex):
    for number in (4, 5):
        database(codex, {}, name=f"state_{number}.sqlite")
    with pytest.raises(FileNotFoundError):
        codex.provider.fingerprint(codex.provider.claim(str(codex.path / "state_4.sqlite")))


def test_two_live_databases_are_merged_and_the_newer_row_wins(codex):
    (codex.path / "sqlite").mkdir()
    codex.rollout(A, conversation(A))
    database(codex, {A: WHOLE | {"name": "stale"}, B: WHOLE})
    database(codex, {A: WHOLE | {"name": "fresh", "updated_at_ms": 1_788_257_400_457}}, name="sqlite/state_5.sqlite")
    assert codex.session(A).title == "fresh"
    assert codex.session(B).title == "Cart tests"


def test_a_row_whose_file_exists_beats_a_newer_one_whose_file_does_not(codex):
    (codex.path / "sqlite").mkdir()
    path = codex.rollout(A, conversation(A))
    database(codex, {A: WHOLE | {"name": "right", "rollout_path": str(path)}})
    elsewhere = WHOLE | {"name": "wrong", "rollout_path": "/gone/rollout-x.jsonl", "updated_at_ms": CREATED_MS * 2}
    database(codex, {A: elsewhere}, name="sqlite/state_5.sqlite")
    assert codex.session(A).title == "right"


def test_the_folder_named_by_the_environment_is_read_too(codex, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    codex_databases.make(tmp_path / "elsewhere" / "state_5.sqlite", {A: WHOLE})
    codex.provider = Codex([str(codex.path)], [str(tmp_path / "elsewhere")], scratch=str(tmp_path / "own"))
    assert codex.session(A).home == str(codex.path)


@pytest.mark.parametrize(
    ("config", "folder"),
    [
        ('sqlite_home = "/var/codex"\n[mcp_servers.x]\nenv = { TOKEN = "secret" }\n', "/var/codex"),
        ('sqlite_home = "db"\n', "/home/alex/.codex/db"),
        ('sqlite_home = "  "\n', None),
        ('[profiles.x]\nsqlite_home = "/var/codex"\n', None),
        ("sqlite_home = 5\n", None),
        ('sqlite_home = "/var/codex"\nnot toml', None),
        ("model = 'x'\n", None),
    ],
)
def test_of_config_toml_the_one_key_is_read(config, folder):
    assert sqlite_home_in(config.encode(), "/home/alex/.codex") == folder


def test_the_configured_folder_is_watched_and_read(tmp_path):
    (tmp_path / "codex").mkdir()
    (tmp_path / "codex" / "config.toml").write_text(f'sqlite_home = "{tmp_path}/db"\n')
    (tmp_path / "db").mkdir()
    codex_databases.make(tmp_path / "db" / "state_5.sqlite", {A: WHOLE})
    provider = Codex([str(tmp_path / "codex")])
    assert databases_found(provider) == [str(tmp_path / "db" / "state_5.sqlite")]
    assert str(tmp_path / "db") in [root.path for root in provider.roots()]


# -- failures ----------------------------------------------------------------------------------------------------------


def test_when_a_database_cannot_be_read_what_was_known_of_it_stays(codex):
    (codex.path / "state_5.sqlite").write_bytes(b"damaged" * 1000)
    source = codex.provider.claim(str(codex.path / "state_5.sqlite"))
    with open(source.path, "rb") as file:
        reading = codex.provider.observe(source, file, 7000, None)
    assert reading.partial
    assert reading.problem.startswith("corrupt: ")


def test_files_are_listed_when_the_database_is_damaged(codex):
    (codex.path / "state_5.sqlite").write_bytes(b"damaged" * 1000)
    codex.rollout(A, conversation(A, "Fix the build"))
    assert codex.session(A).title == "Fix the build"


# -- rows that stay as they are ----------------------------------------------------------------------------------------


def read_again(codex, previous):
    source = codex.provider.claim(str(codex.path / "state_5.sqlite"))
    with open(source.path, "rb") as file:
        return codex.provider.observe(source, file, 0, previous)


def changed(codex, statement):
    connection = sqlite3.connect(codex.path / "state_5.sqlite", isolation_level=None)
    connection.execute(statement)
    connection.close()


def test_only_rows_that_changed_are_told_again(codex):
    database(codex, {A: WHOLE, B: WHOLE})
    first = read_again(codex, None)
    changed(codex, f"UPDATE threads SET name = 'New' WHERE id = '{A}'")
    second = read_again(codex, Previous(first.state, {}))
    assert (set(first.facts), set(second.facts), second.same) == ({A, B}, {A}, {B})


def test_a_row_that_is_deleted_is_neither_told_nor_the_same(codex):
    database(codex, {A: WHOLE, B: WHOLE})
    first = read_again(codex, None)
    changed(codex, f"DELETE FROM threads WHERE id = '{A}'")
    second = read_again(codex, Previous(first.state, {}))
    assert (second.facts, second.same) == ({}, {B})


def test_all_rows_are_told_when_somebody_else_wrote_the_index_in_between(codex):
    database(codex, {A: WHOLE})
    read_again(codex, None)
    assert set(read_again(codex, Previous(b"another", {})).facts) == {A}


def test_all_rows_are_told_when_a_column_was_added(codex):
    database(codex, {A: WHOLE}, generation=40)
    first = read_again(codex, None)
    changed(codex, "ALTER TABLE threads ADD COLUMN name TEXT DEFAULT 'Migrated'")
    assert read_again(codex, Previous(first.state, {})).facts[A]["name"] == "Migrated"


def test_a_reading_that_failed_is_followed_by_a_whole_one(codex):
    database(codex, {A: WHOLE})
    read_again(codex, None)
    path = codex.path / "state_5.sqlite"
    good = path.read_bytes()
    path.write_bytes(b"damaged" * 1000)
    failed = read_again(codex, None)
    path.write_bytes(good)
    assert set(read_again(codex, Previous(failed.state, {})).facts) == {A}

"""docs/sql.md describes every public column and view, and its queries run."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from sessiond import paths
from sessiond.model import Session

TEXT = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL)
VIEWS = ("session_list", "project_list", "scan_problems")


@pytest.fixture
def asked(client):
    client.fill(
        Session(
            "claude-code", "aaaaaaaa", "/h", path="/h/a.jsonl", cwd="/code", branch="fix/retry", title="Fix it",
            model="opus", effort="high", approval="bypassPermissions", created_ms=1_700_000_000_000,
            updated_ms=4_000_000_000_000, bytes=5_000_000, forked_from="bbbbbbbb",
        ),
        Session("claude-code", "bbbbbbbb", "/h", cwd="/code", branch="fix/retry", title="Origin", updated_ms=1),
    )  # fmt: skip
    return lambda query: client("sql", query)


def test_there_are_ten_queries():
    assert len(QUERIES) == 10


@pytest.mark.parametrize("query", QUERIES)
def test_each_query_answers(asked, query):
    answer = asked(query)
    assert answer.code == 0, answer.err
    assert answer.out


def columns(name):
    """The columns that the page describes under the heading of a table or view."""
    section = re.search(rf"(?ms)^## (?:Table|View) `{name}`$(.*?)(?=^## )", TEXT).group(1)
    return [
        c for line in section.splitlines() if line.startswith("| `") for c in re.findall(r"`(\w+)`", line.split("|")[1])
    ]


@pytest.mark.parametrize("name", ["sessions", *VIEWS])
def test_each_column_is_described_and_no_other(client, name):
    client.fill()
    connection = sqlite3.connect(paths.index_file(client.state))
    present = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
    connection.close()
    assert sorted(columns(name)) == sorted(present)


def test_each_view_is_described(client):
    client.fill()
    connection = sqlite3.connect(paths.index_file(client.state))
    views = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")}
    connection.close()
    assert views == set(VIEWS)


def test_times_in_views_are_rfc_3339_with_milliseconds(asked):
    assert asked("SELECT updated, created FROM session_list WHERE id = 'aaaaaaaa'").out == (
        "2096-10-02T07:06:40.000Z\t2023-11-14T22:13:20.000Z\n"
    )

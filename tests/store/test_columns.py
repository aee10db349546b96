"""A public column is declared in `sessiond.columns`; each place that spells columns out names what it lacks."""

from __future__ import annotations

import contextlib
import hashlib
import re
import sqlite3
import types
import typing
from pathlib import Path

import pytest

from sessiond import columns
from sessiond.model import Session
from sessiond.store import facts
from sessiond.store.connection import schema
from sessiond.store.reader import SCHEMA_VERSION

DOCUMENTED = dict(
    re.findall(
        r"(?m)^\| `(\w+)` \| (.*) \|$",
        re.search(
            r"(?ms)^## Table `sessions`$(.*?)^## ", (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
        ).group(1),
    )
)
TYPES = {columns.TEXT: str, columns.PATH: str, columns.TIME: int, columns.SIZE: int, columns.FLAG: bool}
WORDS = {
    columns.TEXT: "text",
    columns.PATH: "text or blob",
    columns.TIME: "integer",
    columns.SIZE: "integer",
    columns.FLAG: "0 or 1",
}
STORED_FORMS = {2: "dbafe00f2a26c516"}
"""Schema version -> digest of everything that is stored in a form of ours."""

every_column = pytest.mark.parametrize("column", columns.COLUMNS, ids=columns.NAMES)


@every_column
def test_each_column_is_a_field_of_a_session_with_its_type(column):
    assert column.name in Session._fields, f"model.Session lacks the field {column.name}"
    told = typing.get_type_hints(Session)[column.name]
    allowed = set(typing.get_args(told)) if isinstance(told, types.UnionType) else {told}
    expected = {TYPES[column.kind]}
    assert allowed == (expected if column.required or column.kind == columns.FLAG else expected | {type(None)})


@every_column
def test_each_column_stands_in_the_documentation_with_its_meaning(column):
    assert column.name in DOCUMENTED, f"docs/sql.md lacks the column {column.name}"
    assert DOCUMENTED[column.name] == f"{WORDS[column.kind]} | {column.meaning}"


def test_a_session_has_no_other_fields_and_has_them_in_this_order():
    assert Session._fields == columns.NAMES


def test_the_table_has_these_columns_and_its_number():
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema())
        table = [row[1] for row in connection.execute("PRAGMA table_info(sessions)")]
    assert table == ["session_no", *columns.NAMES]


def test_the_documentation_names_no_other_column():
    assert set(DOCUMENTED) == {"session_no", *columns.NAMES}


def test_another_stored_form_is_another_schema_version():
    stored = schema() + repr((facts._LEVEL, facts._WINDOW_BITS, facts._RECURRING))
    digest = hashlib.sha256(re.sub(r"--[^\n]*|\s+", " ", stored).encode()).hexdigest()[:16]
    assert STORED_FORMS.get(SCHEMA_VERSION) == digest, (
        f"what is stored has changed: raise SCHEMA_VERSION, and note the digest {digest} for it here"
    )

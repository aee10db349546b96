"""What the search finds, against looking at every row."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessiond.model import Session
from sessiond.store import search
from sessiond.store.query import Filters, split
from sessiond.store.reader import Reader
from sessiond.store.search import Search
from sessiond.store.writer import Writer

KEY = "s.app, s.id"
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where many small indexes are made and thrown away without waiting for a disk."""
PATHS = {"one by one": (10**6, 10**6, 10**6), "newest first": (0, 3, 0), "the long way": (0, 1, 0)}


@contextlib.contextmanager
def index_of(sessions, **meta):
    """A reader over an index that holds just these sessions."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        writer = Writer(folder)
        with contextlib.closing(writer), writer.transaction():
            for session in sessions:
                writer.put_session(session)
            writer.set_meta(**meta)
        with Reader(folder) as reader:
            yield reader


def session(session_id="c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58", app="claude-code", **facts):
    return Session(app, session_id, "/home/alex/.claude", **facts)


def found(reader, words, **filters):
    return {i for _, i in reader.find(Filters(words=split(words), **filters), KEY)}


# -- against brute force -----------------------------------------------------------------------------------------------


def folded(text):
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(c for c in plain if unicodedata.combining(c) == 0)


def holds(row, words):
    columns = [folded(text or "") for text in (row.title, row.cwd, row.branch, row.app, row.id)]
    wanted = [w for w in map(folded, words.split()) if w]
    return all(any(word in column for column in columns) for word in wanted)


LETTERS = "aAbBcCeEéÉßſİıñﬁΣςσ日本語かカ가각한Ωж-_/.%*?\"'()^:!~"  # noqa: RUF001 - alike is the point
ALPHABET = st.one_of(
    st.sampled_from(LETTERS),
    st.characters(exclude_categories=("Cs",), exclude_characters="\0"),
)
TEXT = st.text(ALPHABET, max_size=24)
ID = st.one_of(
    st.text("0123456789abcdef-", min_size=8, max_size=36),
    st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZabz_-", min_size=8, max_size=30),
)
ROW = st.builds(
    Session,
    st.sampled_from(["claude-code", "codex"]),
    ID,
    st.just("/home/alex/.claude"),
    cwd=st.none() | TEXT,
    branch=st.none() | TEXT,
    title=st.none() | TEXT,
    updated_ms=st.none() | st.integers(0, 5),
    created_ms=st.none() | st.integers(0, 5),
    bytes=st.none() | st.integers(0, 5),
    archived=st.booleans(),
    interactive=st.booleans(),
    resumable=st.booleans(),
    gone_ms=st.none() | st.just(7),
)
ROWS = st.lists(ROW, max_size=12, unique_by=lambda row: (row.app, row.id))


@st.composite
def question(draw, rows):
    """Words cut out of what is there, of the apps' names, or from nowhere."""
    texts = [t for row in rows for t in (row.title, row.cwd, row.branch, row.id) if t] + ["claude-code", "codex"]
    words = []
    for _ in range(draw(st.integers(0, 3))):
        if draw(st.integers(0, 4)) == 0:
            words.append(draw(TEXT))
            continue
        text = draw(st.sampled_from(texts))
        start = draw(st.integers(0, len(text) - 1))
        words.append(text[start : start + draw(st.integers(1, 6))])
    return draw(st.sampled_from([str, str.upper, str.lower]))(" ".join(words))


def newest_first(rows):
    return sorted(
        sorted(rows, key=lambda r: r.id), key=lambda r: -1 if r.updated_ms is None else r.updated_ms, reverse=True
    )


@pytest.fixture(params=PATHS)
def bounds(request, monkeypatch):
    """Each way of answering in turn, whatever the index holds."""
    for name, value in zip(("FEW", "NEWEST", "SHORT_WALK"), PATHS[request.param], strict=True):
        monkeypatch.setattr(search, name, value)
    if request.param == "the long way":
        monkeypatch.setattr(Search, "_newest", lambda *_: None)


@pytest.mark.usefixtures("bounds")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_question_finds_what_looking_at_every_row_finds_newest_first(data):
    rows = data.draw(ROWS)
    with index_of(rows) as reader:
        for _ in range(4):
            words = data.draw(question(rows))
            limit = data.draw(st.none() | st.integers(1, 4))
            everything = data.draw(st.booleans())
            listed = [
                r
                for r in rows
                if everything or (r.interactive and r.resumable and not r.archived and r.gone_ms is None)
            ]
            expected = [(r.app, r.id) for r in newest_first(listed) if holds(r, words)]
            asked = Search(reader, Filters(words=split(words), all=everything), limit=limit)
            answer = asked.find(KEY)
            assert [i for _, i in answer] == [i for _, i in expected[:limit]], words
            hidden = asked.hidden(truncated=False)
            assert hidden == sum(holds(r, words) for r in rows) - len(expected), words


@settings(max_examples=60, deadline=None)
@given(st.text(ALPHABET, max_size=40), st.booleans())
def test_no_text_of_any_kind_raises_or_is_read_as_syntax(words, everything):
    with index_of([session(title="checkout")]) as reader:
        assert found(reader, words, all=everything) <= {"c5e1a7b2-9d40-4f3e-8b16-2a7c0e9d4f58"}


# -- single claims -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Fix the checkout", "eckou"),
        ("Fix the checkout", "CHECKOUT fix"),
        ("Café menü", "cafe MENU"),
        ("Straße", "STRASSE"),
        ("日本語のタイトル", "本語"),
        ("日本語のタイトル", "語"),
        ("ΟΔΟΣ", "οδος"),
        ("Проверка", "ПРОВЕР"),
        ("İstanbul", "istanbul"),
        ("ﬁle", "file"),
        ('C++ (new) AND "old"', '"old" AND c++ (new)'),
        ("a_b%c", "a_b%c"),
        ("x*", "x*"),
    ],
)
def test_a_title_is_found_by(title, words):
    with index_of([session(title=title)]) as reader:
        assert found(reader, words)


@pytest.mark.parametrize("words", ["a_b%c", "axb", "a*c", "a?c", "NOT abc", "title : abc", "abc*", "^abc"])
def test_wildcards_and_operators_mean_themselves(words):
    with index_of([session("11111111", title="abc")]) as reader:
        assert not found(reader, words)


def test_each_word_may_be_in_another_column():
    row = session(title="Fix", cwd="/code/shop", branch="topic/retry")
    with index_of([row]) as reader:
        assert found(reader, "retry claude c5e1 shop fix") == {row.id}


def test_a_word_never_spans_two_columns():
    with index_of([session("11111111", title="abc", cwd="def", branch="ghi")]) as reader:
        assert not found(reader, "cdef")


def test_half_a_surrogate_pair_in_the_question_finds_nothing():
    with index_of([session(title="abc")]) as reader:
        assert not found(reader, "\udcff")
        assert not found(reader, "abc\udcff")


def test_words_that_fold_to_nothing_are_ignored():
    with index_of([session(title="abc")]) as reader:
        assert found(reader, "abc \u0301")


def test_people_can_ask_the_trigram_index_by_column():
    with index_of([session("11111111", branch="fix/retry"), session("22222222", title="retry")]) as reader:
        rows = reader.rows(
            "SELECT id FROM sessions JOIN sessions_fts ON sessions_fts.rowid = session_no"
            " WHERE sessions_fts MATCH 'branch : retry'"
        )
        assert rows == [("11111111",)]


def test_an_id_is_found_again_after_its_session_was_dropped_and_came_back():
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(folder)
        with contextlib.closing(writer), writer.transaction():
            writer.put_session(session(title="one"))
            writer.drop_session(("claude-code", session().id))
            writer.put_session(session("deadbeef-1", title="two"))
        with Reader(folder) as reader:
            assert found(reader, "c5e1a7") == set()
            assert found(reader, "eadbee") == {"deadbeef-1"}


@pytest.mark.parametrize("order", ["updated", "created", "size"])
def test_ties_are_in_order_of_id(order):
    rows = [session(i, updated_ms=5, created_ms=5, bytes=5) for i in ("cccccccc", "aaaaaaaa", "bbbbbbbb")]
    with index_of(rows) as reader:
        assert [i for (i,) in reader.find(Filters(), "s.id", order=order)] == ["aaaaaaaa", "bbbbbbbb", "cccccccc"]


def test_hidden_sessions_are_counted_up_to_a_bound():
    rows = [session(f"{n:08}", title="word", interactive=False) for n in range(search.COUNT_LIMIT + 5)]
    with index_of(rows) as reader:
        assert Search(reader, Filters(words=("word",))).hidden(truncated=False) == search.COUNT_LIMIT + 1


# -- filters -----------------------------------------------------------------------------------------------------------

STATES = list(itertools.product((False, True), repeat=4))


def in_every_state():
    """A session for each of the sixteen states; its id tells which (archived, interactive, resumable, gone)."""
    return [
        session(
            "".join("-x"[flag] for flag in state) + "aaaa",
            archived=state[0],
            interactive=state[1],
            resumable=state[2],
            gone_ms=1 if state[3] else None,
            title="word",
        )
        for state in STATES
    ]


@pytest.mark.parametrize(
    ("filters", "listed"),
    [
        ({}, lambda archived, interactive, resumable, gone: interactive and resumable and not archived and not gone),
        ({"archived": True}, lambda archived, interactive, _, gone: archived and interactive and not gone),
        ({"gone": True}, lambda archived, interactive, _, gone: gone and interactive and not archived),
        ({"archived": True, "gone": True}, lambda archived, interactive, _, gone: archived and gone and interactive),
        ({"all": True}, lambda *_: True),
        ({"all": True, "archived": True}, lambda archived, *_: archived),
        ({"all": True, "gone": True}, lambda *state: state[3]),
    ],
)
@pytest.mark.parametrize("words", ["", "word", "or"])
def test_the_scope_decides_which_states_are_listed(filters, listed, words):
    with index_of(in_every_state()) as reader:
        expected = {"".join("-x"[flag] for flag in state) + "aaaa" for state in STATES if listed(*state)}
        assert found(reader, words, **filters) == expected


@pytest.mark.usefixtures("bounds")
@pytest.mark.parametrize("words", ["", "word", "or"])
def test_a_folder_is_itself_and_what_is_below_it(words):
    places = {"11111111": "/code/shop", "22222222": "/code/shop/api", "33333333": "/code/shopping", "44444444": "/code"}
    with index_of([session(i, cwd=cwd, title="word") for i, cwd in places.items()]) as reader:
        assert found(reader, words, folders=("/code/shop",)) == {"11111111", "22222222"}
        assert found(reader, words, folders=("/",)) == set(places)


def test_the_repository_column_finds_deleted_worktrees():
    rows = [session("11111111", cwd="/tmp/tree", repo="/code/shop"), session("22222222", cwd="/code/shop/api")]
    with index_of(rows) as reader:
        assert found(reader, "", folders=("/code/shop",), repos=("/code/shop",)) == {"11111111", "22222222"}


@pytest.mark.usefixtures("bounds")
def test_a_branch_is_exact():
    rows = [session("11111111", branch="fix"), session("22222222", branch="Fix"), session("33333333", branch="fix/it")]
    with index_of(rows) as reader:
        assert found(reader, "", branch="fix") == {"11111111"}


def test_since_is_inclusive_and_until_is_not():
    with index_of([session(f"{n:08}", updated_ms=n) for n in (1, 2, 3)]) as reader:
        assert found(reader, "", since_ms=2) == {"00000002", "00000003"}
        assert found(reader, "", until_ms=2) == {"00000001"}


def test_an_app_is_a_filter():
    with index_of([session("11111111"), session("22222222", app="codex")]) as reader:
        assert found(reader, "", app="codex") == {"22222222"}


# -- ids ---------------------------------------------------------------------------------------------------------------


def test_the_short_id_is_the_shortest_prefix_of_eight_or_more_that_is_unique():
    ids = ["019a2f1c-7d0e-7b31", "019a2f1c-7d0f-7b31", "c5e1a7b2-9d40-4f3e"]
    with index_of([session(i) for i in ids]) as reader:
        assert [reader.short_id(i) for i in ids] == ["019a2f1c-7d0e", "019a2f1c-7d0f", "c5e1a7b2"]


def test_an_id_that_begins_another_stays_whole():
    with index_of([session("aaaaaaaa"), session("aaaaaaaab")]) as reader:
        assert [reader.short_id("aaaaaaaa"), reader.short_id("aaaaaaaab")] == ["aaaaaaaa", "aaaaaaaab"]

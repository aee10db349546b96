"""Nothing unprintable gets out, and a table fits its terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_cli import render

HOSTILE = [
    "\x1b[31mred\x1b[0m", "\x1b]52;c;ZXZpbA==\x07", "\x1b]8;;http://evil\x1b\\link", "\x1bP+q544e\x1b\\", "\x1bc",
    "\x9b31m", "\x9d0;title\x9c", "a\rb", "a\tb", "a\nb", "a\x08b", "\x7f", "\u202eevil\u202c", "\u2066x\u2069",
    "\u200e\u200f", "a\u200bb", "\ufeffbom", "a\u2028b", "a\u2029b", "\ue000", "\U000e0041", "\udcff", "\ud800",
    "\u00ad", "\u180e", "\u3164", "\u115f", "\u2800", "\x00", "\x85",
]  # fmt: skip
ANYTHING = st.text(st.characters(), max_size=40)


def is_safe(text):
    return all(c.isprintable() for c in text)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_made_printable(text):
    assert is_safe(render.printable(text))
    assert render.printable(text) != text


@given(ANYTHING)
def test_no_text_leaves_unprintable(text):
    assert is_safe(render.printable(text))


@given(st.text(st.characters(codec="ascii", exclude_categories=("Cc",))))
def test_what_is_printable_stays_as_it_is(text):
    assert render.printable(text) == text


@pytest.mark.parametrize(("text", "shown"), [("\x1b[m", "^[[m"), ("\x7f", "^?"), ("\n", "^J"), ("\u202e", "\\u{202e}")])
def test_control_characters_are_in_caret_style_the_rest_as_code_points(text, shown):
    assert render.printable(text) == shown


@given(ANYTHING)
def test_escaped_json_is_printable_and_means_the_same(text):
    made = render.json_safe(json.dumps(text, ensure_ascii=False))
    assert is_safe(made)
    assert json.loads(made) == text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@given(st.lists(st.lists(ANYTHING, min_size=3, max_size=3), max_size=4))
def test_lines_for_a_pipe_have_one_line_a_row_and_one_tab_between_columns(rows):
    lines = render.tab_separated(rows).split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(rows)
    assert all(line.count("\t") == 2 and is_safe(line.replace("\t", "")) for line in lines)


# -- width -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("カ", 2), ("ｱ", 1), ("한", 2), ("🙂", 2), ("", 0)]
)
def test_display_width(text, columns):
    assert render.width(text) == columns


@given(st.text(max_size=60), st.integers(0, 30))
def test_a_cut_text_is_never_too_wide(text, columns):
    assert render.width(render.cut(render.printable(text), columns)) <= columns


@given(st.text(st.sampled_from("ab/日e\u0301"), max_size=40), st.integers(1, 30))
def test_a_cut_path_is_never_too_wide(path, columns):
    assert render.width(render.cut_path(path, columns)) <= columns


def test_a_path_keeps_its_end():
    assert render.cut_path("/Users/alex/code/shop-api", 12) == "…/shop-api"


def test_a_mark_is_never_cut_off_its_letter():
    cut = render.cut("e\u0301" * 10, 5)
    assert cut == "e\u0301" * 4 + "…"


def test_a_thousand_marks_take_one_column():
    assert render.width("e" + "\u0301" * 1000) == 1


ROW = st.tuples(
    st.sampled_from(["claude-code", "codex"]), st.just("c5e1a7b2"), st.integers(0, 10**12), ANYTHING, ANYTHING,
    ANYTHING,
    st.none(), st.none(), st.booleans(), st.none(), st.booleans(), st.booleans(),
)  # fmt: skip


@given(st.lists(ROW, min_size=1, max_size=5), st.sampled_from([40, 72, 80, 100, 200]))
def test_a_table_fits_its_terminal_and_is_printable(rows, columns):
    made = render.sessions_table(
        rows, [r[1] for r in rows], terminal_columns=columns, color=False, words=(), user_home="/home/alex", now=10**12
    )
    for line in made.splitlines():
        assert render.width(line) <= columns
        assert is_safe(line)


@given(st.lists(ROW, min_size=1, max_size=3), st.text(max_size=5))
def test_color_changes_nothing_but_color(rows, word):
    def made(*, color):
        return render.sessions_table(
            rows, [r[1] for r in rows], terminal_columns=100, color=color, words=(word,) if word else (),
            user_home="", now=10**12,
        )  # fmt: skip

    colored = made(color=True)
    for code in ("\x1b[1;33m", "\x1b[2m", "\x1b[0m"):
        colored = colored.replace(code, "")
    assert colored == made(color=False)


def test_columns_start_below_each_other_whatever_is_wide():
    rows = [("codex", "11111111", 0, "日本", "/a", "x"), ("codex", "22222222", 0, "abcd", "/a", "y")]
    rows = [(*r, None, None, False, None, True, True) for r in rows]
    made = render.sessions_table(
        rows, ["11111111", "22222222"], terminal_columns=80, color=False, words=(), user_home="", now=0
    ).splitlines()
    assert (
        len({render.width(line[: line.index(end)]) for line, end in zip(made, ("TITLE", "x", "y"), strict=True)}) == 1
    )


@pytest.mark.parametrize(
    ("text", "word", "marked"),
    [
        ("Fix Checkout", "checkout", "Fix [Checkout]"),
        ("Café", "cafe", "[Café]"),
        ("Straße", "ss", "Stra[ß]e"),
        ("ab ab", "ab", "[ab] [ab]"),
        ("abc", "x", "abc"),
    ],
)
def test_found_words_are_marked_where_they_stand(text, word, marked):
    shown = render.marked(text, (word,)).replace("\x1b[1;33m", "[").replace("\x1b[0m", "]")
    assert shown == marked


def test_invisible_characters_are_all_default_ignorable_or_blank():
    assert all(unicodedata.category(c) in ("Lo", "Mn", "So") for c in render._INVISIBLE)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (9_950, "10 kB"), (1_400_000, "1.4 MB"), (2_070_000_000, "2.1 GB")],
)
def test_sizes_as_people_read_them(count, text):
    assert render.size(count) == text

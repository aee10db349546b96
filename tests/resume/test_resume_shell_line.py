"""`--print`: one line that a POSIX shell reads back as exactly the same words, with nothing unprintable in it."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_cli.shell import line, quoted

SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh") if shutil.which(shell)]
HOSTILE = [
    "plain",
    "with space",
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "-rf",
    "--",
    "~",
    "*",
    "a\\b",
    "%s%n",
    "tab\there",
    "esc\x1b[31mred",
    "bell\x07",
    "right\u202eleft",
    "zero\u200bwidth",
    "ümläut-日本",
    "nl-in-octal\\012",
    "$HOME",
    "!!",
    "#c",
    "&& touch pwned",
    "\x7f",
    "{a,b}",
    "'",
]
WORDS = st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=("Cs",)), min_size=1, max_size=40)


def run(shell, text):
    return subprocess.run([shell, "-c", text], capture_output=True, check=True, timeout=20).stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_every_hostile_word_survives_every_shell(shell):
    text = "printf '%s\\n' " + " ".join(map(quoted, HOSTILE))
    assert run(shell, text).decode().splitlines() == "\n".join(HOSTILE).splitlines()


@settings(max_examples=40, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=8))
def test_any_words_survive_a_posix_shell(words):
    assert run("sh", "printf '%s\\n' " + " ".join(map(quoted, words))).decode().split("\n")[:-1] == words


@settings(max_examples=200, deadline=None)
@given(WORDS)
def test_nothing_unprintable_is_in_a_quoted_word(word):
    assert quoted(word).isprintable()


@pytest.mark.parametrize("name", HOSTILE)
def test_the_line_enters_the_folder_whatever_its_name(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    text = line(str(folder), {}, ("pwd",))
    assert run("sh", text).decode() == os.path.realpath(folder) + "\n"
    assert [f.name for f in tmp_path.iterdir()] == [name]


def test_a_name_that_is_no_utf_8_survives():
    name = os.fsdecode(b"caf\xe9")
    assert run("sh", "printf %s " + quoted(name)) == b"caf\xe9"


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "\n", "a\r"])
def test_a_line_break_anywhere_refuses(text):
    assert line("/code/" + text, {}, ("claude",)) is None
    assert line("/code", {"CLAUDE_CONFIG_DIR": text}, ("claude",)) is None


def test_a_home_is_set_and_a_default_one_unset():
    made = line(
        "/code/shop api", {"CLAUDE_CONFIG_DIR": None, "CODEX_HOME": "/srv/my codex"}, ("claude", "--resume", "x")
    )
    assert made == "cd -- '/code/shop api' && env -u CLAUDE_CONFIG_DIR 'CODEX_HOME=/srv/my codex' claude --resume x"


def test_the_environment_reaches_the_program(monkeypatch):
    monkeypatch.setenv("UNSET", "1")
    text = line("/", {"SET": "a b", "UNSET": None}, ("sh", "-c", 'printf %s "$SET-${UNSET-gone}"'))
    assert run("sh", text) == b"a b-gone"
